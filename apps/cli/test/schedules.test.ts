import type { ScheduleView } from "@millrace/contract";
import { afterEach, expect, test } from "vitest";
import { type FakeApi, openFakeApi } from "./fake-api.ts";
import { millrace } from "./streams.ts";

let api: FakeApi | undefined;
afterEach(async () => {
  await api?.close();
  api = undefined;
});

async function against(args: readonly string[], body: unknown, input = "") {
  api = await openFakeApi(() => ({ body }));
  return millrace(["schedules", ...args], { environment: { MILLRACE_API: api.url }, input });
}

const schedule: ScheduleView = {
  id: "nightly",
  tenantId: "default",
  type: "recurring",
  target: { type: "workflow", id: "report" },
  timing: { cronExpression: "30 2 * * *", timezone: "Europe/Berlin" },
  input: { kind: "daily" },
  metadata: {},
  overlapPolicy: "SKIP",
  catchupWindow: "P1D",
  jitter: "PT0S",
  calendarId: null,
  dst: { missing: "SHIFT", duplicate: "FIRST" },
  status: "ACTIVE",
  version: 1,
  pause: null,
  nextTickAt: "2026-01-31T01:30:00.000Z",
  lastTickAt: null,
  counts: { started: 3, skipped: 1, missed: 0, failed: 0 },
  trouble: null,
  nextTicks: ["2026-01-31T01:30:00.000Z"],
  recentRuns: [
    {
      kind: "TICK",
      tickAt: "2026-01-30T01:30:00.000Z",
      status: "SKIPPED",
      reason: "OVERLAP",
      message: "an earlier run was live",
      instanceId: null,
      startedAt: null,
      createdAt: "2026-01-30T01:30:00.010Z",
    },
  ],
};

test("schedules are listed with what they start and when they tick next", async () => {
  const ran = await against(["ls", "--workflow", "report"], {
    items: [schedule],
    nextCursor: null,
  });

  expect(ran.exitCode).toBe(0);
  expect(ran.stdout).toMatch(
    /nightly +ACTIVE +report +30 2 \* \* \* \(Europe\/Berlin\) +2026-01-31 01:30:00/,
  );
  expect(api?.exchanges.map(({ path }) => path)).toEqual([
    "/v1/schedules?targetType=workflow&targetId=report",
  ]);
});

test("schedules show tells what has come of the last ticks", async () => {
  const ran = await against(["show", "nightly"], schedule);

  expect(ran.stdout).toContain("3 started, 1 skipped, 0 missed, 0 failed");
  expect(ran.stdout).toMatch(/2026-01-30 01:30:00 +TICK +SKIPPED \(OVERLAP\)/);
});

test("schedules apply puts a schedule under its id", async () => {
  const yaml = "id: nightly\ntype: recurring\n";

  const ran = await against(["apply", "-"], schedule, yaml);

  expect(ran.stdout).toBe("-: schedule nightly is ACTIVE, next tick 2026-01-31 01:30:00 UTC\n");
  expect(api?.exchanges).toMatchObject([
    { method: "PUT", path: "/v1/schedules/nightly", body: { id: "nightly", type: "recurring" } },
  ]);
});

test("schedules backfill names its range, and the verbs what they need", async () => {
  const answer = { ticks: 4, started: 1, waiting: 2, failed: 0, alreadyRan: 1 };
  const ran = await against(
    ["backfill", "nightly", "--from", "2026-01-01", "--to", "2026-01-02T00:00:00Z"],
    answer,
  );

  expect(ran.stdout).toBe("4 ticks: 1 started, 2 waiting, 0 failed, 1 had run\n");
  expect(api?.exchanges).toMatchObject([
    {
      path: "/v1/schedules/nightly/backfill",
      body: { from: "2026-01-01T00:00:00.000Z", to: "2026-01-02T00:00:00.000Z" },
    },
  ]);
  await api?.close();
  const wrong = await against(["puase", "nightly"], {});
  expect(wrong).toMatchObject({
    exitCode: 2,
    stderr: expect.stringContaining("did you mean pause?"),
  });
  await api?.close();
  expect(await against(["trigger"], {})).toMatchObject({ exitCode: 2 });
});
