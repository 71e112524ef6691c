import { describe, expect, test } from "vitest";
import type { Signal } from "../../src/state/signal.ts";
import { define } from "../support/definitions.ts";
import { noon, simulate } from "../support/simulation.ts";

describe("totalTimeout", () => {
  const total = define({
    steps: [
      {
        stepId: "a",
        totalTimeout: "PT10S",
        retry: { initialInterval: "PT1M", jitter: "NONE" },
        onError: [{ errors: ["TIMEOUT"], to: "b" }],
      },
      { stepId: "b" },
    ],
  });

  test("ends a step that runs, and tells its worker", () => {
    const simulation = simulate(total);
    simulation.start();
    simulation.claim("a");

    const [firing] = simulation.elapse("PT10S");

    expect(simulation.statuses()).toEqual({ a: "FAILED", b: "PENDING" });
    expect(firing?.decision.commands).toContainEqual(
      expect.objectContaining({ kind: "abort", path: "a" }),
    );
  });

  test("spans all attempts and the waits between: an attempt that never began is not counted", () => {
    const simulation = simulate(total);
    simulation.start();
    simulation.fail("a");

    simulation.elapse("PT10S");

    expect(simulation.row("a")).toMatchObject({
      status: "FAILED",
      attempt: 1,
      error: { kind: "TIMEOUT", attempt: 1 },
    });
  });
});

describe("scheduleTimeout", () => {
  const scheduled = define({
    steps: [
      {
        stepId: "a",
        scheduleTimeout: "PT10S",
        retry: { initialInterval: "PT5S", jitter: "NONE" },
      },
    ],
  });

  test("ends a step that no worker has taken, if that is still so at the commit", () => {
    const simulation = simulate(scheduled);
    simulation.start();

    const [firing] = simulation.elapse("PT10S");

    expect(simulation.snapshot).toMatchObject({ status: "FAILED", error: { kind: "TIMEOUT" } });
    expect(firing?.decision.guards).toEqual([
      { kind: "execution", path: "a", iteration: 1, status: "PENDING", fence: 0 },
    ]);
  });

  test("is met by a step that runs, and is gone from then on", () => {
    const simulation = simulate(scheduled);
    simulation.start();
    simulation.claim("a");

    const [firing] = simulation.elapse("P1D");

    expect(simulation.snapshot).toMatchObject({ status: "RUNNING" });
    expect(firing?.decision).toMatchObject({ observedRunning: ["a#1"], updates: [], entries: [] });
    expect(simulation.timers.size).toBe(0);
  });

  test.each(["PT0S", "PT8S"])(
    "was met by a step that is queued again since its worker died, %s later",
    (ran) => {
      const simulation = simulate(scheduled);
      simulation.start();
      simulation.claim("a");
      simulation.elapse(ran);
      simulation.lose("a");

      simulation.elapse("P1D");
      simulation.succeed("a");

      expect(simulation.snapshot).toMatchObject({ status: "COMPLETED" });
    },
  );

  test.each(["scheduleTimeout", "totalTimeout"])(
    "its %s over, a task that no worker has taken was never tried",
    (clock) => {
      const simulation = simulate(
        define({
          steps: [
            { stepId: "a", [clock]: "PT10S", onError: [{ errors: ["TIMEOUT"], to: "b" }] },
            { stepId: "b", input: { attempts: "${ steps.a.attempts }" } },
          ],
        }),
      );
      simulation.start();

      const [firing] = simulation.elapse("PT10S");

      expect(simulation.row("a")).toMatchObject({ attempt: 0, error: { attempt: null } });
      expect(firing?.decision.inserts).toMatchObject([{ stepId: "b", input: { attempts: 0 } }]);
    },
  );

  test("begins again when the next attempt is due", () => {
    const simulation = simulate(scheduled);
    simulation.start();
    simulation.fail("a");

    expect([...simulation.timers.values()]).toMatchObject([
      { timer: "schedule", attempt: 2, dueAt: new Date(noon.getTime() + 15_000) },
    ]);
  });

  test("of an earlier attempt is void", () => {
    const simulation = simulate(scheduled);
    simulation.start();
    simulation.fail("a");
    const { snapshot } = simulation;

    const stale: Signal = {
      kind: "timerFired",
      timer: "schedule",
      path: "a",
      iteration: 1,
      attempt: 1,
    };

    expect(simulation.send(stale).snapshot).toBe(snapshot);
  });
});

describe("the instance timeout", () => {
  const limited = define({
    timeout: "PT1H",
    steps: [
      { stepId: "a", transitions: { default: "w" } },
      { stepId: "w", type: "EVENT_WAIT", eventPattern: "go" },
    ],
    compensationSteps: [{ stepId: "undo_a", compensationFor: "a" }],
  });

  test("fails it wherever it stands, and what was done is undone", () => {
    const simulation = simulate(limited);
    simulation.start();
    simulation.succeed("a");

    simulation.elapse("PT1H");

    expect(simulation.snapshot).toMatchObject({
      status: "FAILED",
      error: { kind: "TIMEOUT", type: "TIMEOUT", stepId: null },
      compensation: { plan: ["undo_a"] },
    });
  });

  test("has no say once the instance is being undone", () => {
    const simulation = simulate(limited);
    simulation.start();
    simulation.succeed("a");
    simulation.cancel();

    expect(simulation.elapse("PT1H")).toEqual([]);
  });
});

test.each(["wait", "delay", "total", "schedule", "grace", "continue", "start", "timeout"] as const)(
  "a %s timer that nobody set is void",
  (timer) => {
    const simulation = simulate(define({ steps: [{ stepId: "a" }] }));
    simulation.start();
    const { snapshot } = simulation;

    for (const path of ["", "a", "gone"]) {
      const signal: Signal = { kind: "timerFired", timer, path, iteration: 1, attempt: 1 };
      expect(simulation.send(signal).snapshot).toBe(snapshot);
    }
  },
);

describe("timeout of a step that no worker runs", () => {
  const rescue = { onError: [{ errors: ["TIMEOUT"], to: "rescue" }] };
  const timedOut = { kind: "TIMEOUT", type: "TIMEOUT", attempt: null };

  const wait = (more: object) =>
    define({
      steps: [
        { stepId: "w", type: "EVENT_WAIT", eventPattern: "go", ...rescue, ...more },
        { stepId: "rescue", transitions: { default: "handler" } },
        { stepId: "handler" },
      ],
    });
  const eventTimeout = (duration: string) => ({
    eventTimeout: { duration, timeoutHandlerStepId: "handler" },
  });

  test("of an EVENT_WAIT is an error, if no event has taken it by the commit", () => {
    const simulation = simulate(wait({ timeout: "PT10S" }));
    simulation.start();

    const [firing] = simulation.elapse("PT10S");

    expect(simulation.statuses()).toEqual({ w: "FAILED", rescue: "PENDING" });
    expect(simulation.row("w")?.error).toMatchObject({ ...timedOut, stepId: "w" });
    expect(firing?.decision.guards).toEqual([{ kind: "waitUnmatched", path: "w", iteration: 1 }]);
    expect([...simulation.waits, ...simulation.timers]).toEqual([]);
  });

  const nested = (more: object, composite: object = {}) =>
    define({
      ...more,
      steps: [
        {
          stepId: "fork",
          type: "PARALLEL",
          ...composite,
          branches: [
            {
              name: "a",
              steps: [
                {
                  stepId: "w",
                  type: "EVENT_WAIT",
                  eventPattern: "go",
                  transitions: { default: "again" },
                },
                { stepId: "again", type: "EVENT_WAIT", eventPattern: "more" },
              ],
            },
            { name: "b", steps: [{ stepId: "work" }] },
          ],
        },
      ],
    });
  const untaken = { kind: "waitUnmatched", path: "fork.a.w", iteration: 1 };

  test.each([
    ["of the instance", nested({ timeout: "PT1H" })],
    ["of what the wait is in", nested({}, { totalTimeout: "PT1H" })],
  ])("%s takes no wait that an event has taken by the commit", (_whose, definition) => {
    const simulation = simulate(definition);
    simulation.start();

    const [firing] = simulation.elapse("PT1H");

    expect(simulation.snapshot.status).toBe("FAILED");
    expect(firing?.decision.guards).toContainEqual(untaken);
  });

  test("that fires with the event comes after it, and relies on nothing that is not stored", () => {
    const simulation = simulate(nested({}, { totalTimeout: "PT1H" }));
    simulation.start();
    const event = {
      id: "e",
      pattern: "go",
      payload: {},
      occurredAt: simulation.now.toISOString(),
      receivedAt: simulation.now.toISOString(),
    };

    const { guards } = simulation.send(
      { kind: "eventMatched", path: "fork.a.w", iteration: 1, event },
      { kind: "timerFired", timer: "total", path: "fork", iteration: 1, attempt: 1 },
    );

    // The step of the other branch is stopped as one that no worker has taken.
    expect(guards).toMatchObject([{ kind: "execution", status: "PENDING" }]);
    expect(simulation.statuses()).toMatchObject({
      w: "COMPLETED",
      again: "CANCELLED",
      fork: "FAILED",
    });
  });

  test.each([
    ["the error, where it is the shorter", "PT10S", "PT1M", "total", "rescue"],
    ["the handler, where eventTimeout is", "PT1M", "PT10S", "wait", "handler"],
    ["the handler, where both are due at once", "PT10S", "PT10S", "wait", "handler"],
  ])("beside eventTimeout leads to %s", (_which, timeout, event, timer, next) => {
    const simulation = simulate(wait({ timeout, ...eventTimeout(event) }));
    simulation.start();
    expect([...simulation.timers.values()]).toMatchObject([{ timer }]);

    simulation.elapse("PT10S");

    expect(simulation.statuses()).toEqual({ w: "FAILED", [next]: "PENDING" });
  });

  test("ends a DELAY that is longer, and leaves a shorter one alone", () => {
    const delay = (duration: string) =>
      simulate(
        define({
          steps: [
            { stepId: "d", type: "DELAY", duration, totalTimeout: "PT1M", ...rescue },
            { stepId: "rescue" },
          ],
        }),
      );
    const long = delay("PT2M");
    long.start();
    long.elapse("PT1M");
    expect(long.statuses()).toEqual({ d: "FAILED", rescue: "PENDING" });

    const short = delay("PT1M");
    short.start();
    short.elapse("PT1M");
    expect(short.snapshot).toMatchObject({ status: "COMPLETED", live: {} });
  });

  const checkout = (more: object) => ({
    steps: [
      {
        stepId: "checkout",
        type: "PARALLEL",
        timeout: "PT1H",
        totalTimeout: "PT10S",
        ...rescue,
        ...more,
        branches: [
          {
            name: "card",
            steps: [{ stepId: "hold", transitions: { default: "charge" } }, { stepId: "charge" }],
          },
          {
            name: "rest",
            steps: [
              {
                stepId: "each",
                type: "MAP",
                items: "[1, 2]",
                steps: [{ stepId: "w", type: "EVENT_WAIT", eventPattern: "go", timeout: "P1D" }],
              },
            ],
          },
          { name: "other", steps: [{ stepId: "queued" }] },
        ],
      },
      { stepId: "rescue" },
    ],
    compensationSteps: [{ stepId: "refund", compensationFor: "charge" }],
  });

  test("of a PARALLEL stops all that is in it in the same commit; what can be undone has its grace", () => {
    const simulation = simulate(define(checkout({})));
    simulation.start();
    simulation.succeed("hold");
    simulation.claim("charge");

    simulation.elapse("PT10S");

    expect(simulation.statuses()).toMatchObject({
      checkout: "FAILED",
      hold: "COMPLETED",
      charge: "RUNNING",
      each: "CANCELLED",
      w: "CANCELLED",
      queued: "CANCELLED",
      rescue: "PENDING",
    });
    expect(simulation.row("checkout")?.error).toMatchObject({ ...timedOut, stepId: "checkout" });
    expect(simulation.waits.size).toBe(0);
    expect([...simulation.timers.values()]).toMatchObject([{ timer: "grace" }]);
    expect(Object.keys(simulation.snapshot.live)).toEqual(["checkout.card.charge#1", "rescue#1"]);
  });

  test("of a PARALLEL that nothing takes fails the instance, and what was done is undone", () => {
    const simulation = simulate(
      define(checkout({ onError: [], transitions: { default: "rescue" } })),
    );
    simulation.start();
    simulation.succeed("hold");
    simulation.succeed("charge");

    simulation.elapse("PT10S");

    expect(simulation.snapshot).toMatchObject({
      status: "FAILED",
      error: { ...timedOut, stepId: "checkout" },
      compensation: { plan: ["refund"] },
    });
  });

  test("is gone once the PARALLEL has joined", () => {
    const simulation = simulate(
      define(checkout({ join: "ANY", transitions: { default: "rescue" } })),
    );
    simulation.start();

    simulation.succeed("queued");

    expect([...simulation.timers]).toEqual([]);
  });

  test("of a MAP stops its items; inside a branch it is the branch that fails", () => {
    const simulation = simulate(
      define({
        steps: [
          {
            stepId: "fork",
            type: "PARALLEL",
            onBranchError: "CONTINUE",
            branches: [
              {
                name: "a",
                steps: [
                  {
                    stepId: "each",
                    type: "MAP",
                    items: "[1, 2, 3]",
                    maxConcurrency: 2,
                    timeout: "PT10S",
                    steps: [{ stepId: "x" }],
                  },
                ],
              },
              { name: "b", steps: [{ stepId: "y" }] },
            ],
          },
        ],
      }),
    );
    simulation.start();

    simulation.elapse("PT10S");

    expect(simulation.statuses()).toMatchObject({
      fork: "RUNNING",
      each: "FAILED",
      x: "CANCELLED",
    });
    simulation.succeed("y", 1);
    expect(simulation.snapshot).toMatchObject({ status: "COMPLETED", output: { b: 1 } });
  });

  test("that has no good value is an error of the step, which leaves nothing behind", () => {
    const simulation = simulate(
      define({
        steps: [
          {
            stepId: "each",
            type: "MAP",
            items: "[1]",
            timeout: "${ variables.missing }",
            steps: [{ stepId: "x" }],
          },
        ],
      }),
    );

    simulation.start();

    expect(simulation.snapshot).toMatchObject({ status: "FAILED", error: { kind: "EXPRESSION" } });
    expect(simulation.statuses()).toEqual({ each: "FAILED" });
  });
});

test("all four clocks hold for a TASK in a branch and in an item", () => {
  const clocks = (clock: string) => ({ [clock]: "PT10S" });
  for (const clock of ["totalTimeout", "scheduleTimeout"]) {
    const simulation = simulate(
      define({
        steps: [
          {
            stepId: "fork",
            type: "PARALLEL",
            onBranchError: "CONTINUE",
            branches: [
              { name: "a", steps: [{ stepId: "x", ...clocks(clock) }] },
              {
                name: "b",
                steps: [
                  {
                    stepId: "each",
                    type: "MAP",
                    items: "[1, 2]",
                    tolerate: 2,
                    steps: [{ stepId: "y", ...clocks(clock) }],
                  },
                ],
              },
            ],
          },
        ],
      }),
    );
    simulation.start();

    simulation.elapse("PT10S");

    expect(simulation.snapshot).toMatchObject({
      status: "COMPLETED",
      output: { b: [null, null] },
    });
    expect(simulation.statuses()).toMatchObject({ x: "FAILED", y: "FAILED" });
  }
});
