import {
  CompensationPlanQuery,
  CompensationPlanView,
  ConsistencyView,
  StateAtView,
  StateQuery,
  WhyView,
} from "@millrace/contract";
import type { FastifyPluginAsyncZod } from "fastify-type-provider-zod";
import { callerOf } from "../headers.ts";
import { InstancePath } from "../instance-path.ts";
import type { ApiContext } from "../runtime.ts";
import { NoQuery } from "../validation.ts";

/** What can be asked about one instance, beside what it is. Nothing here changes anything. */

const tags = ["instances"];
const errors = ["INSTANCE_NOT_FOUND"] as const;

const planSchema = {
  tags,
  operationId: "getCompensationPlan",
  summary: "See what a cancel would undo now, without cancelling",
  description:
    "The compensation steps in the order in which they would run, conditions and inputs worked out by the engine itself. Steps in flight that a cancel would wait for are in `awaited`; they are compensated first if they succeed. Empty for an instance that has ended.",
  params: InstancePath,
  querystring: CompensationPlanQuery,
  response: { 200: CompensationPlanView },
};

const stateSchema = {
  tags,
  operationId: "getStateAt",
  summary: "Read an instance as it was at one of its versions",
  description:
    "Built again from the history. Versions count from 1; each entry of the history names the one that it made.",
  params: InstancePath,
  querystring: StateQuery,
  response: { 200: StateAtView },
};

const whySchema = {
  tags,
  operationId: "getWhy",
  summary: "Ask why an instance is not moving",
  description:
    "One reason for each thing that it stands at: a task that no live worker knows, a queue that none serves, a worker that runs it, a retry, a delay, or an event wait with its condition filled in and the last events that came close. `QUEUE_AWAY`, `DEFINITION_MISSING` and `DAMAGED` come first: they hold up what else is told. All kinds: docs/reliability.md.",
  params: InstancePath,
  querystring: NoQuery,
  response: { 200: WhyView },
};

const consistencySchema = {
  tags,
  operationId: "getConsistency",
  summary: "Check whether what is stored of an instance agrees with itself",
  description:
    "Its row, steps, waits, timers and children against its history, replayed by the engine, as one consistent read saw them. What is found has been seen twice at the same version. `codes` are documented in docs/reliability.md.",
  params: InstancePath,
  querystring: NoQuery,
  response: { 200: ConsistencyView },
};

export const insightRoutes: FastifyPluginAsyncZod<ApiContext> = async (app, { runtime }) => {
  app.get(
    "/v1/instances/:id/compensation-plan",
    { schema: planSchema, config: { errors } },
    (request) =>
      runtime.planCompensation(callerOf(request), request.params.id, request.query.reason),
  );

  app.get("/v1/instances/:id/why", { schema: whySchema, config: { errors } }, (request) =>
    runtime.why(callerOf(request), request.params.id),
  );

  app.get(
    "/v1/instances/:id/consistency",
    { schema: consistencySchema, config: { errors } },
    (request) => runtime.checkConsistency(callerOf(request), request.params.id),
  );

  app.get(
    "/v1/instances/:id/state",
    { schema: stateSchema, config: { errors: [...errors, "VERSION_NOT_FOUND"] } },
    (request) => runtime.readState(callerOf(request), request.params.id, request.query.version),
  );
};
