import { readFile, writeFile } from "node:fs/promises";
import { env } from "node:process";
import { describe, expect, test } from "vitest";
import { fixture } from "./support/definitions.ts";
import { simulate } from "./support/simulation.ts";
import { narrate } from "./support/transcript.ts";
import type { Narrator } from "./support/transcript.ts";

/**
 * Every path of the acceptance documents, told step by step in transcripts/*.txt. They are read by
 * people: a change of them is a change of what Millrace does. `UPDATE_TRANSCRIPTS=1` writes them anew.
 */

const order = { orderId: "o-1", lines: [{ sku: "book", quantity: 2 }] };
const paid = { orderId: "o-1", id: "p-1", amount: 120 };
const paidMuch = { ...paid, amount: 1_500 };

const orderPaths: Readonly<Record<string, (told: Narrator) => void>> = {
  "paid, amount below 1000"(told) {
    untilPayment(told);
    told.publish("payment.received", paid);
    pay(told);
    ship(told);
    confirm(told);
  },
  "paid, amount of 1000 or more"(told) {
    untilPayment(told);
    told.publish("payment.received", paidMuch);
    pay(told);
    work(told, "fraud_check", { risk: "low" });
    ship(told);
    confirm(told);
  },
  "paid before the wait is open"(told) {
    told.start();
    told.take("reserve_inventory");
    told.wait("PT1S");
    told.publish("payment.received", paid);
    told.succeed("reserve_inventory", { reservationId: "r-1" });
    told.lookBack();
    pay(told);
    ship(told);
    confirm(told);
  },
  "payment of another order, and one twice"(told) {
    untilPayment(told);
    told.publish("payment.received", { ...paid, orderId: "o-2" });
    told.publish("payment.received", paid);
    told.publish("payment.received", { ...paid, id: "p-2" });
    pay(told);
    ship(told);
    confirm(told);
  },
  "payment declined"(told) {
    untilPayment(told);
    told.publish("payment.received", paid);
    told.take("process_payment");
    told.wait("PT1S");
    told.fail("process_payment", {
      type: "PaymentDeclined",
      message: "no funds",
      retryable: false,
    });
    work(told, "notify_declined", null);
    work(told, "release_inventory", { released: true });
  },
  "no payment within the window"(told) {
    untilPayment(told);
    told.wait("P3D");
    work(told, "handle_payment_timeout", { reminded: true });
    work(told, "release_inventory", { released: true });
  },
  "order cancelled while it waits for the payment"(told) {
    untilPayment(told);
    told.publish("order.cancelled", { orderId: "o-2" });
    told.publish("order.cancelled", { orderId: "o-1" });
    told.publish("payment.received", paid);
    work(told, "release_inventory", { released: true });
  },
  "payment failed more than three times"(told) {
    untilPayment(told);
    told.publish("payment.failed", { orderId: "o-1" });
    told.publish("payment.failed", { orderId: "o-1", attempts: 3 });
    told.publish("payment.failed", { orderId: "o-1", attempts: 4 });
    work(told, "release_inventory", { released: true });
  },
  "cancelled while the fraud check runs"(told) {
    untilPayment(told);
    told.publish("payment.received", paidMuch);
    pay(told);
    told.take("fraud_check");
    told.wait("PT1S");
    told.publish("order.cancelled", { orderId: "o-1" });
    told.succeed("fraud_check", { risk: "low" });
    refundAndRelease(told);
  },
  "cancelled while it is shipped, and the shipping succeeds"(told) {
    untilShipping(told);
    told.publish("order.cancelled", { orderId: "o-1" });
    told.cancel("once more");
    told.wait("PT2S");
    told.succeed("ship_order", { shipmentId: "s-1" });
    work(told, "cancel_shipment", { cancelled: true });
    refundAndRelease(told);
  },
  "cancelled while it is shipped, and the shipping fails"(told) {
    untilShipping(told);
    told.publish("order.cancelled", { orderId: "o-1" });
    told.wait("PT2S");
    told.fail("ship_order", { type: "AbortError", message: "told to stop" });
    refundAndRelease(told);
  },
  "cancelled while it is shipped, and nobody hears of the shipping"(told) {
    untilShipping(told);
    told.publish("order.cancelled", { orderId: "o-1" });
    told.wait("PT30S");
    refundAndRelease(told);
  },
  "cancelled while it is confirmed"(told) {
    untilShipping(told);
    told.succeed("ship_order", { shipmentId: "s-1" });
    told.take("confirm_order");
    told.wait("PT1S");
    told.publish("order.cancelled", { orderId: "o-1" });
    work(told, "cancel_shipment", { cancelled: true });
    refundAndRelease(told);
  },
  "shipping fails for good"(told) {
    untilShipping(told);
    told.fail("ship_order", { type: "CarrierDown", message: "no answer" });
    told.wait("PT1M");
    told.fail("ship_order", { type: "CarrierDown", message: "no answer" });
    told.wait("PT1M");
    told.fail("ship_order", { type: "CarrierDown", message: "no answer" });
    refundAndRelease(told);
  },
  "the refund fails for good"(told) {
    untilPayment(told);
    told.publish("payment.received", paidMuch);
    pay(told);
    told.publish("order.cancelled", { orderId: "o-1" });
    for (const pause of ["PT1M", "PT1M", "PT0S"]) {
      told.fail("refund_payment", { type: "BankClosed", message: "come back on Monday" });
      told.wait(pause);
    }
    work(told, "release_inventory", { released: true });
  },
  "cancelled after it has completed"(told) {
    orderPaths["paid, amount below 1000"]?.(told);
    told.publish("order.cancelled", { orderId: "o-1" });
    told.cancel("too late");
  },
};

const waitPaths: Readonly<Record<string, (told: Narrator) => void>> = {
  paid(told) {
    told.start();
    work(told, "process_order", { processed: true });
    told.publish("payment.received", paid);
    work(told, "complete_order", { completed: true });
  },
  "timed out"(told) {
    told.start();
    work(told, "process_order", { processed: true });
    told.wait("P3D");
    told.publish("payment.received", paid);
    work(told, "handle_payment_timeout", { reminded: true });
  },
  "an event before the wait is open is not delivered"(told) {
    told.start();
    told.publish("payment.received", paid);
    work(told, "process_order", { processed: true });
    told.lookBack();
    told.publish("payment.received", paid);
    work(told, "complete_order", { completed: true });
  },
};

describe.each([
  ["order_processing", orderPaths],
  ["payment_wait", waitPaths],
] as const)("%s", (id, paths) => {
  test.each(Object.keys(paths))("%s", async (name) => {
    const told = narrate(`${id}: ${name}`, simulate(fixture(`${id}.json`), order));

    paths[name]?.(told);

    const text = told.end();
    const file = `${id}.${name.replaceAll(/[^a-z0-9]+/g, "-")}.txt`;
    expect(text).toBe(await kept(file, text));
  });
});

/** The transcript as it is kept. */
async function kept(file: string, text: string): Promise<string> {
  const path = new URL(`transcripts/${file}`, import.meta.url);
  if (env["UPDATE_TRANSCRIPTS"] === "1") await writeFile(path, text);
  return readFile(path, "utf8");
}

function work(told: Narrator, stepId: string, output: null | object): void {
  told.take(stepId);
  told.wait("PT1S");
  told.succeed(stepId, output as never);
}

function untilPayment(told: Narrator): void {
  told.start();
  work(told, "reserve_inventory", { reservationId: "r-1" });
  told.wait("PT10M");
}

function pay(told: Narrator): void {
  work(told, "process_payment", { paymentId: "p-1", amount: 120 });
}

function ship(told: Narrator): void {
  work(told, "ship_order", { shipmentId: "s-1" });
}

function confirm(told: Narrator): void {
  work(told, "confirm_order", { confirmed: true });
}

function untilShipping(told: Narrator): void {
  untilPayment(told);
  told.publish("payment.received", paid);
  pay(told);
  told.take("ship_order");
  told.wait("PT1S");
}

function refundAndRelease(told: Narrator): void {
  work(told, "refund_payment", { refunded: true });
  work(told, "release_inventory", { released: true });
}
