import type { Decision } from "../../src/state/decision.ts";
import { describe, expect, test } from "vitest";
import { define } from "../support/definitions.ts";
import { simulate } from "../support/simulation.ts";

// Waits for several events.

const paid = { eventPattern: "paid", eventCondition: "event.payload.id === input.id" };
const refused = { eventPattern: "refused", to: "sorry" };
const wait = (more: object) => ({ stepId: "w", type: "EVENT_WAIT", ...more });
const steps = [{ stepId: "next" }, { stepId: "sorry" }, { stepId: "late" }];
/** So that every step can be reached. */
const onError = ["sorry", "late"].map((to) => ({ errors: [to], to }));
const begun = (more: object, input: object = { id: "o-1" }) => {
  const simulation = simulate(
    define({ steps: [wait({ transitions: { default: "next" }, onError, ...more }), ...steps] }),
    input as never,
  );
  simulation.start();
  return simulation;
};
const eventTimeout = { duration: "PT1H", timeoutHandlerStepId: "late" };

describe("ANY", () => {
  const any = { events: [paid, refused], eventTimeout, eventPayloadMapping: { by: "by" } };

  test("opens a wait for each event, with a key of its own", () => {
    const simulation = begun({ ...any, deliver: "ONE" });

    expect([...simulation.waits.values()]).toMatchObject([
      { path: "w|00", stepId: "w", pattern: "paid", key: ["o-1"], deliver: "ONE" },
      { path: "w|01", stepId: "w", pattern: "refused", key: [], deliver: "ONE" },
    ]);
  });

  test("ends with the first event: it is the output, its payload is mapped, the others close", () => {
    const simulation = begun(any);

    const decision = simulation.publish("paid", { id: "o-1", by: "ada" });

    expect(decision?.commands.map(({ kind }) => kind)).toEqual([
      "closeWait",
      "closeWait",
      "clearTimer",
      "dispatch",
    ]);
    expect(simulation.waits.size).toBe(0);
    expect(simulation.row("w")).toMatchObject({
      status: "COMPLETED",
      output: { pattern: "paid", payload: { by: "ada" } },
    });
    expect(simulation.snapshot.variables).toEqual({ by: "ada" });
    expect(simulation.statuses()).toMatchObject({ next: "PENDING" });
  });

  test("goes where the event says, in place of the transitions", () => {
    const simulation = begun(any);

    simulation.publish("refused");

    expect(simulation.statuses()).toEqual({ w: "COMPLETED", sorry: "PENDING" });
  });

  test("an event that satisfies both counts for the first in the list; a second one is void", () => {
    const simulation = begun({
      events: [{ eventPattern: "*" }, { ...refused, eventPattern: "*" }],
    });
    const event = {
      id: "e",
      pattern: "x",
      payload: {},
      occurredAt: simulation.now.toISOString(),
      receivedAt: simulation.now.toISOString(),
    };
    const matched = (path: string) =>
      ({ kind: "eventMatched", path, iteration: 1, event }) as const;

    simulation.send(matched("w|00"), matched("w|01"));

    expect(simulation.statuses()).toEqual({ w: "COMPLETED", next: "PENDING" });
    expect(simulation.send(matched("w|01")).commands).toEqual([]);
  });

  test("a timeout relies on none of the waits having its event", () => {
    const simulation = begun(any);

    const [{ decision } = {}] = simulation.elapse("PT1H");

    expect(decision?.guards).toEqual([
      { kind: "waitUnmatched", path: "w|00", iteration: 1 },
      { kind: "waitUnmatched", path: "w|01", iteration: 1 },
    ]);
    expect(simulation.statuses()).toEqual({ w: "FAILED", late: "PENDING" });
    expect(simulation.waits.size).toBe(0);
  });
});

describe("ALL", () => {
  const all = {
    mode: "ALL",
    events: [paid],
    eventPayloadMapping: { by: "by", note: "note" },
    eventTimeout,
  };
  const events = [paid, { eventPattern: "packed" }];

  test("completes when each has come, in whatever order; the output has the order of the list", () => {
    const simulation = begun({ ...all, events });

    simulation.publish("packed", { by: "bob", note: "b" });
    expect(simulation.row("w")).toMatchObject({
      status: "WAITING",
      output: [null, { payload: { by: "bob" } }],
    });
    expect([...simulation.waits.keys()]).toEqual(["w|00#1"]);
    expect(simulation.snapshot.variables).toEqual({});
    simulation.publish("paid", { id: "o-1", by: "ada" });

    expect(simulation.row("w")).toMatchObject({
      status: "COMPLETED",
      output: [{ payload: { by: "ada" } }, { payload: { by: "bob" } }],
    });
    // In the order of the list: the last one that has it wins.
    expect(simulation.snapshot.variables).toEqual({ by: "bob", note: "b" });
    expect(simulation.statuses()).toMatchObject({ next: "PENDING" });
  });

  test("takes one event for all that it satisfies, and none twice", () => {
    const simulation = begun({
      ...all,
      events: [paid, { eventPattern: "paid" }, { eventPattern: "packed" }],
    });

    simulation.publish("paid", { id: "o-1" });
    expect(simulation.publish("paid", { id: "o-1" })).toBeUndefined();
    simulation.publish("packed");

    expect(simulation.row("w")?.output).toMatchObject([
      { id: "event-1" },
      { id: "event-1" },
      { id: "event-3" },
    ]);
  });

  test("a match that is told again, once it has been kept, changes nothing", () => {
    const simulation = begun({ ...all, events });
    const at = simulation.now.toISOString();
    const matched = (id: string) =>
      ({
        kind: "eventMatched",
        path: "w|01",
        iteration: 1,
        event: { id, pattern: "packed", payload: {}, occurredAt: at, receivedAt: at },
      }) as const;
    simulation.send(matched("first"));

    const again = [matched("first"), matched("second")].map((signal) => simulation.send(signal));

    expect(again.map(({ commands }) => commands)).toEqual([[], []]);
    expect(simulation.row("w")?.output).toMatchObject([null, { id: "first" }]);
  });

  test("a timeout takes what is still open, and what came stays in the output", () => {
    const simulation = begun({ ...all, events });
    simulation.publish("packed");

    const [{ decision } = {}] = simulation.elapse("PT1H");

    expect(decision?.guards).toEqual([{ kind: "waitUnmatched", path: "w|00", iteration: 1 }]);
    expect(simulation.row("w")).toMatchObject({
      status: "FAILED",
      output: [null, { pattern: "packed" }],
    });
  });

  test("what came is read by the timeout's handler, in that same decision", () => {
    const came = { variables: { came: "${ steps.w.output[1].pattern }" } };
    const note = { stepId: "late", type: "SET", ...came };
    const simulation = simulate(define({ steps: [wait({ ...all, events }), note] }));
    simulation.start();
    simulation.publish("packed");

    simulation.elapse("PT1H");

    expect(simulation.snapshot.variables).toMatchObject({ came: "packed" });
  });
});

test("keys of open waits are written again when what they read changes", () => {
  const definition = define({
    variables: { n: 1 },
    steps: [
      {
        stepId: "fork",
        type: "PARALLEL",
        branches: [
          {
            name: "a",
            steps: [
              wait({
                events: [
                  { eventPattern: "x", eventCondition: "event.payload.n === variables.n" },
                  { eventPattern: "y" },
                ],
              }),
            ],
          },
          {
            name: "b",
            steps: [
              { stepId: "work", transitions: { default: "set" } },
              { stepId: "set", type: "SET", variables: { n: 2 } },
            ],
          },
        ],
      },
    ],
  });
  const simulation = simulate(definition);
  simulation.start();

  simulation.succeed("work");

  expect(simulation.waits.get("fork.a.w|00#1")?.key).toEqual([2]);
  expect(simulation.publish("x", { n: 1 })).toBeUndefined();
  expect(simulation.publish("x", { n: 2 })).toBeDefined();
});

describe("deliver: ONE: the event of a wait that closes without it is for another one", () => {
  const fork = (more: object = {}) =>
    define({
      steps: [
        {
          stepId: "fork",
          type: "PARALLEL",
          join: "ANY",
          branches: [
            { name: "a", steps: [wait({ eventPattern: "x", deliver: "ONE", ...more })] },
            { name: "b", steps: [{ stepId: "work" }] },
          ],
          totalTimeout: "PT1H",
        },
      ],
    });
  const closed = (decision: Decision | undefined) =>
    decision?.commands.filter(({ kind }) => kind === "closeWait");
  const begin = (definition: ReturnType<typeof define>) => {
    const simulation = simulate(definition);
    simulation.start();
    return simulation;
  };
  const handedOn = [{ kind: "closeWait", path: "fork.a.w", iteration: 1, handsOn: true }];

  test("of the waits of ANY, all but the one whose event is applied", () => {
    const events = [{ eventPattern: "x" }, { eventPattern: "y" }];
    const simulation = begin(define({ steps: [wait({ events, deliver: "ONE" })] }));

    const decision = simulation.publish("y");

    expect(closed(decision)).toEqual([
      { kind: "closeWait", path: "w|01", iteration: 1 },
      { kind: "closeWait", path: "w|00", iteration: 1, handsOn: true },
    ]);
  });

  test("of ALL, none whose event was kept", () => {
    const events = [{ eventPattern: "x" }, { eventPattern: "y" }];
    const all = { events, mode: "ALL", deliver: "ONE" };
    const simulation = begin(define({ steps: [wait(all)] }));

    const decisions = [simulation.publish("y"), simulation.publish("x")];

    expect(decisions.map(closed)).toEqual([
      [{ kind: "closeWait", path: "w|01", iteration: 1 }],
      [{ kind: "closeWait", path: "w|00", iteration: 1 }],
    ]);
  });

  test("in a branch that is lost, an instance that is cancelled, a composite that is out of time", () => {
    const [lost, cancelled, late] = [begin(fork()), begin(fork()), begin(fork())];

    expect(closed(lost.succeed("work"))).toEqual(handedOn);
    expect(closed(cancelled.cancel())).toEqual(handedOn);
    expect(closed(late.elapse("PT1H")[0]?.decision)).toEqual(handedOn);
  });

  test("but not where it is for all", () => {
    expect(closed(begin(fork({ deliver: "ALL" })).cancel())).toEqual([
      { kind: "closeWait", path: "fork.a.w", iteration: 1 },
    ]);
  });
});
