import { expect, test } from "vitest";
import { define } from "../support/definitions.ts";
import { noon, simulate } from "../support/simulation.ts";

test("a start enters the first step and is RUNNING", () => {
  const simulation = simulate(define({ steps: [{ stepId: "a" }] }));

  const { snapshot, commands } = simulation.start();

  expect(snapshot).toMatchObject({ version: 1, status: "RUNNING", startedAt: noon });
  expect(simulation.statuses()).toEqual({ a: "PENDING" });
  expect(commands).toMatchObject([{ kind: "dispatch", path: "a", taskId: "a_task", delayMs: 0 }]);
});

test("a second start changes nothing", () => {
  const simulation = simulate(define({ steps: [{ stepId: "a" }] }));
  const { snapshot } = simulation.start();

  expect(simulation.start().snapshot).toBe(snapshot);
});

test("an instance whose first step waits is WAITING_FOR_EVENT from its first commit", () => {
  const simulation = simulate(
    define({ steps: [{ stepId: "w", type: "EVENT_WAIT", eventPattern: "go" }] }),
  );

  simulation.start();

  expect(simulation.snapshot.status).toBe("WAITING_FOR_EVENT");
});

test("an instance can end in the decision that starts it, without a row to load", () => {
  const simulation = simulate(
    define({
      steps: [{ stepId: "end", type: "END", outcome: "FAILED", error: { type: "Nope" } }],
    }),
  );

  simulation.start();

  expect(simulation.snapshot).toMatchObject({
    status: "FAILED",
    error: { kind: "END", type: "Nope", stepId: "end" },
  });
});

const later = { kind: "scheduled", startAt: new Date(noon.getTime() + 60_000) } as const;

test("an instance with a start time stays CREATED and begins by its timer", () => {
  const simulation = simulate(define({ steps: [{ stepId: "a" }] }));
  simulation.send(later);
  expect(simulation.snapshot.status).toBe("CREATED");

  simulation.elapse("PT1M");

  expect(simulation.snapshot).toMatchObject({ status: "RUNNING", startedAt: later.startAt });
});

test("scheduled twice, or scheduled and started in one decision, is once", () => {
  const simulation = simulate(define({ timeout: "P1D", steps: [{ stepId: "a" }] }));

  simulation.send(later, later, { kind: "started" });

  expect(simulation.snapshot).toMatchObject({ status: "RUNNING", timers: ["timeout"] });
});

test("an instance that has not begun can be cancelled, by request or by trigger", () => {
  const definition = define({
    cancellationTriggers: [{ eventPattern: "stop", reason: "asked to stop" }],
    steps: [{ stepId: "a" }],
  });
  const requested = simulate(definition);
  const triggered = simulate(definition);

  requested.send(later);
  requested.cancel("changed my mind");
  triggered.send(later);
  triggered.publish("stop");

  expect(requested.snapshot).toMatchObject({ status: "CANCELLED", startedAt: null });
  expect(triggered.snapshot.cancellation).toMatchObject({ source: "EVENT", eventId: "event-1" });
  expect(requested.elapse("P1D")).toEqual([]);
});

test("the instance timeout counts from the creation, also before the start", () => {
  const simulation = simulate(define({ timeout: "PT30S", steps: [{ stepId: "a" }] }));
  simulation.send(later);

  simulation.elapse("PT30S");

  expect(simulation.snapshot).toMatchObject({
    status: "FAILED",
    error: { kind: "TIMEOUT", type: "TIMEOUT", stepId: null },
  });
  expect(simulation.statuses()).toEqual({});
});

test("a timeout or trigger whose value fails ends the instance before its first step", () => {
  const badTimeout = simulate(define({ timeout: "${ input.limit }", steps: [{ stepId: "a" }] }));
  const badPattern = simulate(
    define({
      cancellationTriggers: [
        { eventPattern: "fine", reason: "fine" },
        { eventPattern: "${ input.missing }", reason: "never" },
      ],
      steps: [{ stepId: "a" }],
    }),
  );

  badTimeout.start();
  badPattern.start();

  expect(badTimeout.snapshot).toMatchObject({ status: "FAILED", error: { kind: "EXPRESSION" } });
  expect(badPattern.snapshot).toMatchObject({ status: "FAILED", error: { kind: "EXPRESSION" } });
});
