import { expect, test } from "vitest";
import { broken, found, without } from "./forgery.ts";
import type { Forgeries } from "./forgery.ts";

const forgeries: Forgeries = [
  [
    "P11",
    "what is parked goes on before its operator has spoken",
    "parked",
    ({ told, request }) => {
      const fourth = told("run", "flaky").find(({ attempt }) => attempt === 4);
      found(fourth, "run").receivedAt = request("retry").sentAt - 50;
    },
  ],
  [
    "P11",
    "what is parked goes on, though nobody ever resumed it",
    "parked",
    (f) => without(f, "resume"),
    1,
  ],
  [
    "P12",
    "a rival goes without an event",
    "rival",
    ({ view }) => void (view.status = "WAITING_FOR_EVENT"),
  ],
  [
    "P11",
    "a step began long after the cancel",
    "cancelled",
    ({ entries, told, request }) => {
      const run = structuredClone(found(told("run", "before")[0], "run"));
      const receivedAt = request("cancel").answeredAt + 30_000;
      entries.push({ ...run, seq: 1_000_000, receivedAt });
    },
  ],
  [
    "P11",
    "a late result moved the workflow on",
    "cancelled",
    ({ entries, told, request }) => {
      const run = structuredClone(found(told("run", "long")[0], "run"));
      const at = request("cancel").answeredAt;
      const outcome = { ...run.details, kind: "outcome" };
      entries.push({ ...run, seq: 1_000_000, receivedAt: at + 10, details: outcome });
      entries.push({
        ...run,
        seq: 1_000_001,
        receivedAt: at + 20,
        step: "after",
        idempotencyKey: "after",
        details: { ...run.details, saw: 1_000_000 },
      });
    },
  ],
  [
    "P11",
    "what ran was never told of the cancel",
    "cancelled",
    ({ entries, told }) => {
      for (const entry of told("aborted", "long")) entries.splice(entries.indexOf(entry), 1);
    },
  ],
  ["P12", "it stands still", "chain", ({ view }) => void (view.status = "RUNNING")],
  [
    "P12",
    "its compensation never ends",
    "saga",
    ({ view }) => void Object.assign(view.compensation ?? {}, { status: "IN_PROGRESS" }),
  ],
];

for (const [promise, what, scenario, tamper, index = 0] of forgeries) {
  test(`${promise}: ${what}`, () => {
    expect(broken(scenario, tamper, index)).toContain(promise);
  });
}
