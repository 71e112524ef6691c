import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import type { JsonObject } from "@millrace/contract";
import { DefinitionError, defineTask, defineWorkflow } from "@millrace/sdk";

const fixtures = new URL("../../../test/fixtures/definitions/", import.meta.url);
const read = (name: string): unknown => JSON.parse(readFileSync(new URL(name, fixtures), "utf8"));

const reserve = defineTask({
  id: "reserve_task",
  input: z.object({
    orderId: z.string(),
    quantity: z.number(),
    lines: z.array(z.object({ sku: z.string() })),
  }),
  run: () => null,
});

describe("defineWorkflow", () => {
  test("yields the document: payment_wait, word for word", () => {
    const document = defineWorkflow("payment_wait")
      .task("process_order", "order_processing_task")
      .waitForEvent("wait_for_payment", "payment.received", {
        eventCondition: "event.payload.orderId === workflow.input.orderId",
        eventTimeout: { duration: "P3D", timeoutHandlerStepId: "handle_payment_timeout" },
        eventPayloadMapping: { paymentId: "id", paymentAmount: "amount" },
      })
      .task("complete_order", "complete_order_task", { next: null })
      .task("handle_payment_timeout", "payment_reminder_task")
      .build();

    expect(document).toEqual(read("payment_wait.json"));
  });

  test("yields the document: order_processing, word for word", () => {
    const { inputSchema } = read("order_processing.json") as { inputSchema: JsonObject };
    const orderId = "workflow.input.orderId";
    const forThisOrder = "event.payload.orderId === workflow.input.orderId";

    const document = defineWorkflow("order_processing", {
      name: "Order Processing Workflow",
      inputSchema,
    })
      .cancelOn("order.cancelled", {
        eventCondition: forThisOrder,
        reason: "Order was cancelled by customer",
        shouldCompensate: true,
      })
      .cancelOn("payment.failed", {
        eventCondition: `${forThisOrder} && event.payload.attempts > 3`,
        reason: "Payment failed after multiple attempts",
        shouldCompensate: true,
      })
      .task("reserve_inventory", "inventory_reservation_task", {
        input: { orderId, lines: "${ workflow.input.lines }" },
        retry: { maxAttempts: 3, initialInterval: "PT0.2S", backoffCoefficient: 2, jitter: "FULL" },
      })
      .waitForEvent("wait_for_payment", "payment.received", {
        eventCondition: forThisOrder,
        eventTimeout: {
          duration: "${ workflow.input.paymentWindow ?? 'P3D' }",
          timeoutHandlerStepId: "handle_payment_timeout",
        },
        eventPayloadMapping: { paymentId: "id", paymentAmount: "amount" },
        lookback: "instance",
      })
      .task("process_payment", "payment_processing_task", {
        input: {
          orderId,
          paymentId: "${ workflow.variables.paymentId }",
          amount: "${ workflow.variables.paymentAmount }",
        },
        timeout: "PT30S",
        onError: [{ errors: ["PaymentDeclined"], to: "notify_declined" }],
        conditions: [{ when: "workflow.variables.paymentAmount >= 1000", to: "fraud_check" }],
        next: "ship_order",
      })
      .task("fraud_check", "fraud_check_task")
      .task("ship_order", "shipment_task", {
        input: { orderId, reservationId: "${ steps.reserve_inventory.output.reservationId }" },
      })
      .task("confirm_order", "order_confirmation_task", {
        input: { orderId, shipmentId: "${ steps.ship_order.output.shipmentId }" },
        next: null,
      })
      .task("handle_payment_timeout", "payment_reminder_task", { next: "give_up" })
      .task("notify_declined", "payment_declined_task")
      .end("declined", "FAILED", {
        error: {
          type: "PaymentDeclined",
          message: "payment for order ${ workflow.input.orderId } was declined",
        },
      })
      .end("give_up", "CANCELLED", { reason: "no payment within the window" })
      .compensate("reserve_inventory", "release_inventory", "inventory_release_task")
      .compensate("process_payment", "refund_payment", "payment_refund_task", {
        input: {
          paymentId: "workflow.instance.state.steps.process_payment.output.paymentId",
          amount: "workflow.instance.state.steps.process_payment.output.amount",
          reason: "workflow.instance.cancellation.reason",
        },
      })
      .compensate("ship_order", "cancel_shipment", "shipment_cancellation_task", {
        condition: "workflow.instance.state.steps.ship_order.status === 'COMPLETED'",
      })
      .build();

    expect(document).toEqual(read("order_processing.json"));
  });

  test("steps go on to the next one unless they are told where, and ends and choices never", () => {
    const { steps } = defineWorkflow("w")
      .task("a", "t", { conditions: [{ when: "input.skip", to: "c" }] })
      .delay("b", { duration: "PT1S", next: "a" })
      .choice("c", [{ when: "input.again", to: "a" }], { default: "d" })
      .set("d", { n: 1 })
      .end("e", "COMPLETED")
      .build();

    expect(steps).toEqual([
      {
        stepId: "a",
        type: "TASK",
        taskId: "t",
        transitions: { conditions: [{ when: "input.skip", to: "c" }], default: "b" },
      },
      { stepId: "b", type: "DELAY", duration: "PT1S", transitions: { default: "a" } },
      { stepId: "c", type: "CHOICE", choices: [{ when: "input.again", to: "a" }], default: "d" },
      { stepId: "d", type: "SET", variables: { n: 1 }, transitions: { default: "e" } },
      { stepId: "e", type: "END", outcome: "COMPLETED" },
    ]);
  });

  test("branches and items are chains of their own", () => {
    const { steps } = defineWorkflow("w")
      .parallel(
        "both",
        {
          label: (branch) => branch.task("print", "t").task("stick", "t"),
          mail: (branch) => branch.emitEvent("tell", "order.packed", { id: "${ input.id }" }),
        },
        { join: "ANY" },
      )
      .map("each", "${ input.lines }", (item) => item.subWorkflow("pick", "picking"), {
        itemName: "line",
      })
      .build();

    expect(steps).toEqual([
      {
        stepId: "both",
        type: "PARALLEL",
        join: "ANY",
        branches: [
          {
            name: "label",
            steps: [
              { stepId: "print", type: "TASK", taskId: "t", transitions: { default: "stick" } },
              { stepId: "stick", type: "TASK", taskId: "t" },
            ],
          },
          {
            name: "mail",
            steps: [
              {
                stepId: "tell",
                type: "EMIT_EVENT",
                eventPattern: "order.packed",
                payload: { id: "${ input.id }" },
              },
            ],
          },
        ],
        transitions: { default: "each" },
      },
      {
        stepId: "each",
        type: "MAP",
        items: "${ input.lines }",
        itemName: "line",
        steps: [{ stepId: "pick", type: "SUB_WORKFLOW", workflowId: "picking" }],
      },
    ]);
  });

  test("a task's input is typed, and any part of it may be an expression", () => {
    const { steps } = defineWorkflow("w")
      .task("a", reserve, {
        input: {
          orderId: "o",
          quantity: "${ input.quantity }",
          lines: [{ sku: "s" }, "${ input.line }"],
        },
      })
      .task("b", reserve, { input: "workflow.input" })
      // @ts-expect-error quantity is missing
      .task("c", reserve, { input: { orderId: "o", lines: "${ input.lines }" } })
      // @ts-expect-error quantity is a number or an expression
      .task("d", reserve, { input: { orderId: "o", quantity: true, lines: [] } })
      .build();

    expect(steps.map((step) => step.type === "TASK" && step.taskId)).toEqual(
      Array(4).fill("reserve_task"),
    );
  });

  test("a zod schema of the input becomes its JSON Schema", () => {
    const { inputSchema } = defineWorkflow("w", {
      input: z.object({ orderId: z.string().min(1), note: z.string().default("") }),
    })
      .task("a", "t")
      .build();

    expect(inputSchema).toEqual({
      type: "object",
      properties: {
        orderId: { type: "string", minLength: 1 },
        note: { type: "string", default: "" },
      },
      required: ["orderId"],
    });
  });

  test("compensations and triggers stand where the document has them", () => {
    const document = defineWorkflow("w", { name: "W", timeout: "P1D" })
      .task("a", "t")
      .compensate("a", "undo_a", reserve, { condition: "true" })
      .cancelOn("order.cancelled", { reason: "cancelled" })
      .startOn("order.placed")
      .build();

    expect(document).toEqual({
      id: "w",
      name: "W",
      timeout: "P1D",
      steps: [{ stepId: "a", type: "TASK", taskId: "t" }],
      compensationSteps: [
        {
          stepId: "undo_a",
          compensationFor: "a",
          type: "TASK",
          taskId: "reserve_task",
          condition: "true",
        },
      ],
      cancellationTriggers: [{ eventPattern: "order.cancelled", reason: "cancelled" }],
      startTriggers: [{ eventPattern: "order.placed" }],
    });
  });

  test("a builder can stand where a document is sent", () => {
    const builder = defineWorkflow("w").task("a", "t");

    expect(JSON.parse(JSON.stringify(builder))).toEqual(builder.build());
  });

  test("what is no document is refused with every fault", () => {
    const build = () => defineWorkflow("1w").task("a b", "").build();

    expect(build).toThrow(DefinitionError);
    expect(build).toThrow(
      /\/id: .*\n.*\/steps\/0\/stepId: .*\n.*\/steps\/0\/taskId: must not be empty/,
    );
  });

  test("what registration would refuse is refused when it is built", () => {
    const build = () =>
      defineWorkflow("w", { input: z.object({ lines: z.string() }) })
        .map("each", "${ input.lines }", (item) => item.task("pick", "t"))
        .task("tell", "t", { input: { first: "${ steps.eech.output[0] }" } })
        .build();

    expect(build).toThrow(DefinitionError);
    expect(build).toThrow(
      /\/steps\/0\/items: an array is wanted.*\n.*\/steps\/1\/input\/first: there is no step "eech"; did you mean "each"/,
    );
  });
});
