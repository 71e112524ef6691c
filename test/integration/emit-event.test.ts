import { randomUUID } from "node:crypto";
import { startInstance } from "@millrace/runtime";
import { eventually } from "@millrace/testkit";
import { sql } from "kysely";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openTestApi, type TestApi } from "./api/support.ts";
import { expectConsistent } from "../support/consistent.ts";

// Events that instances emit: stored with the commit, matched after it, once.

let api: TestApi;
beforeAll(async () => {
  api = await openTestApi({ isWorking: true });
});
afterAll(async () => {
  try {
    await expectConsistent(api.url);
  } finally {
    await api.close();
  }
});

const fresh = () => `t${randomUUID().slice(0, 8)}`;
const to = (stepId: string) => ({ transitions: { default: stepId } });
const emit = (eventPattern: string, payload: unknown = {}, more: object = {}) => ({
  stepId: "tell",
  type: "EMIT_EVENT",
  eventPattern,
  payload,
  ...more,
});

async function register(id: string, definition: object): Promise<string> {
  const { status, body } = await api.call("PUT", `/v1/definitions/${id}`, { id, ...definition });
  expect({ status, body }).toMatchObject({ status: 201 });
  return id;
}

async function start(workflowId: string, input: unknown = {}): Promise<string> {
  const { body } = await api.call("POST", "/v1/instances", { workflowId, input });
  return body.id;
}

const settled = async (id: string) => (await api.call("GET", `/v1/instances/${id}?wait=20`)).body;

async function instancesOf(workflowId: string) {
  return (await api.call("GET", `/v1/instances?workflowId=${workflowId}&limit=500`)).body.items;
}

async function eventsOf(pattern: string) {
  const { rows } = await sql<{
    id: string;
    actor: string;
    delivered: number;
    cancelled: number;
    started: number;
    done: boolean;
  }>`select id, actor, delivered, cancelled, started, matched_at is not null as done
    from events where pattern = ${pattern}`.execute(api.services.database.db);
  return rows;
}

test("an emitted event satisfies, cancels and starts, once each, and says who emitted it", async () => {
  const pattern = fresh();
  const condition = { eventPattern: pattern, eventCondition: "event.payload.n === input.n" };
  const waiting = await register(fresh(), {
    steps: [{ stepId: "w", type: "EVENT_WAIT", ...condition }],
  });
  const cancelled = await register(fresh(), {
    steps: [{ stepId: "w", type: "EVENT_WAIT", eventPattern: "never" }],
    cancellationTriggers: [{ ...condition, reason: "event.payload.why" }],
  });
  const begun = await register(fresh(), {
    steps: [{ stepId: "s", type: "TASK", taskId: "echo" }],
    startTriggers: [{ eventPattern: pattern }],
  });
  const emitting = await register(fresh(), {
    steps: [
      { stepId: "first", type: "TASK", taskId: "echo", ...to("tell") },
      emit(pattern, { n: "${ input.n }", why: "told" }),
    ],
  });
  const [one, two] = [await start(waiting, { n: 1 }), await start(cancelled, { n: 1 })];

  const emitter = await start(emitting, { n: 1 });

  expect(await settled(emitter)).toMatchObject({ status: "COMPLETED" });
  const id = `${emitter}:tell#1`;
  expect(await settled(one)).toMatchObject({
    status: "COMPLETED",
    output: { id, payload: { n: 1, why: "told" } },
  });
  expect(await settled(two)).toMatchObject({
    status: "CANCELLED",
    cancellation: { source: "EVENT", eventId: id, reason: "told" },
  });
  const [third] = await instancesOf(begun);
  expect(third).toMatchObject({ startEventId: id, input: { n: 1, why: "told" } });
  await eventually("the counts", async () => (await eventsOf(pattern))[0]?.done);
  expect(await eventsOf(pattern)).toEqual([
    { id, actor: `instance:${emitter}`, delivered: 1, cancelled: 1, started: 1, done: true },
  ]);
  const { body: history } = await api.call("GET", `/v1/instances/${emitter}/history`);
  expect(history.items).toContainEqual(
    expect.objectContaining({
      type: "workflow.event.emitted",
      stepId: "tell",
      data: { eventId: id, pattern },
    }),
  );
});

test("of its own waits an instance hears those that were open, however close they are", async () => {
  const pattern = fresh();
  const wait = (stepId: string, more: object = {}) => ({
    stepId,
    type: "EVENT_WAIT",
    eventPattern: pattern,
    eventTimeout: { duration: "PT1S" },
    ...more,
  });
  const branch = (name: string, steps: object[]) => ({ name, steps });
  const id = await register(fresh(), {
    steps: [
      {
        stepId: "fork",
        type: "PARALLEL",
        onBranchError: "CONTINUE",
        branches: [
          branch("a", [wait("early")]),
          branch("b", [emit(pattern, {}, to("late")), wait("late")]),
          branch("c", [wait("beside")]),
        ],
      },
    ],
  });

  const { state } = await settled(await start(id));

  // The third branch begins after the second has emitted, in the same commit.
  expect(state.steps).toMatchObject({
    early: { status: "COMPLETED" },
    late: { status: "FAILED" },
    beside: { status: "FAILED" },
  });
});

test("what a process emitted and did not come to match is matched by the reconciler", async () => {
  const pattern = fresh();
  const begun = await register(fresh(), {
    steps: [{ stepId: "s", type: "TASK", taskId: "echo" }],
    startTriggers: [{ eventPattern: pattern }],
  });
  const emitting = await register(fresh(), { steps: [emit(pattern)] });
  // It dies between its commit and what follows.
  const dying = { ...api.services, emissions: { match: () => {}, close: async () => {} } };

  const caller = { tenantId: "default", actor: "test" };
  const { instance } = await startInstance(dying, caller, { workflowId: emitting });

  expect(instance.snapshot.status).toBe("COMPLETED");
  await eventually("the reconciler", async () => (await eventsOf(pattern))[0]?.done, {
    timeoutMs: 20_000,
  });
  expect(await instancesOf(begun)).toHaveLength(1);
});

test("a workflow that its own event starts goes on by itself, and holds up nobody", async () => {
  const pattern = fresh();
  const id = await register(fresh(), {
    steps: [emit(pattern, { n: "${ input.n + 1 }" })],
    startTriggers: [{ eventPattern: pattern, eventCondition: "event.payload.n < 50" }],
  });

  const { body } = await api.call("POST", "/v1/events", { pattern, payload: { n: 0 } });

  expect(body).toMatchObject({ started: 1 });
  await eventually("the last of the chain", async () => (await instancesOf(id)).length === 50, {
    timeoutMs: 20_000,
  });
  await eventually("the last event", async () => {
    const events = await eventsOf(pattern);
    return events.length === 51 && events.every(({ done }) => done);
  });
  expect(await instancesOf(id)).toHaveLength(50);
});
