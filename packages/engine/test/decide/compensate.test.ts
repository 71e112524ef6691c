import { describe, expect, test } from "vitest";
import { failed } from "../support/children.ts";
import { define } from "../support/definitions.ts";
import { done, saga } from "../support/saga.ts";
import { noon, simulate } from "../support/simulation.ts";

test("what was completed is undone one by one, latest completion first", () => {
  const simulation = done(saga());

  simulation.cancel();
  expect(simulation.snapshot.compensation).toMatchObject({
    status: "IN_PROGRESS",
    frozen: true,
    plan: ["undo_c", "undo_b", "undo_a"],
    targets: ["c#1", "b#1", "a#1"],
  });
  for (const stepId of ["undo_c", "undo_b", "undo_a"]) {
    expect(simulation.row(stepId)?.status).toBe("PENDING");
    simulation.succeed(stepId);
  }

  expect(simulation.snapshot).toMatchObject({
    status: "CANCELLED",
    completedAt: noon,
    compensation: {
      status: "COMPLETED",
      completed: ["undo_c", "undo_b", "undo_a"],
      failed: [],
      uncertain: [],
      completedAt: noon.toISOString(),
    },
  });
});

const insideWait = [{ stepId: "inside", type: "EVENT_WAIT", eventPattern: "go" }];

test.each([
  ["a wait", { type: "EVENT_WAIT", eventPattern: "go" }],
  ["a PARALLEL", { type: "PARALLEL", branches: [{ name: "x", steps: insideWait }] }],
  ["a MAP", { type: "MAP", items: [1], steps: insideWait }],
  ["a step between two children", { type: "SUB_WORKFLOW", workflowId: "other", retry: {} }],
])("%s that could be undone is not awaited: nothing of it could still succeed", (_what, step) => {
  const simulation = simulate(
    define({
      steps: [
        { stepId: "a", transitions: { default: "b" } },
        { stepId: "b", ...step },
      ],
      compensationSteps: ["a", "b"].map((stepId) => ({
        stepId: `undo_${stepId}`,
        compensationFor: stepId,
      })),
    }),
  );
  simulation.start();
  simulation.succeed("a");
  if (step.type === "SUB_WORKFLOW") simulation.endChild("b", failed);

  simulation.cancel();

  expect(simulation.row("b")?.status).toBe("CANCELLED");
  expect(simulation.snapshot.compensation).toMatchObject({
    frozen: true,
    plan: ["undo_a"],
    uncertain: [],
  });
});

test("with nothing completed the plan is empty, and the instance settles at once", () => {
  const simulation = saga();

  simulation.cancel();

  expect(simulation.snapshot.compensation).toMatchObject({
    status: "COMPLETED",
    plan: [],
    completed: [],
    failed: [],
  });
});

test("a failure compensates unless the definition says otherwise", () => {
  const plain = saga({ b: { retry: { maxAttempts: 1 } } });
  const without = saga({ b: { retry: { maxAttempts: 1 } } }, { compensateOnFailure: false });
  for (const simulation of [plain, without]) {
    simulation.succeed("a");
    simulation.fail("b");
  }

  expect(plain.snapshot).toMatchObject({ status: "FAILED", compensation: { plan: ["undo_a"] } });
  expect(without.snapshot).toMatchObject({ status: "FAILED", compensation: null });
});

test("a first cancel while a failure is being undone is one: what is under way goes on, once", () => {
  const simulation = saga({ c: { retry: { maxAttempts: 1 } } });
  simulation.succeed("a");
  simulation.succeed("b");
  simulation.fail("c");
  simulation.succeed("undo_b");

  const { commands, inserts } = simulation.cancel();
  const again = simulation.cancel();
  simulation.succeed("undo_a");

  expect([commands, inserts, again.inserts]).toEqual([[], [], []]);
  expect(again.snapshot.version).toBe(simulation.snapshot.version - 1);
  expect(simulation.snapshot).toMatchObject({
    status: "CANCELLED",
    error: null,
    cancellation: { source: "API", shouldCompensate: true },
    compensation: {
      status: "COMPLETED",
      plan: ["undo_b", "undo_a"],
      completed: ["undo_b", "undo_a"],
    },
  });
});

test.each([
  [true, 1],
  [false, 0],
])(
  "attempts of a step that is stopped are those begun: taken by a worker: %s, %i",
  (isTaken, attempts) => {
    const simulation = simulate(
      define({
        steps: [{ stepId: "a", transitions: { default: "b" } }, { stepId: "b" }],
        compensationSteps: [
          { stepId: "undo_a", compensationFor: "a", input: "${ steps.b.attempts }" },
        ],
      }),
    );
    simulation.start();
    simulation.succeed("a");
    if (isTaken) simulation.claim("b");

    const { inserts } = simulation.cancel();

    expect(simulation.row("b")).toMatchObject({ status: "CANCELLED", attempt: attempts });
    expect(inserts).toMatchObject([{ path: "undo_a", input: attempts }]);
  },
);

describe("a step of which nobody knows what it has done is uncertain:", () => {
  const running = (fields: object) => {
    const simulation = saga({ b: fields });
    simulation.succeed("a");
    simulation.claim("b");
    return simulation;
  };

  test.each(["timeout", "heartbeat"] as const)("its last attempt ended by its %s", (clock) => {
    const simulation = running({ retry: { maxAttempts: 1 } });

    simulation.timeOut("b", clock);

    expect(simulation.snapshot).toMatchObject({
      status: "FAILED",
      compensation: { plan: ["undo_a"], uncertain: ["b"] },
    });
  });

  test("a handler took its timeout, and the workflow is cancelled later", () => {
    const simulation = running({
      retry: { maxAttempts: 1 },
      onError: [{ errors: ["TIMEOUT"], to: "w" }],
    });
    simulation.timeOut("b");

    simulation.cancel();

    expect(simulation.snapshot.compensation).toMatchObject({ uncertain: ["b"] });
  });

  test("it waits for its next attempt after one that has timed out", () => {
    const simulation = running({ retry: { maxAttempts: 3 } });
    simulation.timeOut("b");

    simulation.cancel();

    expect(simulation.snapshot.compensation).toMatchObject({ uncertain: ["b"] });
  });

  test("it ran when its totalTimeout was over, and not when it only waited", () => {
    for (const [wasTaken, uncertain] of [
      [true, ["b"]],
      [false, []],
    ] as const) {
      const simulation = saga({ b: { totalTimeout: "PT5S" } });
      simulation.succeed("a");
      if (wasTaken) simulation.claim("b");

      simulation.elapse("PT5S");

      expect(simulation.snapshot.compensation).toMatchObject({ uncertain });
    }
  });

  test("its workers died of it, and its dead letter is discarded", () => {
    const simulation = running({});
    simulation.send({ kind: "poisoned", path: "b", iteration: 1, attempt: 1, deliveries: 5 });

    simulation.send({ kind: "deadLetterDiscarded", actor: "user:ada", reason: null });

    expect(simulation.snapshot.compensation).toMatchObject({ plan: ["undo_a"], uncertain: ["b"] });
  });

  test("not one that completed in a later attempt, or failed by itself", () => {
    const simulation = running({ retry: { maxAttempts: 2 } });
    simulation.timeOut("b");
    simulation.claim("b");
    simulation.succeed("b");
    simulation.fail("c", { retryable: false });

    expect(simulation.snapshot.compensation).toMatchObject({
      plan: ["undo_b", "undo_a"],
      uncertain: [],
    });
  });
});

test("in a loop every completed execution is undone, each with its own output", () => {
  const simulation = simulate(
    define({
      steps: [
        {
          stepId: "a",
          transitions: { conditions: [{ when: "steps.a.output < 3", to: "a" }], default: "w" },
        },
        { stepId: "w", type: "EVENT_WAIT", eventPattern: "go" },
      ],
      compensationSteps: [
        {
          stepId: "undo_a",
          compensationFor: "a",
          input: "${ steps.a.output }",
          condition: "steps.a.output !== 2",
        },
      ],
    }),
  );
  simulation.start();
  for (const output of [1, 2, 3]) simulation.succeed("a", output);

  const first = simulation.cancel();
  const second = simulation.succeed("undo_a");

  expect(first.snapshot.compensation).toMatchObject({ targets: ["a#3", "a#1"] });
  expect(first.inserts).toMatchObject([
    { path: "undo_a", iteration: 1, input: 3, compensates: "a#3" },
  ]);
  expect(second.inserts).toMatchObject([
    { path: "undo_a", iteration: 2, input: 1, compensates: "a#1" },
  ]);
});

test("a compensation step is retried by its own policy, then recorded, and the rest still run", () => {
  const simulation = done(saga({ undo_c: { retry: { maxAttempts: 2, initialInterval: "PT1S" } } }));
  simulation.cancel();

  expect(simulation.fail("undo_c").updates).toMatchObject([{ status: "RETRYING", attempt: 2 }]);
  simulation.fail("undo_c", { type: "Locked", message: "no" });
  simulation.succeed("undo_b");
  simulation.fail("undo_a", { retryable: false });

  expect(simulation.snapshot.compensation).toMatchObject({
    status: "COMPLETED_WITH_ERRORS",
    completed: ["undo_b"],
    failed: [
      { stepId: "undo_c", error: { type: "Locked", attempt: 2 } },
      { stepId: "undo_a", error: { attempt: 1 } },
    ],
  });
});

test("a compensation step in flight is not disturbed by a second cancel", () => {
  const simulation = done(saga());
  simulation.cancel();
  simulation.claim("undo_c");
  const { snapshot } = simulation;

  expect(simulation.cancel("again").snapshot).toBe(snapshot);
});

test.each([
  ["${ workflow.input.pause ?? 'PT6S' }", [6_000]],
  ["${ workflow.input.pause ?? 'soon' }", []],
])(
  "a retry interval of a compensation step, %s, is evaluated when it failed",
  (interval, delays) => {
    const retry = { maxAttempts: 2, initialInterval: interval, jitter: "NONE" };
    const simulation = done(saga({ undo_c: { retry } }));
    simulation.cancel();

    const { commands } = simulation.fail("undo_c");

    const waits = commands.flatMap((each) =>
      each.kind === "dispatch" && each.attempt === 2 ? each.delayMs : [],
    );
    expect(waits).toEqual(delays);
  },
);
