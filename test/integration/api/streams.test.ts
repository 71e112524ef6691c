import { randomUUID } from "node:crypto";
import { sampleWaitingCalls } from "@millrace/runtime";
import { eventually } from "@millrace/testkit";
import { CompiledQuery } from "kysely";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openTestApi, type TestApi, waiting } from "./support.ts";

// Server-sent events of one instance and of all of them.

let api: TestApi;
beforeAll(async () => {
  api = await openTestApi({ isWorking: true });
  sampleWaitingCalls(api.services);
  await api.call("PUT", "/v1/definitions/trip", trip);
  await api.call("PUT", "/v1/definitions/waiting", waiting);
});
afterAll(() => api.close());

/** Three steps, of which the second has to be tried twice. */
const trip = {
  id: "trip",
  steps: [
    { stepId: "book", type: "TASK", taskId: "echo", transitions: { default: "wait" } },
    { stepId: "wait", type: "DELAY", duration: "PT0.05S", transitions: { default: "go" } },
    { stepId: "go", type: "TASK", taskId: "echo" },
  ],
};

const start = async (workflowId: string, more: object = {}): Promise<string> =>
  (await api.call("POST", "/v1/instances", { workflowId, ...more })).body.id;

const missing = "01890a5d-ac96-774b-bcce-b302099a8057";

interface Received {
  readonly id: string;
  readonly name: string;
  // What an event holds is what the test is about.
  // oxlint-disable-next-line typescript/no-explicit-any
  readonly data: any;
}

interface Follower {
  readonly status: number;
  readonly headers: Headers;
  readonly received: readonly Received[];
  /** Of the last line that named one. */
  readonly lastId: string | undefined;
  /** Resolves when the server has ended the stream. */
  readonly ended: Promise<void>;
  hangUp(): void;
}

async function follow(path: string, headers: Record<string, string> = {}): Promise<Follower> {
  const gone = new AbortController();
  const response = await fetch(`${api.url}${path}`, { headers, signal: gone.signal });
  const received: Received[] = [];
  let lastId: string | undefined;
  const read = async () => {
    let text = "";
    for await (const chunk of response.body ?? []) {
      text += Buffer.from(chunk).toString();
      const blocks = text.split("\n\n");
      text = blocks.pop() ?? "";
      for (const block of blocks) {
        const fields = new Map(
          block.split("\n").map((line) => line.split(/: (.*)/s, 2) as [string, string]),
        );
        lastId = fields.get("id") ?? lastId;
        const data = fields.get("data");
        if (data !== undefined)
          received.push({
            id: fields.get("id") ?? "",
            name: fields.get("event") ?? "",
            data: JSON.parse(data),
          });
      }
    }
  };
  const ended = read().catch((error: unknown) => {
    if (!gone.signal.aborted) throw error;
  });
  return {
    status: response.status,
    headers: response.headers,
    received,
    get lastId() {
      return lastId;
    },
    ended,
    hangUp: () => gone.abort(),
  };
}

const historyOf = async (id: string): Promise<readonly { type: string; version: number }[]> =>
  (await api.call("GET", `/v1/instances/${id}/history?limit=500`)).body.items;

test("a stream of an instance is its history, and ends with it", async () => {
  const id = await start("trip", { correlationId: "c-1" });

  const stream = await follow(`/v1/instances/${id}/stream`);
  await stream.ended;

  expect(stream.status).toBe(200);
  expect(stream.headers.get("content-type")).toBe("text/event-stream");
  const history = await historyOf(id);
  expect(stream.received.map(({ name, data }) => [name, data.version])).toEqual(
    history.map(({ type, version }) => [type, version]),
  );
  expect(stream.received.at(-1)).toMatchObject({
    name: "workflow.completed",
    data: {
      type: "workflow.completed",
      workflowId: "trip",
      workflowVersion: 1,
      instanceId: id,
      tenantId: "default",
      correlationId: "c-1",
      status: "COMPLETED",
      oldStatus: "RUNNING",
      reason: null,
    },
  });
  const waits = stream.received.filter(({ data }) => data.stepId === "wait");
  expect(waits.map(({ name, data }) => [name, data.status])).toEqual([
    ["workflow.step.waiting", "RUNNING"],
    ["workflow.step.completed", "WAITING_FOR_EVENT"],
  ]);
});

test("whoever was cut off at any place goes on behind it, without loss and without repetition", async () => {
  const id = await start("trip");
  const whole = await follow(`/v1/instances/${id}/stream`);
  await whole.ended;

  const ids = whole.received.map((event) => event.id);
  const rests = await Promise.all(
    ids.slice(0, -1).map(async (lastId) => {
      const rest = await follow(`/v1/instances/${id}/stream`, { "last-event-id": lastId });
      await rest.ended;
      return rest.received.map((event) => event.id);
    }),
  );
  const after = await follow(`/v1/instances/${id}/stream?lastEventId=${ids.at(-1)}`);
  const page = await api.call("GET", `/v1/instances/${id}/history?cursor=${ids[1]}`);

  expect(rests).toEqual(ids.slice(0, -1).map((_, index) => ids.slice(index + 1)));
  expect(new Set(ids).size).toBe(ids.length);
  expect(after.status).toBe(204);
  expect(page.body.items[0].type).toBe(whole.received[2]?.name);
});

test("what is committed comes while it is followed, told by pub/sub", async () => {
  const order = randomUUID();
  const id = await start("waiting", { input: { order } });
  const stream = await follow(`/v1/instances/${id}/stream?types=workflow.*,workflow.step.waiting`);
  await eventually("it waits", () => stream.received.at(-1)?.data.status === "WAITING_FOR_EVENT");

  await api.call("POST", `/v1/instances/${id}/pause`, { reason: "lunch" });
  await eventually("the pause came", () =>
    stream.received.some(({ name }) => name === "workflow.paused"),
  );
  await api.call("POST", `/v1/instances/${id}/cancel`, { reason: "no more" });
  await stream.ended;

  const types = new Set(stream.received.map(({ name }) => name));
  expect([...types].filter((type) => type.startsWith("workflow.step."))).toEqual([
    "workflow.step.waiting",
  ]);
  const told = (type: string) => stream.received.find(({ name }) => name === type)?.data;
  expect(told("workflow.paused")).toMatchObject({
    status: "PAUSED",
    oldStatus: "WAITING_FOR_EVENT",
    reason: "lunch",
  });
  expect(told("workflow.cancelled")).toMatchObject({
    status: "CANCELLED",
    oldStatus: "PAUSED",
    reason: "no more",
  });
});

test("one that has failed is followed on, since it may be retried", async () => {
  await api.call("PUT", "/v1/definitions/broken", {
    id: "broken",
    steps: [
      {
        stepId: "fall",
        type: "TASK",
        taskId: "fail",
        input: { message: "no luck" },
        retry: { maxAttempts: 1 },
      },
    ],
  });
  const id = await start("broken");
  const stream = await follow(`/v1/instances/${id}/stream`);
  const failures = () => stream.received.filter(({ name }) => name === "workflow.failed");
  await eventually("it failed", () => failures().length === 1);

  await api.call("POST", `/v1/instances/${id}/retry`);
  await eventually("it failed again", () => failures().length === 2);
  stream.hangUp();
  await stream.ended;

  expect(failures()[0]?.data).toMatchObject({ status: "FAILED", oldStatus: "RUNNING" });
  expect(failures()[0]?.data.reason).toContain("no luck");
});

test("a stream of all tells what the histories hold, to whoever was cut off too", async () => {
  const first = await follow("/v1/stream");
  await eventually("it began", () => first.lastId !== undefined);
  const begin = first.lastId ?? "";
  const ids = await Promise.all(Array.from({ length: 12 }, () => start("trip")));
  const isTold = (stream: Follower) => () =>
    ids.every((id) =>
      stream.received.some(
        ({ name, data }) => name === "workflow.completed" && data.instanceId === id,
      ),
    );
  await eventually("all are told", isTold(first));
  const cut = first.received[Math.floor(first.received.length / 2)]?.id ?? "";
  const again = await follow("/v1/stream", { "last-event-id": begin });
  const rest = await follow("/v1/stream", { "last-event-id": cut });
  await eventually("all are told again", isTold(again));
  const whole = await follow("/v1/stream?lastEventId=0");
  await eventually("everything is told", isTold(whole));
  await eventually(
    "the rest is told",
    () => rest.received.at(-1)?.id === first.received.at(-1)?.id,
  );

  for (const stream of [first, again, rest, whole]) stream.hangUp();
  const idsOf = (stream: Follower) => stream.received.map(({ id }) => id);
  expect(idsOf(again)).toEqual(idsOf(first));
  expect(whole.received[0]?.data.version).toBe(1);
  expect(idsOf(whole)).toEqual(expect.arrayContaining(idsOf(first)));
  expect(idsOf(rest)).toEqual(idsOf(first).slice(idsOf(first).indexOf(cut) + 1));
  for (const id of ids) {
    const told = first.received.filter(({ data }) => data.instanceId === id);
    expect(told.map(({ name, data }) => [name, data.version])).toEqual(
      (await historyOf(id)).map(({ type, version }) => [type, version]),
    );
  }
});

test("nobody passes over a commit that began earlier and ends later", async () => {
  const { db } = api.services.database;
  const [early, late] = [await start("waiting"), await start("waiting")];
  const stream = await follow("/v1/stream?types=workflow.patched");
  const patched = () => stream.received.map(({ data }) => data.instanceId);
  await eventually("it began", () => stream.lastId !== undefined);

  await db.transaction().execute(async (trx) => {
    // It has its number before the other commit, and is committed after it.
    await trx.executeQuery(
      CompiledQuery.raw(
        `insert into history (tenant_id, instance_id, version, commit_id, at, engine_rev, actor,
           signals, changes, entries)
         select tenant_id, id, 1000, gen_random_uuid(), now(), 1, 'test', '[]', '{}',
           '[{"type":"workflow.patched"}]'
         from workflow_instances where id = $1`,
        [early],
      ),
    );
    const { body } = await api.call("GET", `/v1/instances/${late}`);
    const patch = { state: { variables: { total: 2 } } };
    const ifMatch = { "if-match": `"${body.version}"` };
    const answer = await api.call("PATCH", `/v1/instances/${late}`, patch, ifMatch);
    expect(answer.status).toBe(200);
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(patched()).toEqual([]);
  });

  await eventually("both are told", () => patched().length === 2);
  stream.hangUp();
  expect(patched()).toEqual([early, late]);
});

test("tenants follow their own instances only", async () => {
  const other = { "millrace-tenant": "acme" };
  const stream = await follow("/v1/stream", other);
  await eventually("it began", () => stream.lastId !== undefined);
  const ours = await start("trip");
  const { body } = await api.call("POST", "/v1/instances", { workflowId: "trip" }, other);

  await eventually("theirs is told", () =>
    stream.received.some(({ name }) => name === "workflow.completed"),
  );
  const notTheirs = await follow(`/v1/instances/${ours}/stream`, other);
  const ofAny = await follow(`/v1/instances/${body.id}/stream`);
  await ofAny.ended;
  stream.hangUp();

  expect(new Set(stream.received.map(({ data }) => data.instanceId))).toEqual(new Set([body.id]));
  expect(notTheirs.status).toBe(404);
  expect(ofAny.received.at(-1)?.name).toBe("workflow.completed");
});

test("what cannot be followed is refused before anything is sent", async () => {
  const id = await start("waiting");
  const refusals = await Promise.all(
    [
      `/v1/instances/${missing}/stream`,
      `/v1/instances/${id}/stream?lastEventId=nonsense`,
      `/v1/instances/${id}/stream?lastEventId=${cursor("h.999.0.1")}`,
      `/v1/stream?lastEventId=${cursor("h.1.0.1")}`,
      `/v1/stream?lastEventId=${cursor("a.9000000000000000000.1")}`,
      `/v1/stream?lastEventId=${cursor("a.99999999999999999999.1")}`,
      "/v1/stream?types=order.paid",
      "/v1/stream?since=yesterday",
    ].map(async (path) => (await api.call("GET", path)).body.code),
  );
  const head = await fetch(`${api.url}/v1/stream`, { method: "HEAD" });

  expect(refusals).toEqual([
    "INSTANCE_NOT_FOUND",
    "INVALID_CURSOR",
    "INVALID_CURSOR",
    "INVALID_CURSOR",
    "INVALID_CURSOR",
    "INVALID_CURSOR",
    "INVALID_QUERY",
    "INVALID_QUERY",
  ]);
  expect(head.status).toBe(405);
});

test("streams are counted while they are open", async () => {
  const id = await start("waiting");
  const streams = await Promise.all(
    Array.from({ length: 5 }, () => follow(`/v1/instances/${id}/stream`)),
  );
  const count = async () =>
    Number(/^millrace_streams (\d+)$/m.exec(await api.services.metrics.text())?.[1]);
  const before = await count();

  for (const stream of streams) stream.hangUp();

  expect(before).toBeGreaterThanOrEqual(5);
  await eventually("none is left", async () => (await count()) === before - 5);
});

const cursor = (text: string) => Buffer.from(text).toString("base64url");
