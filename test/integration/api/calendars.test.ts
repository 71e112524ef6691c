import { CalendarPage, type CalendarSource, CalendarView } from "@millrace/contract";
import { addWorkingTime, compileCalendar, isRefusal } from "@millrace/engine";
import { eventually } from "@millrace/testkit";
import { CompiledQuery } from "kysely";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openTestApi, type TestApi } from "./support.ts";

let api: TestApi;
beforeAll(async () => {
  api = await openTestApi({ isWorking: true });
});
afterAll(() => api.close());

const office = { id: "office", timeZone: "Europe/Berlin" };
const put = (calendar: CalendarSource, headers?: Record<string, string>) =>
  api.call("PUT", `/v1/calendars/${calendar.id}`, calendar, headers);

test("a calendar is created, read, changed, listed and deleted", async () => {
  const holidays = { public: [{ country: "DE", region: "BY" }], dates: ["2026-12-24"] };
  const created = await api.call("POST", "/v1/calendars", { ...office, id: "crud", holidays });
  expect([created.status, created.headers.get("etag")]).toEqual([201, '"1"']);
  expect(created.headers.get("location")).toBe("/v1/calendars/crud");
  expect(CalendarView.parse(created.body)).toEqual(created.body);
  expect(created.body.holidaysUntil).toMatch(/^20\d\d-12-31$/);
  const again = await api.call("POST", "/v1/calendars", { ...office, id: "crud" });
  expect([again.status, again.body.code]).toEqual([409, "CALENDAR_EXISTS"]);

  const read = await api.call("GET", "/v1/calendars/crud");
  expect(read.body).toEqual(created.body);
  const known = await api.call("GET", "/v1/calendars/crud", undefined, { "if-none-match": '"1"' });
  expect(known.status).toBe(304);

  const unchanged = await put({ ...office, id: "crud", holidays });
  expect([unchanged.status, unchanged.body]).toEqual([200, created.body]);
  const changed = await api.call("PUT", "/v1/calendars/crud", { timeZone: "UTC", name: "UTC" });
  expect([changed.status, changed.headers.get("etag")]).toEqual([200, '"2"']);
  expect(changed.body).toMatchObject({ id: "crud", version: 2, name: "UTC", holidaysUntil: null });
  const late = await put({ ...office, id: "crud" }, { "if-match": '"1"' });
  expect([late.status, late.body.code]).toEqual([412, "PRECONDITION_FAILED"]);

  await put({ ...office, id: "zoo" });
  const first = await api.call("GET", "/v1/calendars?limit=1");
  expect(CalendarPage.parse(first.body)).toEqual(first.body);
  const next = await api.call("GET", `/v1/calendars?cursor=${first.body.nextCursor}`);
  const ids = [...first.body.items, ...next.body.items].map(({ id }) => id);
  expect(ids).toEqual(["crud", "zoo"]);

  const kept = await api.call("DELETE", "/v1/calendars/crud", undefined, { "if-match": '"1"' });
  expect(kept.status).toBe(412);
  const gone = await api.call("DELETE", "/v1/calendars/crud", undefined, { "if-match": '"2"' });
  expect([gone.status, gone.body]).toEqual([204, undefined]);
  expect((await api.call("GET", "/v1/calendars/crud")).body.code).toBe("CALENDAR_NOT_FOUND");
  expect((await api.call("DELETE", "/v1/calendars/crud")).status).toBe(404);
});

test("a calendar is refused with all that is wrong with it", async () => {
  const { status, body } = await api.call("PUT", "/v1/calendars/bad", {
    timeZone: "Berlin",
    workingHours: { monday: [{ from: "17:00", to: "09:00" }] },
  });
  const nowhere = await put({ ...office, id: "bad", holidays: { public: [{ country: "XX" }] } });
  const other = await api.call("PUT", "/v1/calendars/bad", { ...office, id: "worse" });

  expect([status, body.code]).toEqual([422, "INVALID_CALENDAR"]);
  expect(body.errors.map(({ path }: { path: string }) => path)).toEqual([
    "/timeZone",
    "/workingHours/monday/0/to",
  ]);
  expect(nowhere.body.errors).toMatchObject([{ path: "/holidays/public/0/country" }]);
  expect(other.body.errors).toMatchObject([{ path: "/id", code: "BAD_VALUE" }]);
  expect((await api.call("GET", "/v1/calendars/bad")).status).toBe(404);
});

test("a tenant has calendars of its own, and the shared ones where it has none of that id", async () => {
  const acme = { "millrace-tenant": "acme" };
  const zurich = { "millrace-tenant": "zurich" };
  await put({ ...office, id: "shared", name: "everybody's" });
  await put({ ...office, id: "shared", name: "acme's" }, acme);
  await put({ ...office, id: "secret" }, acme);

  const nameFor = async (headers: Record<string, string>) =>
    (await api.call("GET", "/v1/calendars/shared", undefined, headers)).body.name;
  expect([await nameFor(acme), await nameFor(zurich)]).toEqual(["acme's", "everybody's"]);
  const secret = await api.call("GET", "/v1/calendars/secret", undefined, zurich);
  expect(secret.status).toBe(404);
  expect((await api.call("GET", "/v1/calendars/secret")).status).toBe(404);
  expect((await api.call("GET", "/v1/calendars", undefined, zurich)).body.items).toEqual([]);
  const removed = await api.call("DELETE", "/v1/calendars/shared", undefined, zurich);
  expect([removed.status, await nameFor(zurich)]).toEqual([404, "everybody's"]);
});

test("delays count by the calendar as it is when they begin, and the check finds no fault", async () => {
  const at = (stepId: string, to?: string) => ({
    stepId,
    type: "DELAY",
    duration: "P2DT1H",
    calendarId: "team",
    ...(to && { transitions: { default: to } }),
  });
  const definition = {
    id: "by_the_team",
    steps: [
      at("first", "work"),
      { stepId: "work", type: "TASK", taskId: "noop", transitions: { default: "second" } },
      at("second", "third"),
      { ...at("third"), onError: [{ errors: ["BAD_VALUE"], to: "rescue" }] },
      { stepId: "rescue", type: "TASK", taskId: "noop" },
    ],
  };
  const { body: registered } = await api.call("PUT", "/v1/definitions/by_the_team", definition);
  expect(registered.warnings).toMatchObject([
    { path: "/steps/0/calendarId", code: "UNKNOWN_CALENDAR" },
    { path: "/steps/2/calendarId" },
    { path: "/steps/3/calendarId" },
  ]);
  const berlin = (await put({ ...office, id: "team" })).body;
  const { body: started } = await api.call("POST", "/v1/instances", { workflowId: definition.id });
  const path = `/v1/instances/${started.id}`;
  const isSound = async () => (await api.call("GET", `${path}/consistency`)).body;

  expect(await dueAt(started.id)).toBe(await expectedEnd(path, "first", berlin));

  // The second counts by other hours; what the first has counted stays.
  const night = {
    ...office,
    id: "team",
    workingHours: { sunday: [{ from: "22:00", to: "24:00" }] },
  };
  const changed = (await put(night)).body;
  expect(await isSound()).toMatchObject({ ok: true, findings: [] });
  await makeDue(started.id);
  await eventually(
    "the second delay begins",
    async () => (await stepOf(path, "second")) !== undefined,
  );
  expect(await dueAt(started.id)).toBe(await expectedEnd(path, "second", changed));

  // The third finds none, and says so.
  await api.call("DELETE", "/v1/calendars/team");
  await makeDue(started.id);
  const { body: settled } = await api.call("GET", `${path}?wait=20`);
  expect(settled).toMatchObject({
    status: "COMPLETED",
    state: {
      steps: {
        third: {
          status: "FAILED",
          error: { kind: "EXPRESSION", message: expect.stringContaining('"team" does not exist') },
        },
        rescue: { status: "COMPLETED" },
      },
    },
  });
  expect(await isSound()).toMatchObject({ ok: true, findings: [] });
});

test("a simulation counts by the scenario's calendars, else by those that are stored", async () => {
  await put({
    ...office,
    id: "mondays",
    workingHours: { monday: [{ from: "09:00", to: "10:00" }] },
  });
  const definition = {
    id: "draft",
    steps: [{ stepId: "rest", type: "DELAY", duration: "PT1H", calendarId: "mondays" }],
  };
  const endOf = async (scenario: object) => {
    const request = { definition, scenario: { startAt: "2026-03-01T12:00:00Z", ...scenario } };
    const { body } = await api.call("POST", "/v1/definitions/draft/simulate", request);
    return body.instance?.completedAt ?? body;
  };
  const hours = { tuesday: [{ from: "09:00", to: "17:00" }] };

  expect(await endOf({})).toBe("2026-03-02T09:00:00.000Z");
  const mine = { id: "mondays", timeZone: "UTC", workingHours: hours };
  expect(await endOf({ calendars: [mine] })).toBe("2026-03-03T10:00:00.000Z");
  expect(
    await endOf({ calendars: [{ ...mine, holidays: { public: [{ country: "XX" }] } }] }),
  ).toMatchObject({
    status: 400,
    errors: [{ path: "/scenario/calendars/0/holidays/public/0/country" }],
  });
});

async function stepOf(path: string, stepId: string) {
  return (await api.call("GET", path)).body.state.steps[stepId];
}

async function expectedEnd(path: string, stepId: string, calendar: CalendarView): Promise<string> {
  const from = new Date((await stepOf(path, stepId)).startedAt);
  const duration = { months: 0, weeks: 0, days: 2, ms: 3_600_000 };
  const end = addWorkingTime(compileCalendar(calendar, 1, null), from, duration);
  if (isRefusal(end)) throw new Error(end.problem);
  return end.toISOString();
}

async function dueAt(instanceId: string): Promise<string | undefined> {
  const query = "select due_at from timers where instance_id = $1";
  const { rows } = await api.services.database.db.executeQuery<{ due_at: Date }>(
    CompiledQuery.raw(query, [instanceId]),
  );
  return rows[0]?.due_at.toISOString();
}

async function makeDue(instanceId: string): Promise<void> {
  const query =
    "update timers set due_at = now() - interval '1 s', look_at = now() where instance_id = $1";
  await api.services.database.db.executeQuery(CompiledQuery.raw(query, [instanceId]));
}
