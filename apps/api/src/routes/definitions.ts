import {
  DefinitionId,
  DefinitionPage,
  DefinitionVersion,
  DefinitionView,
  ListDefinitionsQuery,
  RegisterAnswer,
  SimulateRequest,
  SimulationView,
  ValidateAnswer,
  WorkflowDefinition,
  WorkflowId,
} from "@millrace/contract";
import type { FastifyPluginAsyncZod } from "fastify-type-provider-zod";
import * as z from "zod";
import type { ApiContext } from "../runtime.ts";
import { ApiError } from "../errors.ts";
import { callerOf } from "../headers.ts";
import { faultsOfBody } from "../json-door.ts";
import { NoQuery } from "../validation.ts";

const DefinitionPath = z.object({ id: DefinitionId.meta({ description: "of the workflow" }) });
/** Read, not written: also the reserved definition of a task. */
const KnownPath = z.object({ id: WorkflowId.meta({ description: "of the workflow" }) });
const VersionPath = KnownPath.extend({
  version: z.coerce
    .number<string>()
    .pipe(DefinitionVersion)
    .meta({ description: "of the definition, from 1" }),
});

const common = { tags: ["definitions"], querystring: NoQuery };
/** The document is checked where it is registered, which finds more than its shape. */
const documentConfig = { body: WorkflowDefinition, errors: ["INVALID_DEFINITION"] } as const;

const putSchema = {
  ...common,
  operationId: "putDefinition",
  summary: "Register a definition under its id",
  description:
    "Makes the next version, or none where the latest one has the same content. Instances stay on the version that they started with.",
  params: DefinitionPath,
  response: { 200: RegisterAnswer, 201: RegisterAnswer },
};
const postSchema = {
  ...common,
  operationId: "registerDefinition",
  summary: "Register a definition",
  description: putSchema.description,
  response: putSchema.response,
};
const validateSchema = {
  ...common,
  operationId: "validateDefinition",
  summary: "Check a definition without registering it",
  description: "Answers what a registration would: the version it would get, or all its problems.",
  response: { 200: ValidateAnswer },
};
const simulateSchema = {
  ...common,
  operationId: "simulateDefinition",
  summary: "Run a scenario on a virtual clock, with mocked tasks",
  description:
    "No task runs and nothing is stored. With `definition` in the body that document is simulated, registered or not. A simulation has at most 1,000 decisions and 2,000 executions, and 5 s; two run at once, eight wait, and beyond that the answer is 503 with Retry-After.",
  params: DefinitionPath,
  body: SimulateRequest,
  response: { 200: SimulationView },
};
const listSchema = {
  tags: ["definitions"],
  operationId: "listDefinitions",
  summary: "List definitions, the latest version of each",
  querystring: ListDefinitionsQuery,
  response: { 200: DefinitionPage },
};
const getSchema = {
  ...common,
  operationId: "getDefinition",
  summary: "Read the latest version of a definition",
  params: KnownPath,
  response: { 200: DefinitionView },
};
const getVersionSchema = {
  ...common,
  operationId: "getDefinitionVersion",
  summary: "Read one version of a definition",
  params: VersionPath,
  response: { 200: DefinitionView },
};

export const definitionRoutes: FastifyPluginAsyncZod<ApiContext> = async (app, { runtime }) => {
  app.put(
    "/v1/definitions/:id",
    { schema: putSchema, config: documentConfig },
    async (request, reply) => {
      const { answer, created } = await runtime.registerDefinition(
        callerOf(request),
        request.body,
        { faults: faultsOfBody(request), pathId: request.params.id },
      );
      return reply.code(created ? 201 : 200).send(answer);
    },
  );

  app.post(
    "/v1/definitions",
    { schema: postSchema, config: { ...documentConfig, responseHeaders: ["Location"] } },
    async (request, reply) => {
      const { answer, created } = await runtime.registerDefinition(
        callerOf(request),
        request.body,
        { faults: faultsOfBody(request) },
      );
      return reply
        .code(created ? 201 : 200)
        .header("location", `/v1/definitions/${answer.id}/versions/${answer.version}`)
        .send(answer);
    },
  );

  app.post(
    "/v1/definitions/validate",
    { schema: validateSchema, config: documentConfig },
    (request) =>
      runtime.validateDefinition(callerOf(request), request.body, {
        faults: faultsOfBody(request),
      }),
  );

  app.post(
    "/v1/definitions/:id/simulate",
    {
      schema: simulateSchema,
      config: { errors: ["WORKFLOW_NOT_FOUND", "INVALID_DEFINITION", "INVALID_INPUT", "BUSY"] },
    },
    (request) => runtime.simulate(callerOf(request), request.params.id, request.body),
  );

  app.get("/v1/definitions", { schema: listSchema }, (request) =>
    runtime.listDefinitions(callerOf(request), request.query),
  );

  const config = { errors: ["DEFINITION_NOT_FOUND"] } as const;
  app.get("/v1/definitions/:id", { schema: getSchema, config }, async (request) => {
    const { id } = request.params;
    const definition = await runtime.readDefinition(callerOf(request), id);
    return definition ?? notFound(`there is no definition ${id}`);
  });

  app.get(
    "/v1/definitions/:id/versions/:version",
    { schema: getVersionSchema, config },
    async (request) => {
      const { id, version } = request.params;
      const definition = await runtime.readDefinition(callerOf(request), id, version);
      return definition ?? notFound(`there is no version ${version} of definition ${id}`);
    },
  );
};

function notFound(detail: string): never {
  throw new ApiError("DEFINITION_NOT_FOUND", detail);
}
