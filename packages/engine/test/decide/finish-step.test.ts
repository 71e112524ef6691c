import { describe, expect, test } from "vitest";
import { canCancel } from "../../src/decide/cancel.ts";
import { define } from "../support/definitions.ts";
import { noon, simulate } from "../support/simulation.ts";
import type { Simulation } from "../support/simulation.ts";

function running(fields: object, more: Partial<Parameters<typeof define>[0]> = {}): Simulation {
  const simulation = simulate(define({ steps: [{ stepId: "a", ...fields }], ...more }));
  simulation.start();
  return simulation;
}

const seconds = (count: number) => new Date(noon.getTime() + count * 1_000);

describe("a failed attempt", () => {
  test("waits for the next, which has a job of its own, due then", () => {
    const simulation = running({ retry: { initialInterval: "PT4S", jitter: "NONE" } });

    const { updates, commands } = simulation.fail("a", { type: "Busy", message: "later" });

    expect(updates).toMatchObject([
      { status: "RETRYING", attempt: 2, retryAt: seconds(4), error: { type: "Busy", attempt: 1 } },
    ]);
    expect(commands).toMatchObject([{ kind: "dispatch", attempt: 2, delayMs: 4_000 }]);
    expect(simulation.snapshot.status).toBe("RUNNING");
  });

  test("backs off by the coefficient, up to the maximum", () => {
    const simulation = running({
      retry: {
        maxAttempts: 5,
        initialInterval: "PT1S",
        backoffCoefficient: 3,
        maxInterval: "PT5S",
        jitter: "NONE",
      },
    });

    const delays = [1, 2, 3, 4].map(() => {
      const { commands } = simulation.fail("a");
      return commands.flatMap((command) => (command.kind === "dispatch" ? command.delayMs : []));
    });

    expect(delays.flat()).toEqual([1_000, 3_000, 5_000, 5_000]);
  });

  test("with an interval of zero is tried again at once, and still counted", () => {
    const simulation = running({ retry: { maxAttempts: 2, initialInterval: "PT0S" } });

    const { commands } = simulation.fail("a");
    simulation.fail("a");

    expect(commands).toMatchObject([{ kind: "dispatch", attempt: 2, delayMs: 0 }]);
    expect(simulation.row("a")).toMatchObject({ status: "FAILED", attempt: 2 });
  });

  test.each([
    ["is the last one", { maxAttempts: 1 }, {}],
    ["has a name that is not retried", { nonRetryableErrors: ["Busy"] }, { type: "Busy" }],
    ["says itself that no retry helps", {}, { retryable: false }],
  ])("that %s ends the step", (_, retry, failure) => {
    const simulation = running({ retry });

    simulation.fail("a", failure);

    expect(simulation.row("a")).toMatchObject({ status: "FAILED", attempt: 1 });
    expect(simulation.snapshot).toMatchObject({
      status: "FAILED",
      error: { kind: "TASK", stepId: "a", attempt: 1 },
    });
  });

  test("leaves no error behind on a step that succeeds later", () => {
    const simulation = running({});
    simulation.fail("a");

    simulation.succeed("a", "at last");

    expect(simulation.row("a")).toMatchObject({ status: "COMPLETED", attempt: 2, error: null });
  });

  test("that is reported again, or late, changes nothing", () => {
    const simulation = running({});
    simulation.fail("a");
    const { snapshot, history } = simulation;

    for (const signal of history[1]?.signals ?? []) {
      expect(simulation.send(signal).snapshot).toBe(snapshot);
    }
  });
});

describe("onError", () => {
  const steps = (errors: readonly string[]) => [
    {
      stepId: "a",
      retry: { maxAttempts: 1 },
      onError: [
        { errors: ["Other"], to: "other" },
        { errors, to: "handler" },
      ],
    },
    { stepId: "other" },
    { stepId: "handler", input: "${ steps.a.error }" },
  ];

  test.each([[["Declined"]], [["*"]]])("takes the error by its name or by *: %s", (errors) => {
    const simulation = simulate(define({ steps: steps(errors) }));
    simulation.start();

    const { inserts } = simulation.fail("a", { type: "Declined", message: "no funds" });

    expect(simulation.statuses()).toEqual({ a: "FAILED", handler: "PENDING" });
    expect(inserts[0]?.input).toMatchObject({
      kind: "TASK",
      type: "Declined",
      message: "no funds",
    });
  });

  test("that names other errors does not, and the instance fails", () => {
    const simulation = simulate(define({ steps: steps(["Someone's"]) }));
    simulation.start();

    simulation.fail("a", "Declined");

    expect(simulation.snapshot).toMatchObject({ status: "FAILED", error: { type: "Declined" } });
  });
});

describe("an attempt that ran too long, or fell silent", () => {
  test.each(["timeout", "heartbeat"] as const)("by its %s is a failed attempt TIMEOUT", (clock) => {
    const simulation = running({ timeout: "PT30S" });

    const { updates, commands } = simulation.timeOut("a", clock);

    expect(updates).toMatchObject([
      { status: "RETRYING", error: { kind: "TIMEOUT", type: "TIMEOUT" } },
    ]);
    expect(commands).toMatchObject([
      { kind: "dispatch", attempt: 2 },
      { kind: "abort", attempt: 1 },
    ]);
  });

  test("for the last time goes through onError as TIMEOUT", () => {
    const simulation = simulate(
      define({
        steps: [
          { stepId: "a", retry: { maxAttempts: 1 }, onError: [{ errors: ["TIMEOUT"], to: "b" }] },
          { stepId: "b" },
        ],
      }),
    );
    simulation.start();

    simulation.timeOut("a");

    expect(simulation.statuses()).toEqual({ a: "FAILED", b: "PENDING" });
  });

  test("whose result comes late has no say any more", () => {
    const simulation = running({});
    simulation.timeOut("a");
    const { snapshot } = simulation;

    const late = { kind: "stepSucceeded", path: "a", iteration: 1, attempt: 1, output: 1 } as const;

    expect(simulation.send(late).snapshot).toBe(snapshot);
  });
});

describe("a poisoned step", () => {
  const poison = { kind: "poisoned", path: "a", iteration: 1, attempt: 1, deliveries: 5 } as const;

  test("fails the instance past onError, and nothing is undone until somebody looks", () => {
    const simulation = simulate(
      define({
        steps: [
          { stepId: "a", transitions: { default: "b" } },
          { stepId: "b", onError: [{ errors: ["*"], to: "c" }] },
          { stepId: "c" },
        ],
        compensationSteps: [{ stepId: "undo_a", compensationFor: "a" }],
      }),
    );
    simulation.start();
    simulation.succeed("a");
    simulation.claim("b");

    simulation.send({ ...poison, path: "b" });

    expect(simulation.snapshot).toMatchObject({
      status: "FAILED",
      error: { kind: "POISONED", stepId: "b", details: { deliveries: 5, deadLetter: "OPEN" } },
      compensation: null,
    });
    expect(simulation.statuses()).toEqual({ a: "COMPLETED", b: "FAILED" });
  });

  const twoSteps = (more: object = {}) =>
    define({
      steps: [{ stepId: "a", transitions: { default: "b" } }, { stepId: "b" }],
      compensationSteps: [{ stepId: "undo_a", compensationFor: "a" }],
      ...more,
    });
  const poisoned = (definition = twoSteps()) => {
    const simulation = simulate(definition);
    simulation.start();
    simulation.succeed("a");
    simulation.claim("b");
    const decision = simulation.send({ ...poison, path: "b" });
    return { simulation, decision };
  };
  const discard = { kind: "deadLetterDiscarded", actor: "user:ada", reason: "no" } as const;

  test("opens a dead letter in the commit that fails the instance", () => {
    const { decision } = poisoned();

    expect(decision.commands).toContainEqual({
      kind: "openDeadLetter",
      path: "b",
      iteration: 1,
      attempt: 1,
      error: expect.objectContaining({ kind: "POISONED", details: { deliveries: 5 } }),
    });
  });

  test("is undone from when its dead letter is discarded, once", () => {
    const { simulation } = poisoned();

    const { commands, entries } = simulation.send(discard);
    const again = simulation.send(discard);
    simulation.succeed("undo_a");

    expect(commands).toContainEqual({
      kind: "resolveDeadLetter",
      outcome: "DISCARDED",
      actor: "user:ada",
      reason: "no",
    });
    expect(entries[0]).toMatchObject({ type: "workflow.deadLetter.discarded", actor: "user:ada" });
    expect(again.commands).toEqual([]);
    expect(simulation.snapshot).toMatchObject({
      status: "FAILED",
      error: { kind: "POISONED", details: { deadLetter: "DISCARDED" } },
      compensation: { status: "COMPLETED", completed: ["undo_a"] },
    });
  });

  test("stays as it is when discarded, where a failure is not compensated", () => {
    const { simulation } = poisoned(twoSteps({ compensateOnFailure: false }));
    const { completedAt } = simulation.snapshot;

    simulation.send(discard);

    expect(simulation.snapshot).toMatchObject({
      status: "FAILED",
      compensation: null,
      completedAt,
    });
    expect(simulation.snapshot.error?.details).toMatchObject({ deadLetter: "DISCARDED" });
  });

  test("leaves the outcome of what ran beside it unknown, and a compensation says so", () => {
    const simulation = simulate(
      define({
        steps: [
          {
            stepId: "both",
            type: "PARALLEL",
            branches: [
              { name: "one", steps: [{ stepId: "kill" }] },
              { name: "two", steps: [{ stepId: "pay" }] },
            ],
          },
        ],
        compensationSteps: [{ stepId: "refund", compensationFor: "pay" }],
      }),
    );
    simulation.start();
    simulation.claim("kill");
    simulation.claim("pay");

    simulation.send({ ...poison, path: "both.one.kill" });
    simulation.send(discard);

    expect(simulation.snapshot.compensation).toMatchObject({
      status: "COMPLETED",
      plan: [],
      uncertain: ["both.two.pay"],
    });
  });

  describe("that is a compensation step", () => {
    const stands = () => {
      const simulation = simulate(
        define({
          steps: [
            { stepId: "a", transitions: { default: "b" } },
            { stepId: "b", transitions: { default: "c" } },
            { stepId: "c" },
          ],
          compensationSteps: [
            { stepId: "undo_a", compensationFor: "a" },
            { stepId: "undo_b", compensationFor: "b" },
          ],
        }),
      );
      simulation.start();
      simulation.succeed("a");
      simulation.succeed("b");
      simulation.cancel();
      simulation.claim("undo_b");
      const decision = simulation.send({ ...poison, path: "undo_b" });
      return { simulation, decision };
    };
    const letter = { kind: "openDeadLetter", path: "undo_b" };

    test("has a dead letter, and the compensation stands there until somebody has looked", () => {
      const { simulation, decision } = stands();

      expect(decision.commands).toMatchObject([{ ...letter, iteration: 1, attempt: 1 }]);
      expect(simulation.statuses()).toMatchObject({ undo_b: "FAILED" });
      expect(simulation.snapshot).toMatchObject({
        status: "CANCELLED",
        live: {},
        compensation: { status: "IN_PROGRESS", poisoned: { kind: "POISONED" }, failed: [] },
      });
      expect(canCancel(simulation.snapshot)).toBe(false);
    });

    test("is a failed one once it is discarded, and the rest still run", () => {
      const { simulation } = stands();

      const { commands } = simulation.send(discard);
      const again = simulation.send(discard);
      simulation.succeed("undo_a");

      expect(commands).toContainEqual(
        expect.objectContaining({ kind: "resolveDeadLetter", outcome: "DISCARDED" }),
      );
      expect(again.commands).toEqual([]);
      expect(simulation.snapshot.compensation).toMatchObject({
        status: "COMPLETED_WITH_ERRORS",
        completed: ["undo_a"],
        failed: [{ stepId: "undo_b", error: { kind: "POISONED" } }],
      });
      expect(simulation.snapshot.compensation).not.toHaveProperty("poisoned");
    });

    test("runs again as a new execution when it is retried, before those that come after it", () => {
      const { simulation } = stands();
      const retry = { kind: "deadLetterRetried", actor: "user:ada", reason: null } as const;

      const { commands, entries } = simulation.send(retry);
      const again = simulation.send(retry);
      simulation.succeed("undo_b");
      simulation.succeed("undo_a");

      expect(commands).toMatchObject([
        { kind: "dispatch", path: "undo_b", iteration: 2, attempt: 1 },
        { kind: "resolveDeadLetter", outcome: "RETRIED" },
      ]);
      expect(entries[0]).toMatchObject({ type: "workflow.deadLetter.retried", actor: "user:ada" });
      expect(again.commands).toEqual([]);
      expect(simulation.snapshot.compensation).toMatchObject({
        status: "COMPLETED",
        completed: ["undo_b", "undo_a"],
        failed: [],
      });
    });
  });
});

test("two runs of one instance spread their retries alike, two instances do not", () => {
  const delayOf = (id: string) => {
    const simulation = simulate(define({ steps: [{ stepId: "a" }] }), {}, { id });
    simulation.start();
    return simulation.fail("a").commands;
  };

  expect(delayOf("one")).toEqual(delayOf("one"));
  expect(delayOf("one")).not.toEqual(delayOf("two"));
});

describe("a retry interval that is an expression", () => {
  const pause = "${ input.pause ?? 'PT7S' }";
  const delayOf = (simulation: Simulation): unknown =>
    simulation.fail("a").commands.flatMap((each) => (each.kind === "dispatch" ? each.delayMs : []));

  test.each([
    ["of the step", { initialInterval: pause, jitter: "NONE" }, {}, 7_000],
    ["of the definition", {}, { initialInterval: pause, jitter: "NONE" }, 7_000],
    ["of both", { initialInterval: "PT2S", jitter: "NONE" }, { initialInterval: pause }, 2_000],
    [
      "as the longest",
      { initialInterval: "PT9S", jitter: "NONE" },
      { maxInterval: "${ 'PT' + '3S' }" },
      3_000,
    ],
  ])("%s is evaluated when the attempt has failed", (_, own, outer, delayMs) => {
    const simulation = running({ retry: own }, { retry: outer } as never);

    expect(delayOf(simulation)).toEqual([delayMs]);
  });

  test.each(["${ input.none ?? 'soon' }", "P${ input.none ?? 1 }M", "${ input.none }"])(
    "that has no good value, %s, fails the step at once",
    (interval) => {
      const simulation = running({ retry: { initialInterval: interval } });

      simulation.fail("a", { type: "Busy", message: "later" });

      const cause = { kind: "TASK", type: "Busy", message: "later", attempt: 1 };
      expect(simulation.snapshot).toMatchObject({
        status: "FAILED",
        error: { kind: "EXPRESSION", stepId: "a", attempt: 1, details: { cause } },
      });
    },
  );

  test("sees the error of the attempt that has just failed, and not that of an earlier one", () => {
    const initialInterval = "PT${ steps.a.error.details.after + steps.a.attempts * 100 }S";
    const retry = { maxAttempts: 3, initialInterval, maxInterval: "PT1H", jitter: "NONE" };
    const simulation = running({ retry: { ...retry, backoffCoefficient: 1 } });

    const delays = [7, 9].flatMap((after) =>
      simulation
        .fail("a", { details: { after } })
        .commands.flatMap((each) => (each.kind === "dispatch" ? each.delayMs : [])),
    );

    expect(delays).toEqual([107_000, 209_000]);
  });
});
