import { randomUUID } from "node:crypto";
import { insertEvents } from "@millrace/store";
import { eventually } from "@millrace/testkit";
import { sql } from "kysely";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openTestApi, type TestApi } from "./support.ts";

// Events that start instances. No worker runs: what matters is whether an instance is there.

let api: TestApi;
let working: TestApi;
beforeAll(async () => {
  api = await openTestApi();
  working = await openTestApi({ isWorking: true });
});
afterAll(async () => {
  await api.close();
  await working.close();
});

/** Names of its own, so that tests do not start each other's definitions. */
const fresh = () => ({ id: `wf_${randomUUID().slice(0, 8)}`, pattern: `placed.${randomUUID()}` });

const steps = [{ stepId: "say", type: "TASK", taskId: "echo" }];

interface Registered {
  readonly id: string;
  readonly [field: string]: unknown;
}

async function register(definition: Registered, tenant?: string) {
  const headers = tenant === undefined ? {} : { "millrace-tenant": tenant };
  const { status, body } = await api.call(
    "PUT",
    `/v1/definitions/${definition.id}`,
    { steps, ...definition },
    headers,
  );
  expect({ status, body }).toMatchObject({ status: 201 });
}

async function publish(pattern: string, payload: unknown = {}, more: object = {}) {
  const { status, body } = await api.call("POST", "/v1/events", { pattern, payload, ...more });
  expect(status).toBe(202);
  return body;
}

async function startedOf({ id }: { readonly id: string }, tenantId = "default", on = api) {
  const query = `workflowId=${id}&tenantId=${tenantId}`;
  return (await on.call("GET", `/v1/instances?${query}`)).body.items;
}

test("an event starts one instance of each definition, and the same event none again", async () => {
  const { id, pattern } = fresh();
  const other = fresh();
  const trigger = { eventPattern: pattern, correlationId: "${ event.payload.order }" };
  // Both of its triggers match, and start one.
  await register({
    id,
    startTriggers: [trigger, { eventPattern: pattern.replace("placed", "*") }],
  });
  await register({ id: other.id, startTriggers: [trigger] });
  const event = { id: `event-${pattern}` };

  const first = await publish(pattern, { order: 7 }, event);
  const again = await publish(pattern, { order: 7 }, event);

  expect(first).toEqual({ ...event, duplicate: false, delivered: 0, cancelled: 0, started: 2 });
  expect(again).toEqual({ ...event, duplicate: true, delivered: 0, cancelled: 0, started: 0 });
  const [instance, ...more] = await startedOf({ id });
  expect(more).toEqual([]);
  expect(instance).toMatchObject({
    input: { order: 7 },
    correlationId: "7",
    startEventId: event.id,
    status: "RUNNING",
  });
  const { body: history } = await api.call("GET", `/v1/instances/${instance.id}/history`);
  expect(history.items[0]).toMatchObject({
    type: "workflow.created",
    actor: "event",
    data: { eventId: event.id },
  });
  expect(await startedOf(other)).toHaveLength(1);
});

test("an input that does not fit starts nothing and is listed, in a batch too", async () => {
  const { id, pattern } = fresh();
  await register({
    id,
    inputSchema: { type: "object", required: ["n"], properties: { n: { type: "integer" } } },
    startTriggers: [{ eventPattern: pattern, input: { n: "${ event.payload.n }" } }],
  });
  const failing = fresh();
  await register({
    id: failing.id,
    startTriggers: [{ eventPattern: pattern, input: { size: "${ size(event.payload.n) }" } }],
  });

  const { body } = await api.call("POST", "/v1/events:batch", {
    items: [
      { pattern, payload: { n: "one" } },
      { pattern, payload: { n: 1 } },
    ],
  });

  const [refused, taken] = body.results.map(({ event }: { event: object }) => event);
  expect(refused).toMatchObject({
    started: 1,
    rejected: [{ workflowId: id, errors: [{ path: "/input/n", code: "type" }] }],
  });
  expect(taken).toMatchObject({
    started: 1,
    rejected: [{ workflowId: failing.id, errors: [{ path: "/input/size" }] }],
  });
  expect(await startedOf({ id })).toHaveLength(1);
  expect(await startedOf(failing)).toHaveLength(1);
});

test("a version that is registered stops the triggers of the one before, and equal content keeps them", async () => {
  const { id, pattern } = fresh();
  const keyed = (kind: string) => ({
    eventPattern: pattern,
    eventCondition: `event.payload.kind === '${kind}'`,
  });
  await register({ id, startTriggers: [keyed("old"), keyed("both")] });
  await register({ id, startTriggers: [keyed("new"), keyed("both")] });
  await api.call("PUT", `/v1/definitions/${id}`, {
    id,
    steps,
    startTriggers: [keyed("new"), keyed("both")],
  });

  const started = [];
  for (const kind of ["old", "new", "both", "none"]) {
    started.push((await publish(pattern, { kind })).started);
  }
  await register({ id, steps: [...steps], description: "without triggers" });

  expect(started).toEqual([0, 1, 1, 0]);
  expect((await publish(pattern, { kind: "both" })).started).toBe(0);
  const versions = (await startedOf({ id })).map(
    ({ workflowVersion }: { workflowVersion: number }) => workflowVersion,
  );
  expect(versions).toEqual([2, 2]);
});

test("a shared definition serves every tenant that has none of its own under its id", async () => {
  const { id, pattern } = fresh();
  await register({ id, startTriggers: [{ eventPattern: pattern }] });
  await register({ id, description: "another" }, "own");

  const started = [];
  for (const tenantId of ["some", "own", "default"]) {
    started.push((await publish(pattern, {}, { tenantId })).started);
  }

  expect(started).toEqual([1, 0, 1]);
  expect(await startedOf({ id }, "some")).toMatchObject([{ tenantId: "some" }]);
  expect(await startedOf({ id }, "own")).toEqual([]);
});

test("an event finds its trigger among thousands of the same pattern by its key", async () => {
  const { id, pattern } = fresh();
  await register({
    id,
    startTriggers: [{ eventPattern: pattern, eventCondition: "event.payload.n === 5" }],
  });
  const { db } = api.services.database;
  await sql`insert into start_triggers
    select tenant_id, 'other_' || n, 0, 1, pattern, event_paths, n
    from start_triggers, generate_series(1, 5000) n where workflow_id = ${id}`.execute(db);

  const { started } = await publish(pattern, { n: 5 });

  expect(started).toBe(1);
});

test("the event that started an instance is used, and does not satisfy its waits", async () => {
  const { id, pattern } = fresh();
  const wait = { stepId: "wait", type: "EVENT_WAIT", eventPattern: pattern, lookback: "instance" };
  await register({ id, steps: [wait], startTriggers: [{ eventPattern: pattern }] });

  await publish(pattern, { n: 1 });
  const [{ id: instance }] = await startedOf({ id });
  const [{ state }] = await startedOf({ id });
  const second = await publish(pattern, { n: 2 });

  expect(state.waitingFor).toHaveLength(1);
  // It is heard by the first instance, and starts another.
  expect(second).toMatchObject({ delivered: 1, started: 1 });
  expect((await startedOf({ id })).map((each: { id: string }) => each.id)).toContain(instance);
});

test("what a publisher did not come to do is done by the reconciler, and never twice", async () => {
  const { id, pattern } = fresh();
  await working.call("PUT", `/v1/definitions/${id}`, {
    id,
    steps,
    startTriggers: [{ eventPattern: pattern }],
  });
  const { db } = working.services.database;
  const event = { tenantId: "default", pattern, payload: {}, occurredAt: new Date(), actor: "x" };
  const isMatched = async (eventId: string) => {
    const { rows } = await sql<{ started: number }>`
      select started from events where id = ${eventId} and matched_at is not null`.execute(db);
    return rows[0];
  };

  // One died before it matched anything, the other after it had started the instance.
  await insertEvents(db, [{ ...event, id: `before-${pattern}` }]);
  const after = `after-${pattern}`;
  await working.call("POST", "/v1/events", { id: after, pattern, payload: {} });
  await sql`update events set matched_at = null, started = 0, starts_done = false
    where id = ${after}`.execute(db);
  const settled = await eventually(
    "the reconciler",
    async () => {
      const all = [await isMatched(`before-${pattern}`), await isMatched(after)];
      return all.every((each) => each !== undefined) ? all : undefined;
    },
    { timeoutMs: 20_000 },
  );

  expect(settled).toEqual([{ started: 1 }, { started: 1 }]);
  const instances = await startedOf({ id }, "default", working);
  expect(
    instances.map(({ startEventId }: { startEventId: string }) => startEventId).toSorted(),
  ).toEqual([after, `before-${pattern}`]);
});

test("an event that is looked at again starts nothing that came after it", async () => {
  const { id, pattern } = fresh();
  const eventId = `early-${pattern}`;
  await working.call("POST", "/v1/events", { id: eventId, pattern, payload: {} });
  await working.call("PUT", `/v1/definitions/${id}`, {
    id,
    steps,
    startTriggers: [{ eventPattern: pattern }],
  });
  const { db } = working.services.database;

  await sql`update events set matched_at = null where id = ${eventId}`.execute(db);
  await eventually(
    "the reconciler",
    async () => {
      const { rows } = await sql`
        select from events where id = ${eventId} and matched_at is not null`.execute(db);
      return rows.length > 0;
    },
    { timeoutMs: 20_000 },
  );

  expect(await startedOf({ id }, "default", working)).toEqual([]);
});
