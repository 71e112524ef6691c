import type { StartTrigger } from "@millrace/contract";
import { expect, test } from "vitest";
import { compileDefinition } from "../src/definition/compile.ts";
import { startListeners, triggeredStart } from "../src/start-triggers.ts";
import type { EventFact } from "../src/state/signal.ts";

const event: EventFact = {
  id: "e-1",
  pattern: "order.placed",
  payload: { orderId: 42, kind: "large", lines: [1, 2] },
  occurredAt: "2026-01-01T00:00:00.000Z",
  receivedAt: "2026-01-01T00:00:01.000Z",
};
const now = new Date("2026-01-01T00:00:02Z");

const startOf = (startTriggers: StartTrigger[], places = startTriggers.map((_, place) => place)) =>
  triggeredStart(
    compileDefinition(
      { id: "wf", steps: [{ stepId: "a", type: "TASK", taskId: "noop" }], startTriggers },
      1,
    ),
    places,
    event,
    now,
  );

test("without an input the event's payload is the input", () => {
  expect(startOf([{ eventPattern: "order.placed" }])).toEqual({
    input: event.payload,
    correlationId: null,
  });
});

test("input and correlation id are made from the event and the time, as a value or a bare path", () => {
  const trigger = {
    eventPattern: "order.placed",
    input: { order: "event.payload.orderId", seen: "${ now() }", gone: "${ event.payload.none }" },
    correlationId: "${ event.payload.orderId }",
  };

  expect(startOf([trigger])).toEqual({
    input: { order: 42, seen: now.toISOString() },
    correlationId: "42",
  });
  // Of ids a bare path is none (CONTRACT 1.2).
  expect(startOf([{ ...trigger, correlationId: "event.payload.orderId" }])).toMatchObject({
    correlationId: "event.payload.orderId",
  });
});

test("the first trigger whose condition holds decides, whatever the order in which they were found", () => {
  const trigger = (eventCondition: string, input: string) => ({
    eventPattern: "order.placed",
    eventCondition,
    input: { input },
  });
  const triggers = [
    trigger("event.payload.kind === 'small'", "no"),
    trigger("size(event.payload.orderId) > 0", "it cannot be evaluated"),
    trigger("event.payload.kind === 'large'", "first"),
    trigger("true", "second"),
  ];

  expect(startOf(triggers, [3, 2, 1, 0])).toMatchObject({ input: { input: "first" } });
  expect(startOf(triggers.slice(0, 1))).toBeUndefined();
});

test("a condition that cannot be evaluated does not hold, and a value that cannot is told", () => {
  const failing = "size(event.payload.orderId) > 0";

  expect(startOf([{ eventPattern: "order.placed", eventCondition: failing }])).toBeUndefined();
  expect(
    startOf([{ eventPattern: "order.placed", input: { n: `\${ ${failing} }` } }]),
  ).toMatchObject({ failed: "input", error: { pointer: "/n" } });
  expect(
    startOf([{ eventPattern: "order.placed", correlationId: `\${ ${failing} }` }]),
  ).toMatchObject({ failed: "correlationId" });
});

test("a lifecycle event starts nothing of the definition whose instance it tells of", () => {
  const trigger = { eventPattern: "workflow.failed" };
  const startBy = (workflowId: string) =>
    triggeredStart(
      compileDefinition(
        {
          id: "wf",
          steps: [{ stepId: "a", type: "TASK", taskId: "noop" }],
          startTriggers: [trigger],
        },
        1,
      ),
      [0],
      { ...event, pattern: "workflow.failed", payload: { workflowId } },
      now,
    );

  expect(startBy("wf")).toBeUndefined();
  expect(startBy("another")).toMatchObject({ input: { workflowId: "another" } });
});

test("a trigger is found by pattern and by the equalities of its condition", () => {
  const listeners = startListeners({
    startTriggers: [
      { eventPattern: "order.*" },
      {
        eventPattern: "order.placed",
        eventCondition:
          "event.payload.kind === 'large' && 1 + 1 === event.payload.n && event.payload.x > 1",
      },
      { eventPattern: "never", eventCondition: "event.payload.kind === undefined" },
    ],
  });

  expect(listeners).toEqual([
    { trigger: 0, pattern: "order.*", eventPaths: [], key: [] },
    {
      trigger: 1,
      pattern: "order.placed",
      eventPaths: ["payload.kind", "payload.n"],
      key: ["large", 2],
    },
    { trigger: 2, pattern: "never", eventPaths: ["payload.kind"], key: "NEVER" },
  ]);
});
