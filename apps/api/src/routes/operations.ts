import {
  ControlQueueRequest,
  QueueList,
  QueueName,
  QueueView,
  StatsQuery,
  StatsView,
  TaskList,
  WorkerList,
} from "@millrace/contract";
import type { FastifyPluginAsyncZod } from "fastify-type-provider-zod";
import * as z from "zod";
import { callerOf } from "../headers.ts";
import type { ApiContext } from "../runtime.ts";
import { NoQuery } from "../validation.ts";

const common = { tags: ["operations"], querystring: NoQuery };

const statsSchema = {
  tags: ["operations"],
  operationId: "getStats",
  summary: "Figures over the instances of the tenant, and by workflow",
  description:
    "Instances by status, the share that completed, execution times and retries. Of more than 50,000 instances the latest count, and `isComplete` is false.",
  querystring: StatsQuery,
  response: { 200: StatsView },
};
const workersSchema = {
  ...common,
  operationId: "listWorkers",
  summary: "List the worker processes that are alive",
  response: { 200: WorkerList },
};
const tasksSchema = {
  ...common,
  operationId: "listTasks",
  summary: "List known tasks with the workers that know them",
  description:
    "A task that no live worker knows is listed while steps wait for it, with `blocked` of them.",
  response: { 200: TaskList },
};
const queuesSchema = {
  ...common,
  operationId: "listQueues",
  summary: "List queues with their depths",
  response: { 200: QueueList },
};

const one = {
  ...common,
  params: z.object({ name: QueueName.meta({ description: "of the queue" }) }),
};
const pauseQueueSchema = {
  ...one,
  operationId: "pauseQueue",
  summary: "Have no step of a queue begin until it is resumed",
  description:
    "On every worker, those that start later too, and for all tenants, who share queues. What runs goes on to its end; steps stay PENDING and keep their clocks. One that is paused stays as it is. A queue that nobody knows yet can be paused as well.",
  body: ControlQueueRequest.optional(),
  response: { 200: QueueView },
};
const resumeQueueSchema = {
  ...one,
  operationId: "resumeQueue",
  summary: "Let a queue go on",
  description: "Nothing happens where it is not paused.",
  body: ControlQueueRequest.optional(),
  response: { 200: QueueView },
};

export const operationRoutes: FastifyPluginAsyncZod<ApiContext> = async (app, { runtime }) => {
  app.get("/v1/stats", { schema: statsSchema }, (request) =>
    runtime.stats(callerOf(request), request.query.workflowId),
  );
  app.get("/v1/workers", { schema: workersSchema }, () => runtime.workers());
  app.get("/v1/tasks", { schema: tasksSchema }, (request) => runtime.tasks(callerOf(request)));
  app.get("/v1/queues", { schema: queuesSchema }, (request) => runtime.queues(callerOf(request)));
  app.post("/v1/queues/:name/pause", { schema: pauseQueueSchema }, (request) => {
    const { params, body = {} } = request;
    const caller = callerOf(request, { actor: body.requestedBy });
    return runtime.pauseQueue(caller, params.name, body);
  });
  app.post("/v1/queues/:name/resume", { schema: resumeQueueSchema }, (request) => {
    const { params, body = {} } = request;
    return runtime.resumeQueue(callerOf(request, { actor: body.requestedBy }), params.name);
  });
};
