import { describe, expect, test } from "vitest";
import { define } from "../support/definitions.ts";
import { saga } from "../support/saga.ts";
import { noon, simulate } from "../support/simulation.ts";
import type { Simulation } from "../support/simulation.ts";

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
