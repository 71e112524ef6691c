import { expect, test } from "vitest";
import { defined } from "../../src/assert.ts";
import { define } from "../support/definitions.ts";
import { leadingTo } from "../support/children.ts";
import { fired, simulate } from "../support/simulation.ts";
import type { Simulation } from "../support/simulation.ts";

const who = { actor: "user:ada", reason: "mended" };

function retry(simulation: Simulation, fromStepId: string | null = null) {
  const intervention = simulation.snapshot.interventions + 1;
  return simulation.send({ kind: "retryRequested", intervention, fromStepId, ...who });
}

/** `a#1 COMPLETED`, … in the order in which they began. */
function rows({ instance }: Simulation): readonly string[] {
  return [...instance.executions].map(([key, { status }]) => `${key} ${status}`);
}

const chain = define({
  retry: { maxAttempts: 1 },
  steps: [
    { stepId: "a", transitions: { default: "b" } },
    { stepId: "b", input: { seen: "${ steps.a.output }" }, transitions: { default: "c" } },
    { stepId: "c" },
  ],
});

function failedAtB(): Simulation {
  const simulation = simulate(chain);
  simulation.start();
  simulation.succeed("a", 1);
  simulation.fail("b");
  return simulation;
}

test("a retry runs the failed step again, as a new execution, and keeps what was completed", () => {
  const simulation = failedAtB();
  const failed = simulation.snapshot;
  const { inserts } = retry(simulation);
  const begun = simulation.snapshot;
  simulation.succeed("b", 2);
  simulation.succeed("c", 3);

  expect([failed.status, failed.failedAt]).toEqual(["FAILED", "b#1"]);
  expect([begun.status, begun.error, begun.completedAt]).toEqual(["RUNNING", null, null]);
  expect(inserts).toMatchObject([{ path: "b", iteration: 2, attempt: 1, input: { seen: 1 } }]);
  expect(rows(simulation)).toEqual([
    "a#1 COMPLETED",
    "b#1 FAILED",
    "b#2 COMPLETED",
    "c#1 COMPLETED",
  ]);
  expect(simulation.snapshot).toMatchObject({ status: "COMPLETED", output: 3, completedSteps: 3 });
});

test("a retry from a step that is named runs from there, and counts for progress once", () => {
  const simulation = failedAtB();
  retry(simulation, "a");
  simulation.succeed("a", 7);
  simulation.succeed("b");
  simulation.succeed("c");

  expect(rows(simulation).filter((row) => row.startsWith("a"))).toEqual([
    "a#1 COMPLETED",
    "a#2 COMPLETED",
  ]);
  expect(simulation.snapshot).toMatchObject({ status: "COMPLETED", completedSteps: 3 });
});

test("a step that was completed and could not be left is left again, and does not run again", () => {
  const simulation = simulate(
    define({
      variables: { next: "oops" },
      steps: [
        {
          stepId: "a",
          transitions: { conditions: [{ when: "parseJson(variables.next)", to: "b" }] },
        },
        { stepId: "b" },
      ],
    }),
  );
  simulation.start();
  simulation.succeed("a");
  const failed = simulation.snapshot;

  retry(simulation);

  expect([failed.status, failed.failedAt]).toEqual(["FAILED", "a#1"]);
  expect(rows(simulation)).toEqual(["a#1 FAILED"]);
  expect(simulation.snapshot).toMatchObject({ status: "FAILED", error: { kind: "EXPRESSION" } });
});

test("a step that can be left at last is COMPLETED again, as it was", () => {
  const simulation = simulate(
    define({
      retry: { initialInterval: "PT0S" },
      steps: [
        {
          stepId: "a",
          transitions: {
            conditions: [
              { when: "workflow.instance.startedAt === now() && parseJson('')", to: "b" },
            ],
            default: "b",
          },
        },
        { stepId: "b", input: "${ steps.a.status }" },
      ],
    }),
  );
  simulation.start();
  simulation.fail("a");
  simulation.succeed("a", "kept");
  const failed = simulation.row("a");
  simulation.elapse("PT1S");

  const { inserts, entries } = retry(simulation);

  expect(failed).toMatchObject({ status: "FAILED", attempt: 2, output: "kept", completion: 1 });
  expect(simulation.row("a")).toEqual({ ...failed, status: "COMPLETED", error: null });
  expect(inserts).toMatchObject([{ stepId: "b", input: "COMPLETED" }]);
  expect(entries.map(({ type }) => type)).toContain("workflow.step.completed");
  simulation.succeed("b");
  expect(simulation.snapshot).toMatchObject({ status: "COMPLETED", completedSteps: 2 });
});

test("a PARALLEL in which a branch failed runs again as a whole, its loops counting on", () => {
  const simulation = simulate(
    define({
      retry: { maxAttempts: 1 },
      steps: [
        {
          stepId: "both",
          type: "PARALLEL",
          branches: [
            { name: "l", steps: [{ stepId: "left" }] },
            { name: "r", steps: [{ stepId: "right" }] },
          ],
        },
      ],
    }),
  );
  simulation.start();
  simulation.succeed("left");
  simulation.fail("right");
  const failed = simulation.snapshot;
  retry(simulation);
  simulation.succeed("left");
  simulation.succeed("right");

  expect(failed.failedAt).toBe("both#1");
  expect(rows(simulation).slice(3)).toEqual([
    "both#2 COMPLETED",
    "both.l.left#2 COMPLETED",
    "both.r.right#2 COMPLETED",
  ]);
  expect(simulation.snapshot).toMatchObject({ status: "COMPLETED", completedSteps: 3 });
});

test.each([null, "prepare"])("items of a MAP that runs again are to do again, from %s", (from) => {
  const items = { stepId: "items", type: "MAP", items: [1, 2, 3], steps: [{ stepId: "item" }] };
  const prepare = { stepId: "prepare", type: "SET", variables: { n: 1 }, ...leadingTo("items") };
  const simulation = simulate(define({ retry: { maxAttempts: 1 }, steps: [prepare, items] }));
  const progress = () => {
    const { completedSteps, begunItems } = simulation.snapshot;
    return { completed: completedSteps, total: simulation.definition.size + begunItems };
  };
  const settle = (at: number, iteration: number) =>
    simulation.send({
      kind: "stepSucceeded",
      path: `items[${at}].item`,
      iteration,
      attempt: 1,
      output: at,
    });
  simulation.start();
  settle(0, 1);
  simulation.fail("item");
  expect(progress()).toEqual({ completed: 3, total: 5 });

  retry(simulation, from);
  expect(progress()).toEqual({ completed: 3, total: 7 });
  for (const at of [0, 1, 2]) settle(at, 2);

  expect(simulation.snapshot.status).toBe("COMPLETED");
  expect(progress()).toEqual({ completed: 7, total: 7 });
});

test("an instance that ran out of time goes on where it stood, and has its whole time again", () => {
  const simulation = simulate(
    define({
      timeout: "PT1H",
      cancellationTriggers: [{ eventPattern: "stop", reason: "stopped" }],
      steps: [{ stepId: "wait", type: "EVENT_WAIT", eventPattern: "paid" }],
    }),
  );
  simulation.start();
  simulation.elapse("PT2H");
  const failed = simulation.snapshot;
  retry(simulation);
  const [timeout] = [...simulation.timers.values()];
  const isOpen = simulation.waits.has("$cancel#1");
  simulation.publish("paid");

  expect([failed.status, failed.failedAt]).toEqual(["FAILED", "wait#1"]);
  expect(timeout?.dueAt.getTime()).toBe(simulation.now.getTime() + 3_600_000);
  expect(isOpen).toBe(true);
  expect(rows(simulation)).toEqual(["wait#1 CANCELLED", "wait#2 COMPLETED"]);
});

test("a clock of the instance that a scheduler took before the failure is void after a retry", () => {
  const simulation = simulate(
    define({ timeout: "PT1H", retry: { maxAttempts: 1 }, steps: [{ stepId: "a" }] }),
  );
  simulation.start();
  const [timeout] = [...simulation.timers.values()].map(fired);
  simulation.fail("a");
  retry(simulation);

  const retried = simulation.snapshot;
  simulation.send(defined(timeout, "timeout"));
  const stale = simulation.snapshot;
  const [again] = [...simulation.timers.values()].map(fired);
  simulation.send(defined(again, "timeout"));

  expect(stale).toBe(retried);
  expect(simulation.snapshot).toMatchObject({ status: "FAILED", error: { type: "TIMEOUT" } });
});

const saga = define({
  retry: { maxAttempts: 1 },
  steps: [
    { stepId: "a", transitions: { default: "b" } },
    { stepId: "b", transitions: { default: "c" } },
    { stepId: "c" },
  ],
  compensationSteps: [
    { stepId: "undoA", compensationFor: "a" },
    { stepId: "undoB", compensationFor: "b" },
  ],
});

function failedAtC(): Simulation {
  const simulation = simulate(saga);
  simulation.start();
  simulation.succeed("a");
  simulation.succeed("b");
  simulation.fail("c");
  return simulation;
}

test("nothing is retried while it is compensated, nor once a step has been undone", () => {
  const simulation = failedAtC();
  const during = retry(simulation);
  simulation.succeed("undoB");
  simulation.fail("undoA");
  const after = retry(simulation);

  expect([during.entries, after.entries]).toEqual([[], []]);
  expect(simulation.snapshot.status).toBe("FAILED");
});

test("where nothing could be undone it is retried, and undone later as ever", () => {
  const simulation = failedAtC();
  simulation.fail("undoB");
  simulation.fail("undoA");
  retry(simulation);
  simulation.fail("c");
  simulation.succeed("undoB");
  simulation.succeed("undoA");

  expect(rows(simulation).filter((row) => row.startsWith("undo"))).toEqual([
    "undoB#1 FAILED",
    "undoA#1 FAILED",
    "undoB#2 COMPLETED",
    "undoA#2 COMPLETED",
  ]);
  expect(simulation.snapshot.compensation?.status).toBe("COMPLETED");
});

test("a failed instance that is cancelled undoes what was not undone, and is CANCELLED", () => {
  const simulation = failedAtC();
  simulation.succeed("undoB");
  simulation.fail("undoA");
  const failed = simulation.snapshot.compensation?.status;
  simulation.cancel("give up");
  const plan = simulation.snapshot.compensation?.plan;
  simulation.succeed("undoA");
  const { snapshot } = simulation;
  simulation.cancel("again");

  expect([failed, plan]).toEqual(["COMPLETED_WITH_ERRORS", ["undoA"]]);
  expect(snapshot).toMatchObject({
    status: "CANCELLED",
    error: null,
    cancellation: { reason: "give up", requestedBy: "user:ada" },
    compensation: { status: "COMPLETED", completed: ["undoB", "undoA"], failed: [] },
  });
  expect(simulation.snapshot).toBe(snapshot);
});

const parked = define({
  retry: { maxAttempts: 2, initialInterval: "PT1S", jitter: "NONE", onExhausted: "PAUSE" },
  steps: [{ stepId: "a", transitions: { default: "b" } }, { stepId: "b" }],
});

function exhausted(): Simulation {
  const simulation = simulate(parked);
  simulation.start();
  simulation.fail("a");
  simulation.fail("a");
  return simulation;
}

test("with onExhausted PAUSE spent retries pause the instance, with the error that it stands at", () => {
  const { snapshot, row } = exhausted();

  expect(snapshot).toMatchObject({
    status: "PAUSED",
    error: { type: "Error", stepId: "a", attempt: 2 },
    pause: { cause: "EXHAUSTED", by: "system", until: null },
  });
  expect(row("a")).toMatchObject({ status: "RETRYING", attempt: 3 });
});

test.each(["resumeRequested", "retryRequested"] as const)(
  "by %s the step has another round of attempts, in the same execution",
  (kind) => {
    const simulation = exhausted();
    simulation.send({ kind, intervention: 1, held: [], fromStepId: null, ...who });
    const resumed = simulation.snapshot;
    simulation.fail("a");
    const again = simulation.snapshot.status;
    simulation.succeed("a");
    simulation.succeed("b");

    expect([resumed.status, resumed.error, again]).toEqual(["RUNNING", null, "RUNNING"]);
    expect(simulation.row("a")).toMatchObject({ iteration: 1, attempt: 4, status: "COMPLETED" });
    expect(simulation.snapshot.status).toBe("COMPLETED");
  },
);

test("from a step that is named a parked instance goes on there, and what it stood at is stopped", () => {
  const simulation = exhausted();
  retry(simulation, "b");
  simulation.succeed("b", 1);

  expect(rows(simulation)).toEqual(["a#1 CANCELLED", "b#1 COMPLETED"]);
  expect(simulation.snapshot).toMatchObject({ status: "COMPLETED", error: null });
});

test("a second round that is spent pauses it again", () => {
  const simulation = exhausted();
  retry(simulation);
  simulation.fail("a");
  simulation.fail("a");

  expect(simulation.snapshot).toMatchObject({ status: "PAUSED", error: { attempt: 4 } });
});

test("an error that the workflow takes itself, or that no retry would mend, does not pause it", () => {
  const taken = simulate(
    define({
      retry: { maxAttempts: 1, onExhausted: "PAUSE" },
      steps: [{ stepId: "a", onError: [{ errors: ["*"], to: "b" }] }, { stepId: "b" }],
    }),
  );
  taken.start();
  taken.fail("a");
  const hopeless = simulate(parked);
  hopeless.start();
  hopeless.fail("a", { retryable: false });

  expect(taken.snapshot.status).toBe("RUNNING");
  expect(hopeless.snapshot.status).toBe("FAILED");
});

test("a retry decides alike in whichever order the rows come: a replay has them as they began", () => {
  const simulation = simulate(
    define({
      retry: { maxAttempts: 1 },
      steps: [
        {
          stepId: "p",
          type: "PARALLEL",
          branches: [
            { name: "a", steps: [{ stepId: "a1", ...leadingTo("a2") }, { stepId: "a2" }] },
            { name: "b", steps: [{ stepId: "b1", ...leadingTo("b2") }, { stepId: "b2" }] },
          ],
        },
      ],
    }),
  );
  simulation.start();
  simulation.succeed("a1");
  simulation.succeed("a2");
  simulation.succeed("b1");
  simulation.fail("b2");

  retry(simulation);

  expect(simulation.snapshot.countedSteps).toEqual(["p.a.a1", "p.a.a2", "p.b.b1"]);
});
