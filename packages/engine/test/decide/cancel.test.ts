import { describe, expect, test } from "vitest";
import { define } from "../support/definitions.ts";
import { noon, simulate } from "../support/simulation.ts";

const definition = define({
  cancellationTriggers: [
    {
      eventPattern: "stop",
      reason: "${ event.payload.why }",
      shouldCompensate: false,
    },
    { eventPattern: "halt", reason: "asked by ${ event.payload.who }" },
  ],
  steps: [
    { stepId: "a", transitions: { default: "w" } },
    { stepId: "w", type: "EVENT_WAIT", eventPattern: "go" },
  ],
  compensationSteps: [{ stepId: "undo_a", compensationFor: "a" }],
});

function waiting() {
  const simulation = simulate(definition);
  simulation.start();
  simulation.succeed("a");
  return simulation;
}

test("a cancel takes effect at once, and says who asked for it and why", () => {
  const simulation = waiting();

  const { entries } = simulation.cancel("changed my mind");

  expect(simulation.snapshot).toMatchObject({
    status: "CANCELLED",
    error: null,
    cancellation: {
      reason: "changed my mind",
      requestedBy: "user:ada",
      requestedAt: noon.toISOString(),
      source: "API",
      shouldCompensate: true,
    },
  });
  expect(simulation.statuses()).toEqual({ a: "COMPLETED", w: "CANCELLED", undo_a: "PENDING" });
  expect(entries.find(({ type }) => type === "workflow.cancelled")?.actor).toBe("user:ada");
});

test("a cancel without compensation settles at once", () => {
  const simulation = waiting();

  simulation.cancel(null, false);

  expect(simulation.snapshot).toMatchObject({ compensation: null, completedAt: noon });
});

test("a second cancel, while compensating or after, changes nothing", () => {
  const simulation = waiting();
  const first = simulation.cancel("first").snapshot;

  expect(simulation.cancel("second").snapshot).toBe(first);
  expect(simulation.publish("stop")).toBeUndefined();
});

describe("a trigger", () => {
  test("cancels with its own reason and choice, and names the event", () => {
    const simulation = waiting();

    simulation.publish("stop", { why: "rain" });

    expect(simulation.snapshot.cancellation).toEqual({
      reason: "rain",
      requestedBy: "system",
      requestedAt: noon.toISOString(),
      source: "EVENT",
      eventId: "event-1",
      shouldCompensate: false,
    });
  });

  test.each([
    ["is missing", {}, null],
    ["is an object", { why: { a: 1 } }, '{"a":1}'],
    ["is a number", { why: 7 }, "7"],
  ])("whose reason %s cancels all the same", (_, payload, reason) => {
    const simulation = waiting();

    simulation.publish("stop", payload);

    expect(simulation.snapshot.cancellation?.reason).toBe(reason);
  });

  test("that the definition does not have is void", () => {
    const simulation = waiting();
    const at = noon.toISOString();
    const event = { id: "e", pattern: "stop", payload: {}, occurredAt: at, receivedAt: at };

    const { snapshot } = simulation;
    expect(simulation.send({ kind: "cancelTriggered", trigger: 3, event }).snapshot).toBe(snapshot);
  });
});

test("of an event that cancels and one that satisfies, the one decided first wins whole", () => {
  const at = noon.toISOString();
  const event = { id: "e", pattern: "go", payload: {}, occurredAt: at, receivedAt: at };
  const cancelled = { kind: "cancelTriggered", trigger: 2, event } as const;
  const matched = { kind: "eventMatched", path: "w", iteration: 1, event } as const;
  const one = waiting();
  const other = waiting();

  one.send(cancelled, matched);
  other.send(matched, cancelled);

  expect(one.snapshot.status).toBe("CANCELLED");
  expect(one.row("w")?.status).toBe("CANCELLED");
  expect(other.snapshot).toMatchObject({ status: "COMPLETED", cancellation: null });
});

describe("a cancel during the backoff", () => {
  const backingOff = () => {
    const simulation = simulate(
      define({ steps: [{ stepId: "a", retry: { initialInterval: "PT5S", jitter: "NONE" } }] }),
    );
    simulation.start();
    simulation.fail("a");
    return simulation;
  };

  test("takes the next attempt back: it never began, and is not counted", () => {
    const simulation = backingOff();
    expect(simulation.row("a")).toMatchObject({ status: "RETRYING", attempt: 2 });

    const { commands, entries } = simulation.cancel();

    expect(simulation.row("a")).toMatchObject({ status: "CANCELLED", attempt: 1 });
    // The first attempt, which entries do not say.
    expect(entries.find(({ type }) => type === "workflow.step.cancelled")).not.toHaveProperty(
      "data",
    );
    expect(commands).toMatchObject([{ kind: "abort", path: "a" }, { kind: "settle" }]);
  });

  test("is checked against a worker that takes the attempt meanwhile", () => {
    const simulation = backingOff();

    expect(simulation.cancel().guards).toEqual([
      { kind: "execution", path: "a", iteration: 1, status: "RETRYING", fence: 1 },
    ]);
  });

  test("that comes after the next attempt has begun counts it", () => {
    const simulation = backingOff();
    simulation.claim("a");

    const { observedRunning, entries } = simulation.cancel();

    expect(simulation.row("a")).toMatchObject({ status: "CANCELLED", attempt: 2 });
    expect(entries).toContainEqual(
      expect.objectContaining({ type: "workflow.step.cancelled", data: { attempt: 2 } }),
    );
    expect(observedRunning).toEqual(["a#1"]);
  });
});
