import { describe, expect, test } from "vitest";
import { executionKey } from "../../src/state/snapshot.ts";
import { eventSatisfies, matcherOf, payloadEqualities } from "../../src/decide/wait.ts";
import { noReads } from "../../src/state/reads.ts";
import { define } from "../support/definitions.ts";
import { noon, simulate } from "../support/simulation.ts";

const wait = { stepId: "w", type: "EVENT_WAIT", eventPattern: "paid" };

describe("an open wait", () => {
  test("is stored with its pattern and the values by which an event finds it", () => {
    const simulation = simulate(
      define({
        steps: [
          {
            ...wait,
            eventPattern: "paid.${ input.shop }",
            eventCondition:
              "event.payload.orderId === workflow.input.orderId && event.payload.n > 3 && event.payload.kind === 'card'",
            deliver: "ONE",
            lookback: "PT1H",
          },
        ],
      }),
      { shop: "north", orderId: "o-1" },
    );

    const { commands } = simulation.start();

    expect(commands).toEqual([
      {
        kind: "openWait",
        wait: {
          path: "w",
          iteration: 1,
          stepId: "w",
          purpose: "STEP",
          pattern: "paid.north",
          eventPaths: ["payload.orderId", "payload.kind"],
          key: ["o-1", "card"],
          deliver: "ONE",
          lookbackFrom: new Date(noon.getTime() - 3_600_000),
        },
      },
    ]);
  });

  test.each([
    ["is missing", {}, "empty segment"],
    ["is too long", { shop: "x".repeat(1_000) }, "longer than"],
    ["has a space in it", { shop: "a b" }, "space"],
    ["is half a character", { half: "😀" }, "half a character"],
  ])("fails the step where a part of its pattern %s", (_, input, message) => {
    const pattern = "half" in input ? "paid.${ input.half.slice(0, 1) }" : "paid.${ input.shop }";
    const simulation = simulate(define({ steps: [{ ...wait, eventPattern: pattern }] }), input);

    simulation.start();

    expect(simulation.snapshot).toMatchObject({
      status: "FAILED",
      error: { kind: "EXPRESSION", stepId: "w", message: expect.stringContaining(message) },
    });
  });

  test.each([
    ["is missing", {}],
    ["is an object", { id: { a: 1 } }],
  ])("matches nothing while the instance's side %s", (_, input) => {
    const simulation = simulate(
      define({ steps: [{ ...wait, eventCondition: "event.payload.id === input.id" }] }),
      input,
    );
    simulation.start();

    expect(simulation.waits.get("w#1")?.key).toBe("NEVER");
    expect(simulation.publish("paid", {})).toBeUndefined();
  });

  test("keeps the type of its key: a number is no text", () => {
    const simulation = simulate(
      define({ steps: [{ ...wait, eventCondition: "event.payload.id === input.id" }] }),
      { id: 42 },
    );
    simulation.start();

    expect(simulation.waits.get("w#1")?.key).toEqual([42]);
    expect(simulation.publish("paid", { id: "42" })).toBeUndefined();
    expect(simulation.publish("paid", { id: 42 })).toBeDefined();
  });
});

test("past events are looked up by members of objects alone, as a list or text has none", () => {
  const eventCondition =
    "event.payload.id === input.id && event.payload.lines[0].sku === 'a' && event.payload.lines.length === 1 && event.payload.name[0] === 'b'";
  const simulation = simulate(define({ steps: [{ ...wait, eventCondition }] }), { id: 7 });
  simulation.start();

  const { definition, snapshot } = simulation;
  const equalities = payloadEqualities(
    definition,
    snapshot,
    { path: "w", iteration: 1, stepId: "w" },
    noon,
  );

  expect(equalities).toEqual([{ path: ["id"], value: 7 }]);
});

describe("an event that satisfies it", () => {
  test("is the step's output, and its payload goes to the variables", () => {
    const simulation = simulate(
      define({
        variables: { other: "as it was" },
        steps: [
          {
            ...wait,
            eventPayloadMapping: {
              id: "id",
              city: "address.city",
              other: "not.there",
              own: "toString",
            },
          },
        ],
      }),
    );
    simulation.start();

    simulation.publish("paid", { id: null, address: { city: "Oslo" } });

    expect(simulation.snapshot.variables).toEqual({ id: null, city: "Oslo", other: "as it was" });
    expect(simulation.snapshot.output).toEqual({
      id: "event-1",
      pattern: "paid",
      payload: { id: null, address: { city: "Oslo" } },
      occurredAt: noon.toISOString(),
    });
  });

  test("takes WAITING_FOR_EVENT to COMPLETED through RUNNING, in one commit", () => {
    const simulation = simulate(define({ steps: [wait] }));
    simulation.start();

    const { entries } = simulation.publish("paid") ?? { entries: [] };

    expect(
      entries.filter(({ type }) => type === "workflow.status").map(({ data }) => data),
    ).toEqual([
      { from: "WAITING_FOR_EVENT", to: "RUNNING" },
      { from: "RUNNING", to: "COMPLETED" },
    ]);
  });

  test("does not reach a wait that opens later", () => {
    const simulation = simulate(
      define({
        steps: [
          { ...wait, transitions: { default: "next" } },
          { ...wait, stepId: "next" },
        ],
      }),
    );
    simulation.start();

    simulation.publish("paid");

    expect(simulation.statuses()).toEqual({ w: "COMPLETED", next: "WAITING" });
  });

  test("is void for a delay and for a wait that is over", () => {
    const simulation = simulate(
      define({
        steps: [
          { ...wait, transitions: { default: "d" } },
          { stepId: "d", type: "DELAY", duration: "PT1S" },
        ],
      }),
    );
    simulation.start();
    simulation.publish("paid");
    const { snapshot, history } = simulation;
    const [matched] = history[1]?.signals ?? [];

    expect(matched && simulation.send(matched).snapshot).toBe(snapshot);
    expect(matched && simulation.send({ ...matched, path: "d" } as typeof matched).snapshot).toBe(
      snapshot,
    );
  });
});

describe("a key that reads more than the input", () => {
  const definition = define({
    variables: { id: "first" },
    cancellationTriggers: [
      {
        eventPattern: "stop",
        eventCondition: "event.payload.token === steps.a.output.token",
        reason: "stop",
      },
      { eventPattern: "halt", eventCondition: "event.payload.id === variables.id", reason: "halt" },
      { eventPattern: "end", eventCondition: "event.payload.id === input.id", reason: "end" },
    ],
    steps: [
      { stepId: "a", transitions: { default: "b" } },
      {
        stepId: "b",
        type: "SET",
        variables: { id: "${ steps.a.output.id }" },
        transitions: { default: "w" },
      },
      { ...wait, eventCondition: "event.payload.id === variables.id" },
    ],
  });

  test("is written again in the commit that changes what it reads, and only there", () => {
    const simulation = simulate(definition);
    simulation.start();
    expect([...simulation.waits.values()].map(({ key }) => key)).toEqual([
      "NEVER",
      ["first"],
      "NEVER",
    ]);

    const { commands } = simulation.succeed("a", { token: "t", id: "second" });

    expect(commands.filter(({ kind }) => kind === "rekeyWait")).toEqual([
      { kind: "rekeyWait", path: "$cancel", iteration: 1, key: ["t"] },
      { kind: "rekeyWait", path: "$cancel", iteration: 2, key: ["second"] },
    ]);
    expect(simulation.waits.get(executionKey("w", 1))?.key).toEqual(["second"]);
  });

  test("conditions see the state at delivery", () => {
    const simulation = simulate(definition);
    simulation.start();
    expect(simulation.publish("stop", { token: "t" })).toBeUndefined();

    simulation.succeed("a", { token: "t", id: "second" });

    expect(simulation.publish("stop", { token: "t" })?.snapshot.status).toBe("CANCELLED");
  });
});

describe("whether an event satisfies a wait", () => {
  const definition = define({
    steps: [{ ...wait, eventCondition: "event.payload.n > parseJson(event.payload.limit)" }],
  });
  const ref = { path: "w", iteration: 1, stepId: "w" };
  const at = noon.toISOString();
  const event = (payload: object) => ({
    id: "e",
    pattern: "paid",
    payload: { ...payload },
    occurredAt: at,
    receivedAt: at,
  });

  test.each([
    ["the condition holds", { n: 4, limit: "3" }, true],
    ["it does not", { n: 2, limit: "3" }, false],
    ["it cannot be evaluated", { n: 4, limit: "three" }, false],
  ])("%s: %s → %s", (_, payload, expected) => {
    const { snapshot } = simulate(definition);

    expect(eventSatisfies(definition, snapshot, ref, event(payload), noReads, noon)).toBe(expected);
  });

  test.each([
    ["of an instance of another workflow", "workflow.completed", "another", true],
    ["of one of its own workflow", "workflow.completed", "wf", false],
    ["that only looks like one", "completed", "wf", true],
  ])("a lifecycle event %s: %s of %s → %s", (_, pattern, workflowId, expected) => {
    const { snapshot } = simulate(define({ id: "wf", steps: [wait] }));
    const told = { ...event({ workflowId }), pattern };

    expect(eventSatisfies(define({ steps: [wait] }), snapshot, ref, told, noReads, noon)).toBe(
      expected,
    );
  });

  test("a wait that no step or trigger of the definition stands for has no matcher", () => {
    expect(matcherOf(definition, { ...ref, stepId: "gone" })).toBeUndefined();
    expect(matcherOf(definition, { ...ref, path: "$cancel", stepId: null })).toBeUndefined();
  });

  test("it asks for the rows that the condition reads", () => {
    const reading = define({
      steps: [
        { stepId: "a", transitions: { default: "w" } },
        { ...wait, eventCondition: "event.payload.n === steps.a.output.n" },
      ],
    });
    const simulation = simulate(reading);
    simulation.start();
    simulation.succeed("a", { n: 1 });

    expect(
      eventSatisfies(reading, simulation.snapshot, ref, event({ n: 1 }), noReads, noon),
    ).toEqual({ needs: [{ kind: "latest", path: "a" }] });
  });
});

describe("a wait that times out", () => {
  const timed = { ...wait, eventTimeout: { duration: "P3D", timeoutHandlerStepId: "late" } };

  test("is FAILED and goes on at its handler, in the commit that finds no event there", () => {
    const simulation = simulate(define({ steps: [timed, { stepId: "late" }] }));
    simulation.start();

    const [firing] = simulation.elapse("P3D");

    expect(simulation.statuses()).toEqual({ w: "FAILED", late: "PENDING" });
    expect(simulation.row("w")?.error).toMatchObject({ kind: "TIMEOUT", type: "TIMEOUT" });
    expect(firing?.decision.guards).toEqual([{ kind: "waitUnmatched", path: "w", iteration: 1 }]);
  });

  test("without a handler is an error TIMEOUT, which onError can take", () => {
    const { eventTimeout: _handled, ...rest } = timed;
    const unhandled = { ...rest, eventTimeout: { duration: "PT1H" } };
    const failing = simulate(define({ steps: [unhandled] }));
    const routed = simulate(
      define({
        steps: [
          { ...unhandled, onError: [{ errors: ["TIMEOUT"], to: "late" }] },
          { stepId: "late" },
        ],
      }),
    );
    failing.start();
    routed.start();

    failing.elapse("PT1H");
    routed.elapse("PT1H");

    expect(failing.snapshot).toMatchObject({
      status: "FAILED",
      error: { kind: "TIMEOUT", type: "TIMEOUT", stepId: "w" },
    });
    expect(routed.statuses()).toEqual({ w: "FAILED", late: "PENDING" });
  });

  test("an event that was matched before it leaves the timer nothing to do", () => {
    const simulation = simulate(define({ steps: [timed, { stepId: "late" }] }));
    simulation.start();

    simulation.publish("paid");

    expect(simulation.snapshot.status).toBe("COMPLETED");
    expect(simulation.elapse("P3D")).toEqual([]);
  });
});

test.each(["instance", "${ 'instance' }", "${ input.far ? 'instance' : 'PT1H' }"])(
  "a lookback %s counts from the instance's creation",
  (lookback) => {
    const simulation = simulate(
      define({ steps: [{ ...wait, lookback }] }),
      { far: true },
      {
        createdAt: new Date("2026-02-01T00:00:00Z"),
      },
    );

    simulation.start();

    expect(simulation.waits.get("w#1")?.lookbackFrom).toEqual(new Date("2026-02-01T00:00:00Z"));
  },
);
