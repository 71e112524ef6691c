import { expect, test } from "vitest";
import { broken, found } from "./forgery.ts";
import type { Forgeries } from "./forgery.ts";

const forgeries: Forgeries = [
  [
    "P6",
    "an attempt of a retried execution came before its time",
    "mended",
    ({ told }) => {
      const failed = found(told("failed", "breaks")[0], "failure");
      const again = told("run", "breaks").find(({ attempt }) => attempt === 2);
      found(again, "retry").receivedAt = failed.receivedAt + 50;
    },
  ],
  [
    "P5",
    "an event for one alone is in two hands",
    "rival",
    ({ instances, view, history }) => {
      const other = { ...structuredClone(view), id: "a-rival", correlationId: "another" };
      instances.push({ view: other, viewAgain: other, history });
    },
  ],
  [
    "P5",
    "it went on with another event than the one it took",
    "rival_too",
    ({ told }) =>
      void Object.assign(found(told("run", "met")[0], "run").details ?? {}, { saw: "event-x" }),
  ],
  [
    "P4",
    "it took an event of another round",
    "rival",
    ({ step }) => {
      const output = step("wait").output as Record<string, unknown>;
      step("wait").output = { ...output, payload: { round: 77 } } as never;
    },
  ],
  [
    "P4",
    "an event that was published to an open wait is lost",
    "wait",
    ({ request, step, entries, told, view }) => {
      const { published } = request("publish");
      request("publish").published = { ...found(published, "answer"), delivered: 0 };
      step("wait").status = "WAITING";
      view.status = "WAITING_FOR_EVENT";
      for (const entry of [...told("run", "met"), ...told("outcome", "met")]) {
        entries.splice(entries.indexOf(entry), 1);
      }
    },
  ],
  [
    "P4",
    "an event within the lookback is not found",
    "wait_lookback",
    ({ step, view }) => {
      step("wait").status = "WAITING";
      view.status = "WAITING_FOR_EVENT";
    },
  ],
  [
    "P4",
    "an event from before the wait meets it by luck",
    "stale",
    ({ step, plan, told }) => {
      Object.assign(step("wait"), { status: "COMPLETED", output: { id: `event-${plan.key}` } });
      for (const run of told("run", "late")) Object.assign(run, { step: "met" });
    },
  ],
  [
    "P4",
    "the wait took somebody else's event",
    "wait",
    ({ step }) => void (step("wait").output = { id: "event-of-another" }),
  ],
  [
    "P5",
    "event and timeout have both won",
    "race",
    ({ entries, told }) => {
      const run = structuredClone(found(told("run", "met")[0], "run"));
      entries.push({ ...run, seq: 1_000_000, step: "late", idempotencyKey: "late" });
    },
  ],
  [
    "P5",
    "the event was counted, and the timeout won",
    "race",
    ({ request }) => {
      const { published } = request("publish");
      request("publish").published = { ...found(published, "answer"), delivered: 1 };
    },
    1,
  ],
  [
    "P5",
    "the event was counted as missed, and won",
    "race",
    ({ request }) => {
      const { published } = request("publish");
      request("publish").published = { ...found(published, "answer"), delivered: 0 };
    },
  ],
  [
    "P6",
    "a delay ended early, by the ledger's clock",
    "delay",
    ({ told }) => {
      const outcome = found(told("outcome", "before")[0], "outcome");
      found(told("run", "after")[0], "run").receivedAt = outcome.receivedAt + 100;
    },
  ],
  [
    "P6",
    "a delay ended early, by the product's word",
    "delay",
    ({ step }) => {
      step("rest").completedAt = step("rest").startedAt;
    },
  ],
  [
    "P6",
    "a timer was forgotten until much later",
    "delay",
    ({ told }) => {
      found(told("run", "after")[0], "run").receivedAt += 120_000;
    },
  ],
  [
    "P6",
    "a timeout came early",
    "stale",
    ({ told }) => {
      const outcome = found(told("outcome", "before")[0], "outcome");
      found(told("run", "late")[0], "run").receivedAt = outcome.receivedAt + 100;
    },
  ],
  [
    "P6",
    "a retry came before its time",
    "retried",
    ({ told }) => {
      const failed = found(told("failed", "flaky")[0], "failure");
      const again = told("run", "flaky").find(({ attempt }) => attempt === 2);
      found(again, "retry").receivedAt = failed.receivedAt + 50;
    },
  ],
];

for (const [promise, what, scenario, tamper, index = 0] of forgeries) {
  test(`${promise}: ${what}`, () => {
    expect(broken(scenario, tamper, index)).toContain(promise);
  });
}
