import type { InstanceView } from "@millrace/contract";
import { expect, test } from "vitest";
import { broken, found, lastChange, without } from "./forgery.ts";
import type { Forgeries } from "./forgery.ts";

const forgeries: Forgeries = [
  [
    "P9",
    "what failed was undone, and nobody had cancelled it",
    "abandoned",
    (forgery) => {
      const { history, view } = forgery;
      const last = lastChange(history, "workflow.status");
      history.splice(history.indexOf(last), 1);
      without(forgery, "cancel");
      view.status = "FAILED";
    },
  ],
  [
    "P9",
    "what was abandoned is not undone",
    "abandoned",
    ({ view }) => void (view.compensation = null),
  ],
  [
    "P8",
    "the join did not wait for all",
    "parallel_all",
    ({ told }) => {
      found(told("outcome", "r2")[0], "outcome").seq += 1_000_000;
    },
  ],
  [
    "P8",
    "the join did not wait for two",
    "parallel_two",
    ({ told }) => {
      for (const name of ["p", "q"]) {
        for (const outcome of told("outcome", `${name}2`)) outcome.seq += 1_000_000;
      }
    },
  ],
  [
    "P8",
    "the join fired twice",
    "parallel_all",
    ({ history }) => {
      const fired = history.find(({ stepId }) => stepId === "after");
      history.push(structuredClone(found(fired, "after")));
    },
  ],
  [
    "P8",
    "a branch went on after the join",
    "parallel_all",
    ({ told }) => {
      found(told("outcome", "q1")[0], "outcome").seq += 1_000_000;
    },
  ],
  [
    "P8",
    "the output of a MAP is not in the order of its items",
    "map",
    ({ step }) => {
      step("items").output = (step("items").output as InstanceView[]).toReversed() as never;
    },
  ],
  [
    "P9",
    "compensations in the wrong order",
    "saga",
    ({ view }) => {
      Object.assign(view.compensation ?? {}, { plan: view.compensation?.plan.toReversed() });
    },
  ],
  [
    "P9",
    "a completed step is not undone",
    "saga",
    ({ view }) => {
      Object.assign(view.compensation ?? {}, { plan: view.compensation?.plan.slice(1) });
    },
  ],
  [
    "P9",
    "a compensation ran before the one before it had ended",
    "saga",
    ({ told }) => {
      found(told("run", "undo_a")[0], "run").seq = 0;
    },
  ],
  [
    "P9",
    "a failed compensation is not recorded",
    "saga",
    ({ view }) => {
      const { completed = [] } = view.compensation ?? {};
      Object.assign(view.compensation ?? {}, { failed: [], completed: [...completed, "undo_b"] });
    },
  ],
  [
    "P9",
    "the rest is not undone after a failed compensation",
    "saga",
    ({ view }) => {
      const { completed = [] } = view.compensation ?? {};
      const left = completed.filter((step) => step !== "undo_a");
      Object.assign(view.compensation ?? {}, { completed: left });
    },
  ],
  [
    "P9",
    "a step that never ran is called uncertain, and no worker had died",
    "saga",
    ({ view }) => void Object.assign(view.compensation ?? {}, { uncertain: ["d"] }),
  ],
  [
    "P9",
    "nothing is compensated",
    "saga_of_branches",
    ({ view }) => void (view.compensation = null),
  ],
  [
    "P9",
    "what was completed is undone",
    "retried",
    ({ entries, told }) => {
      const run = structuredClone(found(told("run", "before")[0], "run"));
      entries.push({ ...run, seq: 1_000_000, step: "undo_before", idempotencyKey: "undo" });
    },
  ],
  [
    "P10",
    "a MAP runs more items at once than it may",
    "map",
    ({ told }) => {
      const first = found(told("run", "item")[0], "run").seq;
      for (const [index, outcome] of told("outcome", "item").entries()) {
        Object.assign(outcome.details ?? {}, { run: first });
        if (index === 0) outcome.seq = first;
      }
    },
  ],
];

for (const [promise, what, scenario, tamper, index = 0] of forgeries) {
  test(`${promise}: ${what}`, () => {
    expect(broken(scenario, tamper, index)).toContain(promise);
  });
}
