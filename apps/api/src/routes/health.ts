import { HealthView, ReadinessView } from "@millrace/contract";
import type { FastifyPluginAsyncZod } from "fastify-type-provider-zod";
import * as z from "zod";
import type { ApiContext } from "../runtime.ts";

const tags = ["operations"];
const healthSchema = {
  tags,
  operationId: "getHealth",
  summary: "Whether this process lives",
  response: { 200: HealthView },
};
const readinessSchema = {
  tags,
  operationId: "getReadiness",
  summary: "Whether what it needs is there, and which part is not",
  description:
    "503 while something required is away. A queue that is away only slows things: starts and events are taken in, and their steps run once it is back.",
  response: { 200: ReadinessView, 503: ReadinessView },
};
const metricsSchema = {
  tags,
  operationId: "getMetrics",
  summary: "Metrics in the text format of Prometheus",
  response: { 200: z.string() },
};

/** For probes and scrapers, which add parameters of their own: their queries are not looked at. */
export const healthRoutes: FastifyPluginAsyncZod<ApiContext> = async (app, { runtime }) => {
  app.get("/healthz", { schema: healthSchema }, async () => ({ status: "ok" as const }));

  app.get("/readyz", { schema: readinessSchema }, async (_, reply) => {
    const readiness = await runtime.readiness();
    return reply
      .code(readiness.status === "ok" ? 200 : 503)
      .headers({
        "cache-control": "no-store",
        ...(readiness.status !== "ok" && { "retry-after": "1" }),
      })
      .send(readiness);
  });

  app.get(
    "/metrics",
    { schema: metricsSchema, config: { mediaType: "text/plain" } },
    async (_, reply) => {
      const { contentType, text } = await runtime.metrics();
      return reply.type(contentType).serializer(String).send(text);
    },
  );
};
