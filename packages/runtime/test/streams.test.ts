import type { Wake } from "@millrace/queue";
import type { Change } from "@millrace/store";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { openBell } from "../src/bell.ts";
import { openAnnouncements } from "../src/streams/announcements.ts";
import { streamEventsOf } from "../src/streams/stream-event.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function fakeWake(isHeard: boolean) {
  const told: object[] = [];
  const wake = {
    isHeard: vi.fn<Wake["isHeard"]>(async () => state.isHeard),
    publish: (_: string, message: object) => void told.push(message),
    subscribe: () => () => {},
  } satisfies Wake;
  const state = { isHeard };
  return { wake, told, state };
}

test("what changes within a moment is told together", async () => {
  const { wake, told } = fakeWake(true);
  const announcements = openAnnouncements(wake);

  for (const id of ["a", "b", "a"]) announcements.changed(id);
  await vi.advanceTimersByTimeAsync(100);
  announcements.changed("c");
  await vi.advanceTimersByTimeAsync(100);

  expect(told).toEqual([{ instanceIds: ["a", "b"] }, { instanceIds: ["c"] }]);
});

test("where nobody listens nothing is told, and it is asked again in time", async () => {
  const { wake, told, state } = fakeWake(false);
  const announcements = openAnnouncements(wake);
  const change = async (times: number, ms: number) => {
    for (let n = 0; n < times; n += 1) {
      announcements.changed("a");
      await vi.advanceTimersByTimeAsync(ms / times);
    }
  };

  await change(100, 2_000);
  const asked = wake.isHeard.mock.calls.length;
  state.isHeard = true;
  await change(100, 2_000);

  expect(asked).toBeLessThanOrEqual(3);
  expect(told.length).toBeGreaterThan(10);
});

test("of very many it is only told that something has changed", async () => {
  const { wake, told } = fakeWake(true);
  const announcements = openAnnouncements(wake);

  for (let n = 0; n < 5_000; n += 1) announcements.changed(`i-${n}`);
  await vi.advanceTimersByTimeAsync(100);

  expect(told).toEqual([{}]);
});

test("a ring while nobody waits is heard by the next who does, once", async () => {
  const bell = openBell();
  bell.ring();
  bell.ring();

  const first = bell.next(1_000);
  const second = first.then(() => bell.next(1_000));
  await vi.advanceTimersByTimeAsync(1_001);

  expect(await first).toBe(true);
  expect(await second).toBe(false);
});

const change: Change = {
  tenantId: "default",
  instanceId: "i-1",
  workflowId: "w",
  workflowVersion: 2,
  correlationId: null,
  version: 7,
  at: new Date(0),
  actor: "worker",
  status: "FAILED",
  entries: [
    { type: "workflow.status", data: { from: "WAITING_FOR_EVENT", to: "RUNNING" } },
    { type: "workflow.step.failed", stepId: "a", data: { error: { message: "no luck" } } },
    { type: "workflow.status", data: { from: "RUNNING", to: "FAILED" } },
    { type: "workflow.failed", actor: "ann", data: { error: { message: "no luck" } } },
  ],
};

test("the status moves on within a commit as its entries say", () => {
  const events = [...streamEventsOf(change)];

  expect(events.map(({ type, oldStatus, status }) => [type, oldStatus, status])).toEqual([
    ["workflow.status", "WAITING_FOR_EVENT", "RUNNING"],
    ["workflow.step.failed", "WAITING_FOR_EVENT", "RUNNING"],
    ["workflow.status", "RUNNING", "FAILED"],
    ["workflow.failed", "RUNNING", "FAILED"],
  ]);
  expect(events[3]).toMatchObject({ actor: "ann", reason: "no luck", version: 7 });
  expect(events[1]).toMatchObject({ actor: "worker", stepId: "a" });
});

test("a commit that changes no status has the one that it left", () => {
  const [event] = streamEventsOf({
    ...change,
    status: "PAUSED",
    entries: [{ type: "workflow.patched" }],
  });

  expect(event).toMatchObject({ oldStatus: "PAUSED", status: "PAUSED", reason: null, data: null });
});
