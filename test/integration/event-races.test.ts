import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { cancelInstance } from "@millrace/runtime";
import { insertEvents, markMatched } from "@millrace/store";
import { eventually } from "@millrace/testkit";
import { sql } from "kysely";
import { afterAll, beforeAll, expect, test } from "vitest";
import { align, type Race } from "../support/aligned.ts";
import { openTestApi, type TestApi } from "./api/support.ts";
import { isWaiting, newEvent, waitsOf } from "./store/support.ts";

// Exactly one of event, timeout and cancel wins a wait, and an event for one wait alone goes on to the
// next where that wait could not use it.

let api: TestApi;
beforeAll(async () => {
  api = await openTestApi({ isWorking: true });
});
afterAll(() => api.close());

const fresh = () => `t${randomUUID().slice(0, 8)}`;
const wait = (more: object) => ({ stepId: "w", type: "EVENT_WAIT", ...more });
const own = { eventCondition: "event.payload.n === input.n" };

async function register(definition: object): Promise<string> {
  const id = fresh();
  const { status, body } = await api.call("PUT", `/v1/definitions/${id}`, { id, ...definition });
  expect({ status, body }).toMatchObject({ status: 201 });
  return id;
}

async function start(workflowId: string, input: unknown = {}) {
  return (await api.call("POST", "/v1/instances", { workflowId, input })).body;
}

async function publish(pattern: string, payload: unknown = {}) {
  return (await api.call("POST", "/v1/events", { pattern, payload })).body;
}

const byName = (one: string, other: string) => one.localeCompare(other);
const act = (id: string, verb: string) => api.call("POST", `/v1/instances/${id}/${verb}`, {});
const read = async (id: string) => (await api.call("GET", `/v1/instances/${id}`)).body;
const settled = async (id: string) => (await api.call("GET", `/v1/instances/${id}?wait=20`)).body;

async function rowsLeft() {
  const { db } = api.services.database;
  const { rows } = await sql<{ waits: number; releases: number }>`
    select (select count(*)::int from event_releases) as releases, (
      select count(*)::int from waits join workflow_instances i on i.id = instance_id
      where i.status in ('COMPLETED', 'FAILED', 'CANCELLED')) as waits`.execute(db);
  return rows[0];
}

/** What an event came to, as it is stored. */
async function storedOf(id: string) {
  const { rows } = await sql<{ taken_by: string | null; delivered: number }>`
    select taken_by, delivered from events where id = ${id}`.execute(api.services.database.db);
  return rows[0];
}

// deliver: ONE

const branch = (name: string, ...steps: object[]) => ({ name, steps });
const fork = (branches: object[], more: object = {}) => ({
  stepId: "fork",
  type: "PARALLEL",
  branches,
  ...more,
});

/** While it is paused its waits take what comes, and what the end of the pause brings is void for one. */
const ways: readonly [
  string,
  (one: { eventPattern: string }, other: string) => object,
  string,
  string,
][] = [
  ["a cancel of its instance", (one) => ({ steps: [wait(one)] }), "cancel", "CANCELLED"],
  [
    "another of several events",
    (one, other) => ({
      steps: [
        wait({
          deliver: "ONE",
          events: [{ eventPattern: one.eventPattern }, { eventPattern: other }],
        }),
      ],
    }),
    "resume",
    "COMPLETED",
  ],
  [
    "a branch that was faster",
    (one, other) => ({
      steps: [
        fork(
          [
            branch("a", wait(one)),
            branch("b", { stepId: "v", type: "EVENT_WAIT", eventPattern: other }),
          ],
          { join: "ANY" },
        ),
      ],
    }),
    "resume",
    "COMPLETED",
  ],
  [
    "an END beside it",
    (one, other) => ({
      steps: [
        fork([
          branch("a", wait(one)),
          branch(
            "b",
            {
              stepId: "v",
              type: "EVENT_WAIT",
              eventPattern: other,
              transitions: { default: "end" },
            },
            { stepId: "end", type: "END", outcome: "COMPLETED" },
          ),
        ]),
      ],
    }),
    "resume",
    "COMPLETED",
  ],
  [
    "a failure beside it",
    (one, other) => ({
      steps: [
        fork([
          branch("a", wait(one)),
          branch(
            "b",
            {
              stepId: "v",
              type: "EVENT_WAIT",
              eventPattern: other,
              transitions: { default: "end" },
            },
            { stepId: "end", type: "END", outcome: "FAILED", error: { type: "X", message: "x" } },
          ),
        ]),
      ],
    }),
    "resume",
    "FAILED",
  ],
];

test.each(ways)(
  "an event for one wait goes on to the next that waits, where %s made it void",
  async (_what, definitionOf, verb, status) => {
    const [pattern, other] = [fresh(), fresh()];
    const one = { eventPattern: pattern, deliver: "ONE" };
    const next = await register({ steps: [wait(one)] });
    const taker = await start(await register(definitionOf(one, other)));
    await act(taker.id, "pause");
    const [second, third] = [await start(next), await start(next)];

    await publish(other);
    const event = await publish(pattern);
    const taken = await storedOf(event.id);
    await act(taker.id, verb);

    expect(event).toMatchObject({ delivered: 1 });
    expect(taken).toEqual({ taken_by: taker.id, delivered: 1 });
    expect(await settled(taker.id)).toMatchObject({ status });
    expect(await settled(second.id)).toMatchObject({
      status: "COMPLETED",
      output: { id: event.id },
    });
    expect(await read(third.id)).toMatchObject({ status: "WAITING_FOR_EVENT" });
    expect(await storedOf(event.id)).toEqual({ taken_by: second.id, delivered: 1 });
    await eventually("the rows to go", async () => (await rowsLeft())?.releases === 0);
    await act(third.id, "cancel");
  },
);

test("an event that came back to nobody is there for a wait that looks back, its own instance's too", async () => {
  const [pattern, other] = [fresh(), fresh()];
  const again = { ...wait({ eventPattern: pattern, deliver: "ONE", lookback: "instance" }) };
  const id = await register({
    steps: [
      wait({
        deliver: "ONE",
        events: [{ eventPattern: pattern }, { eventPattern: other }],
        transitions: { default: "again" },
      }),
      { ...again, stepId: "again" },
    ],
  });
  const instance = await start(id);
  await act(instance.id, "pause");
  const first = await publish(other);
  const event = await publish(pattern);

  await act(instance.id, "resume");

  expect((await settled(instance.id)).state.steps).toMatchObject({
    w: { output: { id: first.id } },
    again: { output: { id: event.id } },
  });
});

test("what a process did not come to hand on is handed on by the reconciler", async () => {
  const pattern = fresh();
  const id = await register({ steps: [wait({ eventPattern: pattern, deliver: "ONE" })] });
  const [taker, next] = [await start(id), await start(id)];
  await act(taker.id, "pause");
  const event = await publish(pattern);
  // It dies when it has taken the event back, and before it has looked for another wait.
  const { intake } = api.services;
  const shapes = () => Promise.reject(new Error("died"));
  const dying = { ...api.services, intake: { ...intake, shapes } };

  await cancelInstance(dying, { tenantId: "default", actor: "test" }, taker.id, {});

  expect(await storedOf(event.id)).toEqual({ taken_by: null, delivered: 1 });
  expect(await rowsLeft()).toMatchObject({ releases: 1 });
  expect(await settled(next.id)).toMatchObject({ status: "COMPLETED", output: { id: event.id } });
  await eventually("the row to go", async () => (await rowsLeft())?.releases === 0);
});

test("what an event leaves of itself, that was matched beside the end of its instance, goes without the job", async () => {
  const { db } = api.services.database;
  const pattern = fresh();
  const id = await register({ steps: [wait({ eventPattern: pattern })] });
  const instance = await start(id);
  const [event] = await insertEvents(db, [newEvent({ tenantId: "default", pattern })]);
  if (event === undefined || event === "duplicate") throw new Error("not stored");
  const deliveries = async () =>
    (await sql`select from event_deliveries where event_id = ${event.id}`.execute(db)).rows.length;

  // The publisher dies before it adds the job.
  const cancelling = await db.transaction().execute(async (publisher) => {
    expect(await markMatched(publisher, event, await waitsOf(db, event))).toHaveLength(1);
    const cancel = act(instance.id, "cancel");
    await eventually("the cancel to wait for the match", () => isWaiting(db));
    return { cancel };
  });
  expect(await cancelling.cancel).toMatchObject({ status: 202 });

  expect(await settled(instance.id)).toMatchObject({ status: "CANCELLED" });
  expect(await deliveries()).toBe(1);
  await eventually("the delivery to go", async () => (await deliveries()) === 0);
  await eventually("the row to go", async () => (await rowsLeft())?.releases === 0);
});

test("events for one wait against cancels: each event comes to one instance, none to two", async ({
  annotate,
}) => {
  const pattern = fresh();
  const id = await register({ steps: [wait({ eventPattern: pattern, deliver: "ONE", ...own })] });
  const pairs = await Promise.all(
    Array.from({ length: 48 }, async (_each, n) => [
      await start(id, { n }),
      await start(id, { n }),
    ]),
  );
  const before = pairs.map(([one, other]) =>
    [one, other].toSorted((a, b) => (a.id < b.id ? -1 : 1)),
  );

  const races = before.map(([taker], n): Race => ({
    open: () => act(taker.id, "cancel"),
    publish: () => publish(pattern, { n }),
  }));
  await align(races, { lanes: 4, staggerMs: [-8, -6, -4, -3, -2, -1, 0, 1] });
  const ended = await eventually("one of each pair to have it", async () => {
    const all = await Promise.all(
      before.map((pair) => Promise.all(pair.map(({ id: of }) => read(of)))),
    );
    const have = all.map((pair) => pair.filter(({ status }) => status === "COMPLETED").length);
    return have.every((count) => count > 0) ? all : undefined;
  });

  const have = ended.map((pair) => pair.filter(({ status }) => status === "COMPLETED"));
  expect(have.map(({ length }) => length)).toEqual(before.map(() => 1));
  const { rows } = await sql<{ delivered: number }>`
    select delivered from events where pattern = ${pattern} and delivered <> 1`.execute(
    api.services.database.db,
  );
  expect(rows).toEqual([]);
  await eventually("the rows to go", async () => (await rowsLeft())?.releases === 0);
  expect(await rowsLeft()).toEqual({ waits: 0, releases: 0 });
  const handedOn = before.filter(([taker], n) => have[n]?.[0]?.id !== taker.id);
  await annotate(`${handedOn.length} of ${before.length} events came to the second instance`);
});

// Timeouts

const done = { stepId: "done", type: "END", outcome: "COMPLETED" };
const go = { transitions: { default: "done" } };

/** Long enough for the starts of all before it, on a busy machine too. */
const dueMs = 2_000;
const dueIn = (ms: number) => ({ duration: `PT${ms / 1_000}S` });

const timeouts: readonly [string, (pattern: string, due: { duration: string }) => object][] = [
  [
    "of the instance",
    (pattern, due) => ({
      timeout: due.duration,
      steps: [wait({ eventPattern: pattern, ...own, ...go }), done],
    }),
  ],
  [
    "of a composite around it",
    (pattern, due) => ({
      steps: [
        fork([branch("a", wait({ eventPattern: pattern, ...own, ...go }), done)], {
          totalTimeout: due.duration,
        }),
      ],
    }),
  ],
  [
    "of a wait for all of several events",
    (pattern, due) => ({
      steps: [
        wait({
          mode: "ALL",
          events: [{ eventPattern: pattern, ...own }, { eventPattern: "before" }],
          eventTimeout: due,
        }),
      ],
    }),
  ],
];

test.each(timeouts)(
  "a timeout %s takes no wait that was counted as delivered",
  async (_whose, definitionOf) => {
    const pattern = fresh();
    const id = await register(definitionOf(pattern, dueIn(dueMs)));
    const outcomes = await Promise.all(
      Array.from({ length: 40 }, async (_each, n) => {
        await sleep(n * 12);
        const instance = await start(id, { n });
        const early = await publish("before", {});
        expect(early.duplicate).toBe(false);
        const dueAt = new Date(instance.createdAt).getTime() + dueMs;
        await sleep(dueAt - Date.now() - 4 + (n % 12) * 2);
        const { delivered } = await publish(pattern, { n });
        return [delivered, (await settled(instance.id)).status];
      }),
    );

    const wrong = outcomes.filter(
      ([delivered, status]) => status !== (delivered === 1 ? "COMPLETED" : "FAILED"),
    );
    expect(wrong).toEqual([]);
    expect(await rowsLeft()).toEqual({ waits: 0, releases: 0 });
  },
);

test("of a paused wait its timeout and an event have what came first, at whatever moment it is paused", async () => {
  const pattern = fresh();
  const ids = await Promise.all(
    timeouts.map(([, definitionOf]) => register(definitionOf(pattern, dueIn(2 * dueMs)))),
  );
  const outcomes = await Promise.all(
    Array.from({ length: 45 }, async (_each, n) => {
      const { createdAt, id } = await start(ids[n % ids.length] ?? "", { n });
      await publish("before", {});
      const dueAt = new Date(createdAt).getTime() + 2 * dueMs;
      // Long before, long after, or as close as can be, as the pause is to either.
      const apartMs = n < 6 ? -3_000 : n < 12 ? 250 : (n % 12) * 2 - 8;
      const pausing = sleep(dueAt - Date.now() + (n < 12 ? -3_100 : ((n * 7) % 24) - 12));
      let isPaused = false;
      const pause = async () => {
        await pausing;
        await act(id, "pause");
        isPaused = true;
      };
      const paused = pause();
      await sleep(dueAt + apartMs - Date.now());
      // Which came first say the times at which it did happen: the machine may have stood still. Until it is
      // paused a wait has what reaches its row first, and its timer may come some milliseconds late.
      const isLate = isPaused && Date.now() >= dueAt;
      const { delivered } = await publish(pattern, { n });
      const isEarly = Date.now() < dueAt;
      await paused;
      await act(id, "resume");
      return { isEarly, isLate, delivered, status: (await settled(id)).status };
    }),
  );

  const wrong = outcomes.filter(({ isEarly, isLate, delivered, status }) => {
    const isFirst = delivered === 1;
    return status !== (isFirst ? "COMPLETED" : "FAILED") || (isFirst ? isLate : isEarly);
  });
  expect(wrong).toEqual([]);
  expect(await rowsLeft()).toEqual({ waits: 0, releases: 0 });
});

test("an event for one wait passes by a paused one whose time is over", async () => {
  const one = { eventPattern: fresh(), deliver: "ONE" };
  const late = await start(
    await register({ steps: [wait({ ...one, eventTimeout: { duration: "PT0.2S" } })] }),
  );
  const next = await start(await register({ steps: [wait(one)] }));
  await act(late.id, "pause");
  await sleep(new Date(late.createdAt).getTime() + 400 - Date.now());

  const event = await publish(one.eventPattern);
  await act(late.id, "resume");

  expect(event).toMatchObject({ delivered: 1 });
  expect(await settled(next.id)).toMatchObject({ status: "COMPLETED", output: { id: event.id } });
  expect(await settled(late.id)).toMatchObject({ status: "FAILED", error: { kind: "TIMEOUT" } });
});

// Several events

test("of two events for the first of several one wins, and the other goes on", async () => {
  const [a, b] = [fresh(), fresh()];
  const events = [
    { eventPattern: a, ...own },
    { eventPattern: b, ...own },
  ];
  const id = await register({ steps: [wait({ events, deliver: "ONE" })] });
  const pairs = await Promise.all(
    Array.from({ length: 32 }, async (_each, n) => [
      await start(id, { n }),
      await start(id, { n }),
    ]),
  );

  const races = pairs.map((_pair, n): Race => ({
    open: () => publish(a, { n }),
    publish: () => publish(b, { n }),
  }));
  await align(races, { lanes: 4, staggerMs: [-3, -1, 0, 0, 1, 3, 5, 8] });
  const ended = await Promise.all(
    pairs.map((pair) => Promise.all(pair.map((instance) => settled(instance.id)))),
  );

  expect(
    ended.map((pair) => pair.map(({ output }) => output.pattern as string).toSorted(byName)),
  ).toEqual(pairs.map(() => [a, b].toSorted(byName)));
});

test("the last of all events against a cancel: one of the two, and nothing is left", async () => {
  const [a, b] = [fresh(), fresh()];
  const events = [
    { eventPattern: a, ...own },
    { eventPattern: b, ...own },
  ];
  const id = await register({ steps: [wait({ events, mode: "ALL" })] });
  const instances = await Promise.all(Array.from({ length: 32 }, (_each, n) => start(id, { n })));
  await Promise.all(instances.map((_each, n) => publish(a, { n })));

  const races = instances.map((instance, n): Race => ({
    open: () => act(instance.id, "cancel"),
    publish: () => publish(b, { n }),
  }));
  await align(races, { lanes: 4, staggerMs: [-12, -9, -6, -4, -2, 0, 1, 2] });
  const ended = await Promise.all(instances.map((instance) => settled(instance.id)));

  for (const { status, output } of ended) {
    if (status === "CANCELLED") continue;
    expect([status, output.map(({ pattern }: { pattern: string }) => pattern)]).toEqual([
      "COMPLETED",
      [a, b],
    ]);
  }
  await eventually("the rows to go", async () => (await rowsLeft())?.releases === 0);
  expect(await rowsLeft()).toEqual({ waits: 0, releases: 0 });
});

test.each([
  ["ALL", (a: { id: string }, b: { id: string }) => [{ id: a.id }, { id: b.id }]],
  ["ANY", (_a: { id: string }, b: { id: string }) => ({ id: b.id })],
])(
  "while it is paused a wait for %s takes the first match of each event, in order",
  async (mode, outputOf) => {
    const [a, b] = [fresh(), fresh()];
    const events = [{ eventPattern: a }, { eventPattern: b }];
    const instance = await start(await register({ steps: [wait({ events, mode })] }));
    await act(instance.id, "pause");

    const came = [await publish(b), await publish(a), await publish(a), await publish(b)];
    await act(instance.id, "resume");

    expect(came.map(({ delivered }) => delivered)).toEqual([1, 1, 0, 0]);
    expect((await settled(instance.id)).output).toMatchObject(outputOf(came[1], came[0]));
  },
);

test("a lookback for the first of several events takes the oldest of them all", async () => {
  const [a, b] = [fresh(), fresh()];
  const events = [{ eventPattern: a }, { eventPattern: b }];
  const id = await register({ steps: [wait({ events, lookback: "PT1H" })] });
  const [oldest] = [await publish(b), await publish(a), await publish(b)];

  const ended = await settled((await start(id)).id);

  expect(ended.output).toMatchObject({ id: oldest.id });
});

test("an event that meets a wait which has not looked back yet does not go before older ones", async () => {
  const pattern = fresh();
  const { db } = api.services.database;
  const steps = [wait({ eventPattern: pattern, lookback: "PT1H" })];
  const instance = await start(await register({ steps }));
  const [older] = await insertEvents(db, [newEvent({ tenantId: "default", pattern })]);
  if (older === undefined || older === "duplicate") throw new Error("not stored");
  // As right after the commit that opened the wait.
  await sql`with older as (
      update events set received_at = received_at - interval '1 min', matched_at = now() where id = ${older.id})
    update waits set looked_back = false where instance_id = ${instance.id}`.execute(db);

  const younger = await publish(pattern);

  expect((await settled(instance.id)).output).toMatchObject({ id: older.id });
  expect(younger).toMatchObject({ delivered: 0 });
});

test.each(["ANY", "ALL"])(
  "a wait for %s that an event satisfies twice is delivered once",
  async (mode) => {
    const pattern = fresh();
    const events = [{ eventPattern: pattern }, { eventPattern: "*", ...own }];
    const id = await register({ steps: [wait({ events, mode })] });
    const instance = await start(id, { n: pattern });

    expect(await publish(pattern, { n: pattern })).toMatchObject({ delivered: 1 });

    expect(await settled(instance.id)).toMatchObject({ status: "COMPLETED" });
  },
);
