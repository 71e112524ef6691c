import { describe, expect, test } from "vitest";
import type { Json } from "@millrace/expressions";
import { failed } from "../support/children.ts";
import { define } from "../support/definitions.ts";
import type { Sketch } from "../support/definitions.ts";
import { noon, simulate } from "../support/simulation.ts";
import type { Simulation } from "../support/simulation.ts";

/** a, b and c in a row, each with its compensation, then a wait. */
function saga(
  fields: Readonly<Record<string, object>> = {},
  more: Partial<Sketch> = {},
): Simulation {
  const simulation = simulate(
    define({
      steps: [
        { stepId: "a", ...fields["a"], transitions: { default: "b" } },
        { stepId: "b", ...fields["b"], transitions: { default: "c" } },
        { stepId: "c", ...fields["c"], transitions: { default: "w" } },
        { stepId: "w", type: "EVENT_WAIT", eventPattern: "go" },
      ],
      compensationSteps: ["a", "b", "c"].map((stepId) => ({
        stepId: `undo_${stepId}`,
        compensationFor: stepId,
        retry: { maxAttempts: 1 },
        ...fields[`undo_${stepId}`],
      })),
      ...more,
    }),
    { order: 7 },
  );
  simulation.start();
  return simulation;
}

function done(simulation: Simulation, outputs: Readonly<Record<string, Json>> = {}): Simulation {
  for (const stepId of ["a", "b", "c"]) simulation.succeed(stepId, outputs[stepId] ?? null);
  return simulation;
}

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

describe("conditions", () => {
  test("are looked at when the plan is frozen: what is false then is not in it", () => {
    const simulation = done(
      saga({
        undo_a: { condition: "workflow.instance.cancellation.reason === 'rain'" },
        undo_b: { condition: "workflow.steps.b.output.kept" },
      }),
      { b: { kept: false } },
    );

    simulation.cancel("rain");

    expect(simulation.snapshot.compensation?.plan).toEqual(["undo_c", "undo_a"]);
  });

  test("that cannot be evaluated are failures, and the rest still run", () => {
    const simulation = done(saga({ undo_b: { condition: "parseJson('oops')" } }));

    simulation.cancel();
    simulation.succeed("undo_c");
    simulation.succeed("undo_a");

    expect(simulation.snapshot.compensation).toMatchObject({
      status: "COMPLETED_WITH_ERRORS",
      plan: ["undo_c", "undo_a"],
      failed: [{ stepId: "undo_b", error: { kind: "EXPRESSION" }, timestamp: noon.toISOString() }],
    });
  });
});

describe("input", () => {
  test("is by default the original output, the workflow's input and state, and the cancellation", () => {
    const simulation = done(saga(), { a: "of a", b: "of b", c: "of c" });

    const { inserts } = simulation.cancel("rain");

    expect(inserts[0]?.input).toEqual({
      originalOutput: "of c",
      workflowInput: { order: 7 },
      workflowState: {
        input: { order: 7 },
        variables: {},
        steps: {
          a: { status: "COMPLETED", output: "of a", attempts: 1 },
          b: { status: "COMPLETED", output: "of b", attempts: 1 },
          c: { status: "COMPLETED", output: "of c", attempts: 1 },
          w: { status: "CANCELLED", attempts: 1 },
        },
      },
      cancellation: simulation.snapshot.cancellation,
    });
  });

  test("has no outputs over 64 KB in the state, the original one excepted", () => {
    const large = "x".repeat(70_000);
    const simulation = done(saga(), { a: large, c: large });

    const { inserts } = simulation.cancel();

    expect(inserts[0]?.input).toMatchObject({ originalOutput: large });
    expect(inserts[0]?.input).not.toHaveProperty("workflowState.steps.a.output");
    expect(inserts[0]?.input).not.toHaveProperty("workflowState.steps.c.output");
  });

  test("that a condition reads is there, however large it is", () => {
    const large = { data: "x".repeat(70_000), n: 1 };
    const simulation = done(saga({ undo_c: { condition: "steps.c.output.n === 1" } }), {
      c: large,
    });

    simulation.cancel();

    expect(simulation.snapshot.compensation?.plan[0]).toBe("undo_c");
  });

  test("leaves out a key without a value, and is null where it has none at all", () => {
    const simulation = done(
      saga({
        undo_c: { input: { reason: "workflow.instance.cancellation.eventId", n: 1 } },
        undo_b: { input: "workflow.instance.cancellation.eventId" },
      }),
    );

    const first = simulation.cancel();
    const second = simulation.succeed("undo_c");

    expect(first.inserts[0]?.input).toEqual({ n: 1 });
    expect(second.inserts[0]?.input).toBeNull();
  });

  test("that cannot be evaluated fails the step, visibly, and the next one has its turn", () => {
    const simulation = done(saga({ undo_c: { input: { a: "${ parseJson('oops') }" } } }));

    simulation.cancel();

    expect(simulation.row("undo_c")).toMatchObject({
      status: "FAILED",
      error: { kind: "EXPRESSION", stepId: "undo_c" },
    });
    expect(simulation.row("undo_b")?.status).toBe("PENDING");
    expect(simulation.snapshot.compensation).toMatchObject({
      next: 1,
      failed: [{ stepId: "undo_c" }],
    });
  });

  test("is evaluated when the step starts, not before", () => {
    const simulation = done(saga({ undo_b: { input: "workflow.instance.state.steps.w.status" } }));
    simulation.cancel();

    const { inserts } = simulation.succeed("undo_c");

    expect(inserts[0]?.input).toBe("CANCELLED");
  });
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

describe("a step in flight at a cancel", () => {
  const inFlight = (fields: object = {}) => {
    const simulation = saga({ b: fields });
    simulation.succeed("a");
    simulation.claim("b");
    return simulation;
  };

  test("is told to stop and awaited: the plan is not frozen, no other step starts", () => {
    const simulation = inFlight();

    const { updates, commands, observedRunning } = simulation.cancel();

    expect(simulation.snapshot).toMatchObject({
      status: "CANCELLED",
      completedAt: null,
      compensation: { status: "IN_PROGRESS", frozen: false, plan: [] },
    });
    expect(updates).toMatchObject([{ path: "b", status: "RUNNING", awaited: true }]);
    expect(commands.filter(({ kind }) => kind === "abort")).toHaveLength(1);
    expect(observedRunning).toEqual(["b#1"]);
  });

  test("that succeeds is COMPLETED and undone first", () => {
    const simulation = inFlight();
    simulation.cancel();

    simulation.succeed("b", "too late");

    expect(simulation.row("b")).toMatchObject({
      status: "COMPLETED",
      output: "too late",
      completion: 2,
    });
    expect(simulation.snapshot.compensation?.plan).toEqual(["undo_b", "undo_a"]);
    expect(simulation.row("c")).toBeUndefined();
  });

  test("that fails is CANCELLED, is not retried, and need not be undone", () => {
    const simulation = inFlight();
    simulation.cancel();

    simulation.fail("b");

    expect(simulation.row("b")?.status).toBe("CANCELLED");
    expect(simulation.snapshot.compensation).toMatchObject({ plan: ["undo_a"], uncertain: [] });
  });

  test.each([
    ["is never heard of again", (simulation: Simulation) => simulation.elapse("PT30S")],
    ["runs into its timeout", (simulation: Simulation) => simulation.timeOut("b")],
    [
      "kills its workers",
      (simulation: Simulation) =>
        simulation.send({ kind: "poisoned", path: "b", iteration: 1, attempt: 1, deliveries: 5 }),
    ],
  ])("that %s is uncertain, and is named so", (_, happen) => {
    const simulation = inFlight();
    simulation.cancel();

    happen(simulation);

    expect(simulation.row("b")?.status).toBe("CANCELLED");
    expect(simulation.snapshot.compensation).toMatchObject({ plan: ["undo_a"], uncertain: ["b"] });
  });

  test.each([
    [undefined, 30],
    ["PT5S", 5],
    ["PT2M", 30],
    ["${ input.order === 7 ? 'PT9S' : 'PT1S' }", 9],
  ])("with the timeout %s is awaited for %i s", (timeout, expected) => {
    const simulation = inFlight(timeout === undefined ? {} : { timeout });

    simulation.cancel();

    expect([...simulation.timers.values()]).toMatchObject([
      { timer: "grace", path: "b", dueAt: new Date(noon.getTime() + expected * 1_000) },
    ]);
  });

  test("drops its other clocks", () => {
    const simulation = inFlight({ totalTimeout: "PT10S", scheduleTimeout: "PT5S" });

    simulation.cancel();

    expect([...simulation.timers.values()].map(({ timer }) => timer)).toEqual(["grace"]);
  });

  test("without a compensation step is not awaited, and its late result is void", () => {
    const simulation = simulate(
      define({
        steps: [{ stepId: "a", transitions: { default: "b" } }, { stepId: "b" }],
        compensationSteps: [{ stepId: "undo_a", compensationFor: "a" }],
      }),
    );
    simulation.start();
    simulation.succeed("a");
    simulation.claim("b");

    const { snapshot } = simulation.cancel();

    expect(simulation.statuses()).toEqual({ a: "COMPLETED", b: "CANCELLED", undo_a: "PENDING" });
    const late = { kind: "stepSucceeded", path: "b", iteration: 1, attempt: 1, output: 1 } as const;
    expect(simulation.send(late).snapshot).toBe(snapshot);
  });

  test("is not awaited where nothing is to be undone", () => {
    const simulation = inFlight();

    simulation.cancel(null, false);

    expect(simulation.row("b")?.status).toBe("CANCELLED");
    expect(simulation.snapshot.completedAt).toEqual(noon);
  });

  test("whose worker has died is awaited like one that runs: what it did is not known", () => {
    const simulation = inFlight();
    simulation.lose("b");

    simulation.cancel();
    simulation.elapse("PT30S");

    expect(simulation.snapshot.compensation).toMatchObject({ plan: ["undo_a"], uncertain: ["b"] });
  });

  test("that no worker has taken is CANCELLED, if that is still so at the commit", () => {
    const simulation = saga();
    simulation.succeed("a");

    const { guards } = simulation.cancel();

    expect(simulation.row("b")?.status).toBe("CANCELLED");
    expect(guards).toEqual([
      { kind: "execution", path: "b", iteration: 1, status: "PENDING", fence: 0 },
    ]);
  });

  test("whose attempt failed in the same decision is not running any more", () => {
    const simulation = inFlight();
    const retry = { maxAttempts: 3, initialIntervalMs: 1_000, backoffCoefficient: 2 };

    simulation.send(
      {
        kind: "stepFailed",
        path: "b",
        iteration: 1,
        attempt: 1,
        failure: { type: "Busy", message: "later", details: null, retryable: true },
        retry: {
          ...retry,
          maxIntervalMs: 60_000,
          jitter: "NONE",
          nonRetryableErrors: [],
          onExhausted: "FAIL",
        },
      },
      { kind: "cancelRequested", reason: null, actor: "user:ada", shouldCompensate: true },
    );

    expect(simulation.row("b")).toMatchObject({ status: "CANCELLED", attempt: 1 });
    expect(simulation.snapshot.compensation).toMatchObject({ frozen: true, plan: ["undo_a"] });
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
