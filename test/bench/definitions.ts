import { range } from "./statistics.ts";

/** The workflows of the workloads, as documents. */

const noop = (stepId: string, next?: string) => task(stepId, "noop", next);

function task(stepId: string, taskId: string, next?: string) {
  return {
    stepId,
    type: "TASK",
    taskId,
    ...(next === undefined ? {} : { transitions: { default: next } }),
  };
}

/** Three steps that do nothing. */
export const chain3 = {
  id: "bench_chain3",
  steps: [noop("a", "b"), noop("b", "c"), noop("c")],
};

/** `count` steps, one after the other, each with an output of 1 KB. */
export function chainOf(count: number) {
  return {
    id: `bench_chain${count}`,
    steps: range(count).map((index) =>
      task(`s${index}`, "bench.kilobyte", index + 1 < count ? `s${index + 1}` : undefined),
    ),
  };
}

/** Waits for the one event that carries its key. */
export const waiter = {
  id: "bench_waiter",
  steps: [
    {
      stepId: "wait",
      type: "EVENT_WAIT",
      eventPattern: "bench.go",
      eventCondition: "event.payload.key === workflow.input.key",
      transitions: { default: "end" },
    },
    { stepId: "end", type: "END", outcome: "COMPLETED" },
  ],
};

/** Does nothing for each of its items, all at once. */
export const fanOut = {
  id: "bench_fanout",
  steps: [{ stepId: "each", type: "MAP", items: "input.items", steps: [noop("one")] }],
};

/** Sleeps, then a task says when it runs. */
export const sleeper = {
  id: "bench_sleeper",
  steps: [
    { stepId: "sleep", type: "DELAY", duration: "PT5S", transitions: { default: "stamp" } },
    task("stamp", "bench.stamp"),
  ],
};
