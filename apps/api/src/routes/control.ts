import {
  BulkAnswer,
  BulkRequest,
  CancelRequest,
  type ErrorCode,
  InstanceView,
  PatchRequest,
  PauseRequest,
  PromoteRequest,
  RepairView,
  ResumeRequest,
  RetryRequest,
} from "@millrace/contract";
import type { FastifyPluginAsyncZod } from "fastify-type-provider-zod";
import { problemOf } from "../error-handler.ts";
import { ApiError } from "../errors.ts";
import { callerOf, etagOf, ifMatchOf } from "../headers.ts";
import { InstancePath } from "../instance-path.ts";
import type { ApiContext } from "../runtime.ts";
import { NoQuery } from "../validation.ts";

/** What operators do to one instance. */

const common = {
  tags: ["instances"],
  params: InstancePath,
  querystring: NoQuery,
  response: { 202: InstanceView },
};
const errors: readonly ErrorCode[] = [
  "INSTANCE_NOT_FOUND",
  "STATUS_CONFLICT",
  "INSTANCE_DAMAGED",
  "PRECONDITION_FAILED",
  "BUSY",
];
const config = { errors, requestHeaders: ["If-Match"], responseHeaders: ["ETag"] } as const;

const cancelSchema = {
  ...common,
  operationId: "cancelInstance",
  summary: "Cancel an instance",
  description:
    "Its status changes at once; compensation runs beside it. An instance that has FAILED is abandoned so: what was not undone is undone now.",
  body: CancelRequest.optional(),
};
const pauseSchema = {
  ...common,
  operationId: "pauseInstance",
  summary: "Pause an instance",
  description:
    "No new step starts. Running ones finish and their results are kept; events are matched and, like timers that come due, held. Clocks go on. With `until` it resumes by itself.",
  body: PauseRequest.optional(),
};
const resumeSchema = {
  ...common,
  operationId: "resumeInstance",
  summary: "Resume a paused instance",
  description: "It goes back to where it was, and what was held is applied in order of time.",
  body: ResumeRequest.optional(),
};

const retrySchema = {
  ...common,
  operationId: "retryInstance",
  summary: "Retry a failed instance",
  description:
    "From where it failed, or from a step of the definition's own list; what was completed stays. A PARALLEL or MAP in which a step failed runs again as a whole. One that is paused because retries are spent has another round of them.",
  body: RetryRequest.optional(),
};

const promoteSchema = {
  ...common,
  operationId: "promoteInstance",
  summary: "Put an instance that waits for a slot first in line",
  description:
    "To the head of the queues for slots in which it waits: before all that have not run either, whatever the order of the queue, and those included that were promoted before it. Those that have run before stay before those that have not. It is 409 where the instance waits for no slot.",
  body: PromoteRequest.optional(),
};

const patchSchema = {
  ...common,
  operationId: "patchInstance",
  summary: "Change an instance's variables, priority, deadline or metadata",
  description:
    "A JSON merge patch (RFC 7396): null removes a member. If-Match is required, so that nobody overwrites what they have not seen. Waits whose conditions read the variables see the new ones from then on.",
  body: PatchRequest,
  response: { 200: InstanceView },
};

const repairSchema = {
  tags: common.tags,
  operationId: "repairInstance",
  summary: "Repair what the consistency check finds",
  description:
    "What needs no operator's judgement: by a commit of the instance, at the version at which it was found wrong and with a line in the history, or by a statement that looks again whether it is still so. What is consistent is left alone. `after` says what is left, with advice.",
  params: InstancePath,
  querystring: NoQuery,
  response: { 200: RepairView },
};

const bulkSchema = {
  tags: common.tags,
  operationId: "actOnInstances",
  summary: "Cancel, pause, resume or retry many instances",
  description:
    "Those that match the filter and are in a status in which the action has an effect, the oldest first, at most `limit`; `nextCursor` goes on behind them. FAILED ones are cancelled, and PAUSED ones retried, only where the filter names that status. Each is done for itself: `refusals` says what kept one. With `dryRun` only the ids are answered.",
  querystring: NoQuery,
  body: BulkRequest,
  response: { 200: BulkAnswer },
};

export const controlRoutes: FastifyPluginAsyncZod<ApiContext> = async (app, { runtime }) => {
  app.post(
    "/v1/instances::bulk",
    { schema: bulkSchema, config: { errors: ["INVALID_CURSOR"] } },
    async (request) => {
      const { body } = request;
      const { filter, action, dryRun = false, requestedBy: actor } = body;
      const place = "/filter/tenantId";
      const caller = callerOf(request, { tenantId: filter.tenantId, place, actor });
      const { outcomes, nextCursor } = await runtime.actOnMany(caller, body);
      return { action, dryRun, ...countsOf(outcomes), nextCursor };
    },
  );

  app.post("/v1/instances/:id/cancel", { schema: cancelSchema, config }, async (request, reply) => {
    const body = request.body ?? {};
    const caller = callerOf(request, { actor: body.requestedBy });
    const { id } = request.params;
    const instance = await runtime.cancelInstance(caller, id, body, ifMatchOf(request));
    return reply.code(202).header("etag", etagOf(instance)).send(instance);
  });

  app.post("/v1/instances/:id/pause", { schema: pauseSchema, config }, async (request, reply) => {
    const body = request.body ?? {};
    const caller = callerOf(request, { actor: body.requestedBy });
    const { id } = request.params;
    const instance = await runtime.pauseInstance(caller, id, body, ifMatchOf(request));
    return reply.code(202).header("etag", etagOf(instance)).send(instance);
  });

  app.patch(
    "/v1/instances/:id",
    { schema: patchSchema, config: { ...config, errors: [...errors, "PRECONDITION_REQUIRED"] } },
    async (request, reply) => {
      if (request.headers["if-match"] === undefined) {
        const detail = "send the ETag of the instance that you have read as If-Match";
        throw new ApiError("PRECONDITION_REQUIRED", detail);
      }
      const { id } = request.params;
      const caller = callerOf(request);
      const instance = await runtime.patchInstance(caller, id, request.body, ifMatchOf(request));
      return reply.code(200).header("etag", etagOf(instance)).send(instance);
    },
  );

  app.post(
    "/v1/instances/:id/retry",
    { schema: retrySchema, config: { ...config, errors: [...errors, "UNKNOWN_STEP"] } },
    async (request, reply) => {
      const body = request.body ?? {};
      const caller = callerOf(request, { actor: body.requestedBy });
      const { id } = request.params;
      const instance = await runtime.retryInstance(caller, id, body, ifMatchOf(request));
      return reply.code(202).header("etag", etagOf(instance)).send(instance);
    },
  );

  app.post("/v1/instances/:id/resume", { schema: resumeSchema, config }, async (request, reply) => {
    const body = request.body ?? {};
    const caller = callerOf(request, { actor: body.requestedBy });
    const { id } = request.params;
    const instance = await runtime.resumeInstance(caller, id, body, ifMatchOf(request));
    return reply.code(202).header("etag", etagOf(instance)).send(instance);
  });

  app.post(
    "/v1/instances/:id/promote",
    { schema: promoteSchema, config },
    async (request, reply) => {
      const body = request.body ?? {};
      const caller = callerOf(request, { actor: body.requestedBy });
      const { id } = request.params;
      const instance = await runtime.promoteInstance(caller, id, body, ifMatchOf(request));
      return reply.code(202).header("etag", etagOf(instance)).send(instance);
    },
  );

  app.post(
    "/v1/instances/:id/repair",
    {
      schema: repairSchema,
      config: {
        errors: ["INSTANCE_NOT_FOUND", "PRECONDITION_FAILED", "BUSY"],
        requestHeaders: ["If-Match"],
      },
    },
    (request) => runtime.repairInstance(callerOf(request), request.params.id, ifMatchOf(request)),
  );
};

function countsOf(outcomes: readonly { readonly id: string; readonly error?: unknown }[]) {
  const failed = outcomes.filter(({ error }) => error !== undefined);
  const refusals = failed.map(({ id, error }) => ({ id, problem: problemOf(error).problem }));
  const [first] = failed;
  // What nothing at all came of is answered as a single call would be, with the time to ask again.
  const isAway = refusals.length > 0 && refusals.every(({ problem }) => problem.status === 503);
  if (isAway && failed.length === outcomes.length) throw first?.error;
  return {
    matched: outcomes.length,
    succeeded: outcomes.length - failed.length,
    refused: failed.length,
    ids: outcomes.flatMap(({ id, error }) => (error === undefined ? [id] : [])),
    refusals,
  };
}
