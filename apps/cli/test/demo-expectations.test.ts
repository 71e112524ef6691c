import type { InstanceView, StepView } from "@millrace/contract";
import { expect, test } from "vitest";
import { differencesOf, expectationOf } from "../src/demo/expectations.ts";
import { type Order, type OrderPath, orderPaths, planOrders } from "../src/demo/orders.ts";
import { instance, step } from "./instances.ts";

const orders = new Map(planOrders(orderPaths.length).map((order) => [order.path, order]));

function orderOf(path: OrderPath): Order {
  const order = orders.get(path);
  if (order === undefined) throw new Error(`no order of path ${path}`);
  return order;
}

/** An instance that ended exactly as is expected of its order. */
function ended(order: Order): InstanceView {
  const { status, error, steps, compensation, cancellation, output } = expectationOf(order);
  const views = Object.entries(steps).map(([stepId, wanted]): [string, StepView] => {
    const failure = errorOf(wanted.errorType ?? "Error", stepId);
    return [
      stepId,
      step(wanted.status, {
        output: (wanted.output ?? null) as StepView["output"],
        error: wanted.status === "FAILED" ? failure : null,
        attempts: wanted.attempts ?? 1,
      }),
    ];
  });
  return instance({
    status,
    input: order.input,
    output: (output ?? null) as InstanceView["output"],
    error: error && { ...errorOf(error.type ?? "Error", error.stepId), kind: error.kind },
    state: { variables: {}, steps: Object.fromEntries(views), waitingFor: [] },
    cancellation: cancellation && {
      ...cancellation,
      requestedBy: "somebody",
      requestedAt: "2026-01-31T12:00:00.000Z",
      ...(cancellation.source === "EVENT" ? { eventId: "e-1" } : {}),
      shouldCompensate: true,
    },
    compensation: compensation && {
      status: compensation.status,
      plan: Object.keys(compensation.outputs),
      completed: [...compensation.completed],
      failed: compensation.failed.map((stepId) => ({
        stepId,
        error: "no",
        timestamp: "2026-01-31T12:00:00.000Z",
      })),
      uncertain: [],
      startedAt: "2026-01-31T12:00:00.000Z",
      completedAt: "2026-01-31T12:00:00.000Z",
      steps: Object.fromEntries(
        Object.entries(compensation.outputs).map(([stepId, value]) => [
          stepId,
          {
            status: value === null ? "FAILED" : "COMPLETED",
            attempts: 1,
            output: value as StepView["output"],
            error: null,
            startedAt: null,
            completedAt: null,
          },
        ]),
      ),
    },
  });
}

function errorOf(type: string, stepId: string) {
  return { kind: "TASK" as const, type, message: "no", stepId, attempt: 1, details: null };
}

test.each(orderPaths)("an order %s that ended as it should has no differences", (path) => {
  const order = orderOf(path);

  expect(differencesOf(order, ended(order))).toEqual([]);
});

test("no two ways of ending that differ in the acceptance table are taken for each other", () => {
  const alike = ["paid", "paid_early", "payment_retried", "cancelled_too_late"];
  const confused = orderPaths.flatMap((path) =>
    orderPaths
      .filter((other) => other !== path && !(alike.includes(path) && alike.includes(other)))
      .filter((other) => differencesOf(orderOf(path), endedLike(path, other)).length === 0)
      .map((other) => `${path} and ${other}`),
  );

  expect(confused).toEqual([]);
});

/** The order of one path, ended as an order of another path would. */
function endedLike(path: OrderPath, other: OrderPath): InstanceView {
  return ended({ ...orderOf(path), path: other });
}

test.each<[string, OrderPath, (view: InstanceView) => void, string]>([
  ["a wrong status", "paid", (view) => (view.status = "FAILED"), "the status is"],
  ["a wrong output", "paid", (view) => (view.output = { confirmed: false }), "the output is"],
  [
    "a step that should not have been reached",
    "paid",
    (view) => (view.state.steps["fraud_check"] = step("COMPLETED")),
    "the list of steps reached is",
  ],
  [
    "a skipped step in place of one never reached",
    "declined",
    (view) => (view.state.steps["ship_order"] = step("SKIPPED")),
    "the list of steps reached is",
  ],
  [
    "a step that is missing",
    "paid_large",
    (view) => delete view.state.steps["fraud_check"],
    "the list of steps reached is",
  ],
  [
    "a declined payment that was tried twice",
    "declined",
    (view) => (view.state.steps["process_payment"]!.attempts = 2),
    "the number of attempts of process_payment is 2, not 1",
  ],
  [
    "an error of another step",
    "declined",
    (view) => (view.error = { ...view.error!, stepId: "process_payment" }),
    "the error is",
  ],
  [
    "a compensation in the wrong order",
    "cancelled_after_handover",
    (view) => (view.compensation!.completed = view.compensation!.completed.toReversed()),
    "the order of the compensation is",
  ],
  [
    "a compensation that should not have run",
    "paid",
    (view) => (view.compensation = ended(orderOf("declined")).compensation),
    "the compensation is",
  ],
  [
    "a refund that was told no reason",
    "cancelled_in_fraud_check",
    (view) =>
      delete (view.compensation!.steps["refund_payment"]!.output as { reason?: string }).reason,
    "the output of refund_payment is",
  ],
  [
    "a cancellation from elsewhere",
    "timed_out",
    (view) => (view.cancellation!.source = "API"),
    "the cancellation is",
  ],
  [
    "a cancellation without its event",
    "cancelled_waiting",
    (view) => delete view.cancellation!.eventId,
    "does not name its event",
  ],
  [
    "an uncertain outcome",
    "cancelled_before_handover",
    (view) => view.compensation!.uncertain.push("ship_order"),
    "unknown outcome",
  ],
])("%s is noticed", (_, path, spoil, message) => {
  const order = orderOf(path);
  const view = ended(order);
  spoil(view);

  expect(differencesOf(order, view)).toEqual([expect.stringContaining(message)]);
});
