import { definitionJsonSchema } from "@millrace/contract";
import type { FastifyPluginAsyncZod } from "fastify-type-provider-zod";
import * as z from "zod";
import { docsPage } from "../docs-page.ts";

export interface DocumentOptions {
  /** Asked once, when all routes are known. */
  readonly document: () => object;
}

const tags = ["operations"];
const documentSchema = {
  tags,
  operationId: "getOpenApi",
  summary: "This API as an OpenAPI 3.1 document",
  response: { 200: z.looseObject({ openapi: z.string() }) },
};
const pageSchema = {
  tags,
  operationId: "getDocs",
  summary: "This API as a page to read",
  response: { 200: z.string() },
};

const definitionSchema = {
  tags,
  operationId: "getDefinitionSchema",
  summary: "The shape of definition documents as JSON Schema, for editors",
  response: { 200: z.looseObject({ $schema: z.string() }) },
};

export const documentRoutes: FastifyPluginAsyncZod<DocumentOptions> = async (app, { document }) => {
  let text: string | undefined;
  const documentText = () => (text ??= JSON.stringify(document()));

  app.get("/openapi.json", { schema: documentSchema }, async (_, reply) =>
    reply
      .type("application/json")
      .serializer(String)
      .send(documentText() as never),
  );

  let schemaText: string | undefined;
  app.get(
    "/schemas/definition.json",
    { schema: definitionSchema, config: { mediaType: "application/schema+json" } },
    async (_, reply) =>
      reply
        .type("application/schema+json")
        // Editors that run in a browser may read it too.
        .header("access-control-allow-origin", "*")
        .serializer(String)
        .send((schemaText ??= JSON.stringify(definitionJsonSchema())) as never),
  );

  app.get("/docs", { schema: pageSchema, config: { mediaType: "text/html" } }, async (_, reply) => {
    const { html, policy } = docsPage(documentText());
    return reply
      .type("text/html; charset=utf-8")
      .header("content-security-policy", policy)
      .serializer(String)
      .send(html);
  });
};
