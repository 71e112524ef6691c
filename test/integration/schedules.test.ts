import { randomUUID } from "node:crypto";
import { runScheduler } from "@millrace/runtime";
import { eventually } from "@millrace/testkit";
import { sql } from "kysely";
import { afterAll, beforeAll, expect, test } from "vitest";
import { echo, openTestApi, type TestApi, waiting } from "./api/support.ts";

// Schedules. No test waits for the clock: it says to the database that a tick was due before now.

let api: TestApi;
let other: { close(): Promise<void> };
beforeAll(async () => {
  api = await openTestApi({ isWorking: true });
  // Two schedulers look at every schedule.
  other = await runScheduler(api.services);
  await put("/v1/definitions/echo", echo);
  await put("/v1/definitions/waiting", waiting);
  await put("/v1/calendars/office", { id: "office", timeZone: "UTC" });
});
afterAll(async () => {
  await other.close();
  await api.close();
});

const hourMs = 3_600_000;
const minuteMs = 60_000;
const hourly = { interval: "PT1H", startDate: "2026-01-01T00:00:00Z" };
const minutely = { cronExpression: "* * * * *" };

/** The start of the hour or minute `count` of them ago: a tick of the rules above. */
const ago = (count: number, unitMs: number) =>
  new Date((Math.floor(Date.now() / unitMs) - count) * unitMs);

async function put(path: string, body: unknown) {
  const answer = await api.call("PUT", path, body);
  expect(answer).toMatchObject({ status: expect.toBeOneOf([200, 201]) });
  return answer.body;
}

async function makeSchedule(more: object, headers: Record<string, string> = {}): Promise<string> {
  const schedule = {
    type: "recurring",
    target: { type: "workflow", id: "echo" },
    timing: hourly,
    ...more,
  };
  const { status, body } = await api.call("POST", "/v1/schedules", schedule, headers);
  expect({ status, body }).toMatchObject({ status: 201 });
  return body.id as string;
}

/** Nobody has looked at it since. */
async function lastSeenTo(id: string, nextTick: Date): Promise<void> {
  const { database, queue } = api.services;
  await sql`update schedules set next_tick_at = ${nextTick}, due_at = ${nextTick}
    where id = ${id}`.execute(database.db);
  queue.wake.publish("schedule", { id });
}

const get = async (path: string) => (await api.call("GET", path)).body;
const runsOf = async (id: string) =>
  ((await get(`/v1/schedules/${id}/runs?limit=500`)).items as Run[]).toReversed();

interface Run {
  readonly kind: string;
  readonly tickAt: string;
  readonly status: string;
  readonly reason: string | null;
  readonly instanceId: string | null;
}

/** Tries until nothing is missing any more. */
async function settled(check: () => Promise<void>): Promise<void> {
  await eventually("what the schedules bring about", () => check().then(() => true));
}

/** What has come of each tick, in their order, once it is as many. */
async function outcomesOf(id: string, count: number): Promise<readonly string[]> {
  const runs = await eventually(`${count} runs`, async () => {
    const found = await runsOf(id);
    return found.length >= count ? found : undefined;
  });
  return runs.map(({ status, reason }) => reason ?? status);
}

test("two schedulers start one run for each tick, with where it comes from", async () => {
  const ids = await Promise.all(
    Array.from({ length: 12 }, () => makeSchedule({ overlapPolicy: "ALLOW_ALL" })),
  );

  await Promise.all(ids.map((id) => lastSeenTo(id, ago(4, hourMs))));

  const expected = [4, 3, 2, 1, 0].map((count) => ago(count, hourMs).toISOString());
  for (const id of ids) {
    await outcomesOf(id, 5);
    const runs = await runsOf(id);
    expect(runs.map(({ tickAt }) => tickAt)).toEqual(expected);
    expect(new Set(runs.map(({ instanceId }) => instanceId)).size).toBe(5);
  }
  const [first] = await runsOf(ids[0]!);
  const started = `/v1/instances/${first!.instanceId}`;
  const { items } = await get("/v1/instances?workflowId=echo&limit=500");
  expect(items).toHaveLength(60);
  expect(await get(`${started}?wait=20`)).toMatchObject({
    status: "COMPLETED",
    workflowVersion: 1,
    metadata: { schedule: { id: ids[0], tickAt: expected[0], kind: "TICK" } },
  });
  const { items: history } = await get(`${started}/history`);
  expect(history[0]).toMatchObject({ actor: `schedule:${ids[0]}` });
  expect(await get(`/v1/schedules/${ids[0]}`)).toMatchObject({
    status: "ACTIVE",
    nextTickAt: ago(-1, hourMs).toISOString(),
    lastTickAt: expected[4],
    counts: { started: 5, skipped: 0, missed: 0, failed: 0 },
  });
});

test.each([
  ["SKIP", ["STARTED", "OVERLAP", "OVERLAP"]],
  ["BUFFER_ONE", ["STARTED", "WAITING", "BUFFER_FULL"]],
  ["BUFFER_ALL", ["STARTED", "WAITING", "WAITING"]],
  ["ALLOW_ALL", ["STARTED", "STARTED", "STARTED"]],
  ["CANCEL_OTHER", ["SUPERSEDED", "SUPERSEDED", "STARTED"]],
])("three ticks at once under %s: %j", async (overlapPolicy, expected) => {
  const order = randomUUID();
  const target = { type: "workflow", id: "waiting" };
  const id = await makeSchedule({ target, overlapPolicy, input: { order } });

  await lastSeenTo(id, ago(2, hourMs));

  expect(await outcomesOf(id, 3)).toEqual(expected);
  // Each event lets the run that is live come to its end, so that the next one starts.
  const runs = expected.filter((each) => each === "STARTED" || each === "WAITING");
  await settled(async () => {
    await api.call("POST", "/v1/events", { pattern: "paid", payload: { order } });
    const statuses = (await runsOf(id)).map(({ status }) => status);
    expect(statuses.filter((status) => status === "STARTED")).toHaveLength(runs.length);
  });
  expect((await get(`/v1/schedules/${id}`)).counts.started).toBe(runs.length);
});

test("CANCEL_OTHER cancels the run that is live, and starts the next one when it has settled", async () => {
  const target = { type: "workflow", id: "waiting" };
  const id = await makeSchedule({
    target,
    overlapPolicy: "CANCEL_OTHER",
    input: { order: "none" },
  });
  const { body: first } = await api.call("POST", `/v1/schedules/${id}/trigger`);

  await lastSeenTo(id, ago(0, hourMs));

  await settled(async () => {
    expect((await runsOf(id)).map(({ status }) => status)).toEqual(["STARTED", "STARTED"]);
  });
  expect(await get(`/v1/instances/${first.instanceId}`)).toMatchObject({
    status: "CANCELLED",
    cancellation: { requestedBy: `schedule:${id}` },
  });
});

test("C55: after three hours down a minutely schedule runs what its window allows and lists the rest as missed", async () => {
  const id = await makeSchedule({
    timing: minutely,
    overlapPolicy: "ALLOW_ALL",
    catchupWindow: "PT5M",
  });

  await lastSeenTo(id, ago(180, minuteMs));

  const outcomes = await outcomesOf(id, 180);
  const started = outcomes.filter((outcome) => outcome === "STARTED").length;
  expect(new Set(outcomes)).toEqual(new Set(["MISSED", "STARTED"]));
  expect(started).toBeGreaterThanOrEqual(5);
  expect(started).toBeLessThanOrEqual(7);
  const { counts, nextTickAt } = await get(`/v1/schedules/${id}`);
  expect(counts).toMatchObject({ started, missed: outcomes.length - started });
  expect(Date.parse(nextTickAt)).toBeGreaterThan(Date.now() - minuteMs);
});

test("a long time down is worked off in one go: a thousand missed ticks are listed, the last says of the rest", async () => {
  const timing = { cronExpression: "* * * * * *" };
  const id = await makeSchedule({ timing, catchupWindow: "PT10S" });

  await lastSeenTo(id, ago(30, 24 * hourMs));

  await settled(async () => {
    const { counts, nextTickAt } = await get(`/v1/schedules/${id}`);
    expect(counts.missed).toBe(1_000);
    expect(Date.parse(nextTickAt)).toBeGreaterThan(Date.now() - 5_000);
  });
  await api.call("DELETE", `/v1/schedules/${id}`);
});

test("a pause holds all ticks, and those of the pause are run by a backfill only, each once", async () => {
  const id = await makeSchedule({ overlapPolicy: "ALLOW_ALL" });
  const paused = await api.call("POST", `/v1/schedules/${id}/pause`, { reason: "sale" });
  expect(paused).toMatchObject({ status: 202, body: { status: "PAUSED", nextTickAt: null } });
  expect(paused.body.pause).toMatchObject({ by: "api", reason: "sale" });
  const { body: again } = await api.call("POST", `/v1/schedules/${id}/pause`);
  expect(again.version).toBe(paused.body.version);

  const resumed = await api.call("POST", `/v1/schedules/${id}/resume`);
  expect(resumed).toMatchObject({ status: 202, body: { status: "ACTIVE", pause: null } });
  expect(resumed.body.nextTickAt).toBe(ago(-1, hourMs).toISOString());
  expect(await runsOf(id)).toEqual([]);

  // One of them had been skipped, another one has run.
  await lastSeenTo(id, ago(1, hourMs));
  await outcomesOf(id, 2);
  await sql`update schedule_runs set status = 'SKIPPED', instance_id = null
    where schedule_id = ${id} and tick_at = ${ago(1, hourMs)}`.execute(api.services.database.db);
  const range = { from: ago(3, hourMs).toISOString(), to: new Date().toISOString() };
  const backfills = await Promise.all(
    [1, 2, 3].map(() => api.call("POST", `/v1/schedules/${id}/backfill`, range)),
  );

  const started = backfills.map(({ body }) => body.started as number);
  expect(started.toSorted((a, b) => a - b)).toEqual([0, 0, 3]);
  expect(backfills.map(({ body }) => body.ticks)).toEqual([4, 4, 4]);
  const runs = await runsOf(id);
  expect(runs.map(({ tickAt }) => tickAt).toSorted()).toEqual(
    [3, 2, 1, 0].map((count) => ago(count, hourMs).toISOString()),
  );
  expect(runs.every(({ status }) => status === "STARTED")).toBe(true);
});

test("a backfill runs one after the other unless runs may be beside each other, and is bounded", async () => {
  const id = await makeSchedule({ timing: minutely });
  const range = (from: Date) => ({ from: from.toISOString(), to: ago(1, minuteMs).toISOString() });

  const { body } = await api.call("POST", `/v1/schedules/${id}/backfill`, range(ago(4, minuteMs)));
  const tooLong = await api.call(
    "POST",
    `/v1/schedules/${id}/backfill`,
    range(ago(2_000, minuteMs)),
  );

  expect(body).toEqual({ ticks: 4, started: 1, waiting: 3, failed: 0, alreadyRan: 0 });
  expect(tooLong).toMatchObject({ status: 400, body: { errors: [{ path: "/to" }] } });
  await settled(async () => {
    const runs = await runsOf(id);
    expect(runs.filter(({ kind }) => kind === "BACKFILL").map(({ status }) => status)).toEqual(
      Array.from({ length: 4 }, () => "STARTED"),
    );
  });
});

test("a backfill of CANCEL_OTHER runs all that it has promised, and a tick goes before what waits of it", async () => {
  const order = randomUUID();
  const target = { type: "workflow", id: "waiting" };
  const policy = { overlapPolicy: "CANCEL_OTHER" };
  const id = await makeSchedule({ target, ...policy, input: { order }, timing: hourly });
  const range = { from: ago(3, hourMs).toISOString(), to: ago(1, hourMs).toISOString() };
  const { body } = await api.call("POST", `/v1/schedules/${id}/backfill`, range);
  expect(body).toMatchObject({ ticks: 3, started: 1, waiting: 2 });

  await lastSeenTo(id, ago(0, hourMs));

  await settled(async () => {
    await api.call("POST", "/v1/events", { pattern: "paid", payload: { order } });
    const runs = await runsOf(id);
    expect(runs.map(({ status }) => status)).toEqual(Array.from({ length: 4 }, () => "STARTED"));
  });
  const runs = await runsOf(id);
  const ends = await Promise.all(
    runs.map(async ({ kind, instanceId }) => {
      await api.call("POST", "/v1/events", { pattern: "paid", payload: { order } });
      const { status } = await get(`/v1/instances/${instanceId}?wait=20`);
      return `${kind} ${status}`;
    }),
  );
  // The tick cancels what is live, be it of the backfill; nothing else is.
  expect(ends.filter((end) => end.endsWith("CANCELLED")).length).toBeLessThanOrEqual(1);
  expect(ends.at(-1)).toBe("TICK COMPLETED");
});

test("a schedule of a task runs an instance of its reserved definition", async () => {
  const target = { type: "task", id: "echo" };
  const timing = { executeAt: new Date(Date.now() - 1_000).toISOString() };
  const id = await makeSchedule({ type: "one-time", target, timing, input: { text: "hi" } });

  await outcomesOf(id, 1);
  const [run] = await runsOf(id);

  expect(run).toMatchObject({ kind: "TICK", tickAt: timing.executeAt, status: "STARTED" });
  expect(await get(`/v1/instances/${run!.instanceId}?wait=20`)).toMatchObject({
    workflowId: "task:echo",
    status: "COMPLETED",
    output: { text: "hi" },
  });
  expect((await get("/v1/instances?workflowId=task:echo")).items).toHaveLength(1);
  expect(await get(`/v1/schedules/${id}`)).toMatchObject({ status: "COMPLETED", nextTicks: [] });
  expect((await api.call("POST", `/v1/schedules/${id}/pause`)).status).toBe(409);
});

test("C57: an edited schedule uses the new rule once from now on; what moves no tick changes none", async () => {
  const id = await makeSchedule({ overlapPolicy: "ALLOW_ALL" });
  const before = await api.call("GET", `/v1/schedules/${id}`);
  await lastSeenTo(id, ago(0, hourMs));
  await outcomesOf(id, 1);

  // Who made it is not the client's to say.
  const metadata = { team: "shop", createdBy: "root" };
  const described = await api.call("PATCH", `/v1/schedules/${id}`, { metadata });
  expect(described.body).toMatchObject({
    version: 2,
    metadata: { team: "shop", createdBy: "api" },
  });
  expect(described.body.nextTickAt).toBe(before.body.nextTickAt);
  const timing = { cronExpression: "17 3 * * *", interval: null, startDate: null };
  const edited = await api.call("PATCH", `/v1/schedules/${id}`, { timing });

  expect(edited.body).toMatchObject({ version: 3, timing: { cronExpression: "17 3 * * *" } });
  expect(edited.body.nextTickAt).toMatch(/T03:17:00\.000Z$/);
  expect(edited.body.nextTicks[0]).toBe(edited.body.nextTickAt);
  expect(await runsOf(id)).toHaveLength(1);
  const stale = { "if-match": '"1"' };
  expect((await api.call("PATCH", `/v1/schedules/${id}`, { jitter: "PT1S" }, stale)).status).toBe(
    412,
  );
  expect((await api.call("DELETE", `/v1/schedules/${id}`, undefined, stale)).status).toBe(412);
  expect((await api.call("DELETE", `/v1/schedules/${id}`)).status).toBe(204);
  expect((await api.call("GET", `/v1/schedules/${id}`)).status).toBe(404);
});

test("an edit or a pause loses no tick that was due before it", async () => {
  const overlapPolicy = "ALLOW_ALL";
  // Jitter has put the tick off: no scheduler takes it before the edit.
  const ids = await Promise.all([0, 1].map(() => makeSchedule({ overlapPolicy, jitter: "PT30M" })));
  const [edited = "", paused = ""] = ids;
  for (const id of ids) {
    await sql`update schedules set next_tick_at = ${ago(0, hourMs)}, due_at = now() + interval '1 h'
      where id = ${id}`.execute(api.services.database.db);
  }

  await api.call("PATCH", `/v1/schedules/${edited}`, { timing: { interval: "PT2H" } });
  await api.call("POST", `/v1/schedules/${paused}/pause`);

  for (const id of ids) expect(await outcomesOf(id, 1)).toEqual(["STARTED"]);
});

test("the same schedule again changes nothing, and another one of its id is refused", async () => {
  const id = `s-${randomUUID()}`;
  const schedule = {
    id,
    type: "recurring",
    target: { type: "workflow", id: "echo" },
    timing: { cronExpression: "0 9 * * MON-FRI", timezone: "Europe/Berlin" },
  };

  const made = await api.call("POST", "/v1/schedules", schedule);
  const again = await api.call("POST", "/v1/schedules", schedule);
  const otherOne = await api.call("POST", "/v1/schedules", { ...schedule, jitter: "PT1M" });
  const replaced = await api.call("PUT", `/v1/schedules/${id}`, { ...schedule, jitter: "PT1M" });

  expect([made, again, otherOne, replaced].map(({ status }) => status)).toEqual([
    201, 200, 409, 200,
  ]);
  expect(made.headers.get("location")).toBe(`/v1/schedules/${id}`);
  expect([made, again, replaced].map(({ headers }) => headers.get("etag"))).toEqual([
    '"1"',
    '"1"',
    '"2"',
  ]);
  expect(made.body).toMatchObject({
    overlapPolicy: "SKIP",
    catchupWindow: "P1D",
    dst: { missing: "SHIFT", duplicate: "FIRST" },
  });
  const next = `/v1/schedules/${id}/next?count=3&after=2026-10-23T00:00:00Z`;
  expect((await get(next)).items).toEqual([
    "2026-10-23T07:00:00.000Z",
    "2026-10-26T08:00:00.000Z",
    "2026-10-27T08:00:00.000Z",
  ]);
});

test("all that is wrong with a schedule is told at once", async () => {
  const { status, body } = await api.call("POST", "/v1/schedules", {
    type: "recurring",
    target: { type: "workflow", id: "nobody" },
    timing: {
      cronExpression: "61 * * * *",
      timezone: "Mars/Olympus",
      startDate: "2027-01-02T00:00:00Z",
      endDate: "2027-01-01T00:00:00Z",
    },
    overlapPolicy: "PERHAPS",
    jitter: "5 minutes",
    catchupWindow: "P1M",
    calendarId: "de",
  });

  expect({ status, code: body.code }).toEqual({ status: 422, code: "INVALID_SCHEDULE" });
  const found = body.errors.map(({ path, code }: { path: string; code: string }) => [path, code]);
  expect(found.toSorted()).toEqual([
    ["/calendarId", "UNKNOWN_CALENDAR"],
    ["/catchupWindow", "BAD_DURATION"],
    ["/jitter", "BAD_DURATION"],
    ["/overlapPolicy", "BAD_VALUE"],
    ["/target/id", "UNKNOWN_WORKFLOW"],
    ["/timing/cronExpression", "BAD_CRON"],
    ["/timing/endDate", "BAD_RANGE"],
    ["/timing/timezone", "BAD_TIMEZONE"],
  ]);
});

test.each([
  [{ type: "one-time", timing: {} }, "/timing/executeAt"],
  [{ type: "one-time", timing: { executeAt: "2020-01-01T00:00:00Z" } }, "/timing/executeAt"],
  [{ timing: {} }, "/timing/cronExpression"],
  [{ timing: { cronExpression: "0 0 30 2 *" } }, "/timing/cronExpression"],
  [{ timing: { ...minutely, endDate: "2020-01-01T00:00:00Z" } }, "/timing/cronExpression"],
  [{ timing: { interval: "PT0.5S" } }, "/timing/interval"],
  [{ timing: { ...minutely, interval: "PT5M" } }, "/timing/interval"],
  [{ timing: hourly, dst: { missing: "SKIP" } }, "/dst"],
  [{ timing: { cronExpression: "0 3 * * *" }, calendarId: "office" }, "/timing/cronExpression"],
  [
    {
      type: "one-time",
      timing: { executeAt: "2099-01-01T00:00:00Z" },
      calendarId: "office",
    },
    "/calendarId",
  ],
  [{ timing: minutely, target: { type: "task", id: "a b" } }, "/target/id"],
  [{ timing: minutely, target: { type: "workflow", id: "strict" } }, "/input"],
])("refused: %j", async (more, path) => {
  const inputSchema = {
    type: "object",
    properties: { order: { type: "string" } },
    required: ["order"],
  };
  await put("/v1/definitions/strict", { ...echo, id: "strict", inputSchema });

  const { status, body } = await api.call("POST", "/v1/schedules", {
    type: "recurring",
    target: { type: "workflow", id: "echo" },
    ...more,
  });

  expect({ status, paths: body.errors.map((each: { path: string }) => each.path) }).toEqual({
    status: 422,
    paths: [path],
  });
});

test("a schedule of a calendar ticks on its working days, as the calendar is when the tick comes", async () => {
  const everyDay = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
  const allDay = Object.fromEntries(everyDay.map((day) => [day, [{ from: "00:00", to: "24:00" }]]));
  const calendarId = `c_${randomUUID().slice(0, 8)}`;
  await put(`/v1/calendars/${calendarId}`, {
    id: calendarId,
    timeZone: "UTC",
    workingHours: allDay,
  });
  const [open, closed] = await Promise.all([0, 1].map(() => makeSchedule({ calendarId })));
  const { items } = await get(`/v1/schedules/${open}/next?after=2026-11-27T22:30:00Z&count=2`);
  expect(items).toEqual(["2026-11-27T23:00:00.000Z", "2026-11-28T00:00:00.000Z"]);
  await lastSeenTo(open!, ago(0, hourMs));
  expect(await outcomesOf(open!, 1)).toEqual(["STARTED"]);

  // The tick that was to come is none any more.
  const dates = [-1, 0, 1].map((days) =>
    new Date(Date.now() + days * 24 * hourMs).toISOString().slice(0, 10),
  );
  const holidays = { dates };
  const changed = { id: calendarId, timeZone: "UTC", workingHours: allDay, holidays };
  await put(`/v1/calendars/${calendarId}`, changed);
  await lastSeenTo(closed!, ago(0, hourMs));

  await settled(async () => {
    const { nextTickAt } = await get(`/v1/schedules/${closed}`);
    expect(Date.parse(nextTickAt)).toBeGreaterThan(Date.now() + 24 * hourMs);
  });
  expect(await runsOf(closed!)).toEqual([]);

  // Without its calendar it says what is wrong, and can be changed.
  await api.call("DELETE", `/v1/calendars/${calendarId}`);
  await lastSeenTo(closed!, ago(0, hourMs));
  await settled(async () => {
    expect((await get(`/v1/schedules/${closed}`)).trouble).toContain(calendarId);
  });
  const patched = await api.call("PATCH", `/v1/schedules/${closed}`, { calendarId: null });
  expect(patched).toMatchObject({ status: 200, body: { trouble: null, calendarId: null } });
});

test("a tick that can start nothing is listed as failed, and the schedule goes on", async () => {
  const definition = `wf_${randomUUID().slice(0, 8)}`;
  await put(`/v1/definitions/${definition}`, { ...echo, id: definition });
  const id = await makeSchedule({ target: { type: "workflow", id: definition } });
  const inputSchema = { type: "object", required: ["order"] };
  await put(`/v1/definitions/${definition}`, { ...echo, id: definition, inputSchema });

  await lastSeenTo(id, ago(0, hourMs));

  expect(await outcomesOf(id, 1)).toEqual(["INVALID_INPUT"]);
  expect((await get(`/v1/schedules/${id}/runs`)).items[0].message).toContain("order");
  expect((await api.call("POST", `/v1/schedules/${id}/trigger`)).status).toBe(422);
  expect(await get(`/v1/schedules/${id}`)).toMatchObject({
    status: "ACTIVE",
    counts: { failed: 1 },
  });
});

test("tenants see and touch their own schedules only", async () => {
  const id = `s-${randomUUID()}`;
  const mine = { "millrace-tenant": "acme" };
  await makeSchedule({ id }, mine);
  const theirs = { "millrace-tenant": "umbrella" };

  const range = { from: ago(2, hourMs).toISOString(), to: new Date().toISOString() };
  const tried = await Promise.all([
    api.call("GET", `/v1/schedules/${id}`, undefined, theirs),
    api.call("PATCH", `/v1/schedules/${id}`, { jitter: "PT1S" }, theirs),
    api.call("DELETE", `/v1/schedules/${id}`, undefined, theirs),
    api.call("GET", `/v1/schedules/${id}/runs`, undefined, theirs),
    api.call("GET", `/v1/schedules/${id}/next`, undefined, theirs),
    api.call("POST", `/v1/schedules/${id}/backfill`, range, theirs),
    ...["pause", "resume", "trigger"].map((verb) =>
      api.call("POST", `/v1/schedules/${id}/${verb}`, undefined, theirs),
    ),
  ]);

  expect(new Set(tried.map(({ status }) => status))).toEqual(new Set([404]));
  const listed = async (headers: Record<string, string>) =>
    (await api.call("GET", "/v1/schedules", undefined, headers)).body.items.length as number;
  expect([await listed(mine), await listed(theirs)]).toEqual([1, 0]);
  const by = { requestedBy: "ada" };
  const keyed = { ...mine, "idempotency-key": "by-hand" };
  const trigger = () => api.call("POST", `/v1/schedules/${id}/trigger`, by, keyed);
  const tries = await Promise.all([trigger(), trigger(), trigger()]);
  const { body: run } = await trigger();
  expect(tries.map(({ status, body }) => [status, body])).toEqual(tries.map(() => [202, run]));
  const fresh = tries.filter(({ headers }) => headers.get("idempotent-replayed") === null);
  expect(fresh).toHaveLength(1);
  const start = await api.call("POST", "/v1/instances", { workflowId: "echo" }, keyed);
  expect(start).toMatchObject({ status: 409, body: { code: "IDEMPOTENCY_CONFLICT" } });
  const started = await api.call("GET", `/v1/instances/${run.instanceId}`, undefined, mine);
  expect(started.body).toMatchObject({
    tenantId: "acme",
    workflowId: "echo",
    metadata: { schedule: { id, kind: "MANUAL", requestedBy: "ada" } },
  });
});
