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
