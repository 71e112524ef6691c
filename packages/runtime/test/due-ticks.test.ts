import * as fc from "fast-check";
import { expect, test } from "vitest";
import { decideOverlap, dueTicks, mostWaiting } from "../src/schedules/due-ticks.ts";
import { planOf } from "../src/schedules/plan.ts";

const minute = 60_000;
const now = new Date("2026-06-01T12:00:30Z");
const minutely = (more: object = {}) =>
  planOf(
    {
      type: "recurring",
      target: { type: "workflow", id: "echo" },
      timing: { cronExpression: "* * * * *" },
      ...more,
    },
    now,
    undefined,
  );
/** The full minute `count` minutes before now. */
const ago = (count: number) =>
  new Date(new Date("2026-06-01T12:00:00Z").getTime() - count * minute);

test("C55: what is older than the window is missed, the rest is due in order, and the next one is to come", () => {
  const plan = minutely({ catchupWindow: "PT2M" });

  const due = dueTicks(plan, { uid: "u", from: ago(5), now });

  expect(due).toEqual({
    missed: [ago(5), ago(4), ago(3), ago(2)],
    missedBefore: undefined,
    ticks: [ago(1), ago(0)],
    next: ago(-1),
  });
});

test("of a long time down a thousand ticks are listed, and a batch is bounded", () => {
  const long = dueTicks(minutely({ catchupWindow: "PT10S" }), { uid: "u", from: ago(50_000), now });
  const batch = dueTicks(minutely(), { uid: "u", from: ago(1_000), now });

  expect(long.missed).toHaveLength(1_000);
  expect(long.missedBefore).toEqual(new Date(now.getTime() - 10_000));
  expect([long.ticks, long.next]).toEqual([[], ago(-1)]);
  expect(batch.ticks).toHaveLength(100);
  expect(batch.next).toEqual(ago(900));
});

test("a window of nothing still takes what is late by the ordinary way of things", () => {
  const plan = minutely({ catchupWindow: "PT0S" });

  const due = dueTicks(plan, { uid: "u", from: ago(0), now: new Date(ago(0).getTime() + 9_000) });

  expect(due).toMatchObject({ missed: [], ticks: [ago(0)] });
});

test("a tick that jitter puts off is not due yet, unless the rule ends here", () => {
  const plan = minutely({ jitter: "PT59S" });
  const from = ago(0);
  const atStart = { uid: "u", from, now: from };

  expect(dueTicks(plan, atStart).ticks).toEqual([]);
  expect(dueTicks(plan, atStart).next).toEqual(from);
  expect(dueTicks(plan, atStart, true).ticks).toEqual([from]);
});

test("what is to come once comes once, or is missed", () => {
  const once = (executeAt: Date) =>
    planOf(
      {
        type: "one-time",
        target: { type: "task", id: "echo" },
        timing: { executeAt: executeAt.toISOString() },
      },
      now,
      undefined,
    );

  expect(dueTicks(once(ago(1)), { uid: "u", from: ago(1), now })).toMatchObject({
    ticks: [ago(1)],
    next: undefined,
  });
  expect(dueTicks(once(ago(2_000)), { uid: "u", from: ago(2_000), now })).toMatchObject({
    missed: [ago(2_000)],
    ticks: [],
    next: undefined,
  });
});

test.each([
  ["SKIP", 1, 0, ["OVERLAP", "OVERLAP"]],
  ["SKIP", 0, 1, ["OVERLAP", "OVERLAP"]],
  ["BUFFER_ONE", 1, 0, ["wait", "BUFFER_FULL"]],
  ["BUFFER_ONE", 1, 1, ["BUFFER_FULL", "BUFFER_FULL"]],
  ["BUFFER_ALL", 1, mostWaiting - 1, ["wait", "BUFFER_FULL"]],
  ["BUFFER_ALL", 0, 1, ["wait", "wait"]],
  ["ALLOW_ALL", 7, 3, ["start", "start"]],
  ["CANCEL_OTHER", 1, 0, ["SUPERSEDED", "wait"]],
  ["CANCEL_OTHER", 0, 0, ["SUPERSEDED", "start"]],
] as const)("%s with %i live and %i waiting: %j", (policy, live, waiting, expected) => {
  const { outcomes, supersedes } = decideOverlap(policy, 2, { live, waiting });

  expect(outcomes).toEqual(expected);
  expect(supersedes).toBe(policy === "CANCEL_OTHER");
});

test("whatever comes, only ALLOW_ALL has two runs live, and no buffer grows beyond its bound", () => {
  fc.assert(
    fc.property(
      fc.constantFrom("SKIP", "BUFFER_ONE", "BUFFER_ALL", "CANCEL_OTHER"),
      fc.integer({ min: 0, max: 1 }),
      fc.integer({ min: 0, max: 3 }),
      fc.integer({ min: 0, max: 20 }),
      (policy, live, waiting, count) => {
        const { outcomes } = decideOverlap(policy, count, { live, waiting });
        const started = outcomes.filter((outcome) => outcome === "start").length;
        const waits = outcomes.filter((outcome) => outcome === "wait").length;

        expect(outcomes).toHaveLength(count);
        expect(live + started).toBeLessThanOrEqual(1);
        expect(policy === "BUFFER_ALL" || waits <= 1).toBe(true);
      },
    ),
  );
});
