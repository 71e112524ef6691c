// The tasks of the workflow `order_processing`. A task is a plain object with an id and a function;
// this module imports nothing, so it runs wherever a worker finds it.
//
// How an order goes is decided by the first part of its id, so that one definition can be shown
// going every way: in `declined-007` the bank says no, in `shipment_failed-003` the carrier is
// broken. What an id of any other form stands for is an order with which nothing goes wrong.
//
// With MILLRACE_DEMO_LEDGER set, every task tells that URL what it did. Tests judge by that ledger
// what really happened; it also shows the use of `idempotencyKey`: a task may run twice (a worker
// may die right before its result is stored), and the other side can tell by the key.

/**
 * @typedef {object} Context
 * @property {string} idempotencyKey  the same on every run of one execution
 * @property {number} attempt  from 1
 * @property {number} deliveries  runs of this attempt, after a worker's death more than 1
 * @property {string} stepId
 * @property {AbortSignal} signal  aborted when the result no longer counts
 * @property {{ id: string }} instance
 * @property {{ info: (fields: object, message: string) => void }} logger
 */

export const reserveInventory = {
  id: "inventory_reservation_task",
  /** @param {Context} context  @param {{ orderId: string, lines: readonly object[] }} input */
  async run(context, { orderId, lines }) {
    // Long enough for a payment to come before anybody waits for it.
    await pause(kindOf(orderId) === "paid_early" ? 1_000 : 60);
    await record(context, { orderId, lines: lines.length });
    return { reservationId: `reservation-${orderId}` };
  },
};

export const releaseInventory = {
  id: "inventory_release_task",
  /** @param {Context} context  @param {Undo} input */
  async run(context, { originalOutput, workflowInput }) {
    await record(context, { orderId: workflowInput.orderId, ...originalOutput });
    return { released: originalOutput.reservationId };
  },
};

export const processPayment = {
  id: "payment_processing_task",
  /** @param {Context} context  @param {{ orderId: string, paymentId: string, amount: number }} input */
  async run(context, { orderId, paymentId, amount }) {
    await pause(60);
    await record(context, { orderId, paymentId, amount });
    if (kindOf(orderId) === "declined") {
      // A name for `onError` to go by. The SDK's TaskError does the same; any error with a `type` will do.
      throw Object.assign(new Error(`the bank declines payment ${paymentId}`), {
        type: "PaymentDeclined",
        retryable: false,
      });
    }
    return { paymentId, amount };
  },
};

export const refundPayment = {
  id: "payment_refund_task",
  /** @param {Context} context  @param {{ paymentId: string, amount: number, reason?: string }} input */
  async run(context, input) {
    await record(context, { ...input });
    if (input.paymentId.startsWith("payment-refund_failed-")) {
      throw new Error(`the bank does not take back payment ${input.paymentId}`);
    }
    return { refundId: `refund-of-${input.paymentId}`, ...input };
  },
};

export const checkFraud = {
  id: "fraud_check_task",
  /** @param {Context} context  @param {{ orderId: string }} input */
  async run(context, { orderId }) {
    if (kindOf(orderId) === "cancelled_in_fraud_check") await untilCancelled(context);
    else await pause(120);
    await record(context, { orderId });
    return { orderId, suspicious: false };
  },
};

export const shipOrder = {
  id: "shipment_task",
  /** @param {Context} context  @param {{ orderId: string, reservationId: string }} input */
  async run(context, { orderId, reservationId }) {
    const kind = kindOf(orderId);
    if (kind === "cancelled_after_handover") {
      // The parcel is with the carrier when the cancellation comes: it goes out, and is called back.
      await untilCancelled(context, { isCarriedOn: true });
      await pause(150);
    } else if (kind === "cancelled_before_handover" || kind === "refund_failed") {
      await untilCancelled(context);
    } else {
      await pause(120);
    }
    await record(context, { orderId, reservationId });
    if (kind === "shipment_failed") throw new Error("the carrier does not answer");
    return { shipmentId: `shipment-${orderId}` };
  },
};

export const cancelShipment = {
  id: "shipment_cancellation_task",
  /** @param {Context} context  @param {Undo} input */
  async run(context, { originalOutput, workflowInput }) {
    await record(context, { orderId: workflowInput.orderId, ...originalOutput });
    return { cancelled: originalOutput.shipmentId };
  },
};

export const confirmOrder = {
  id: "order_confirmation_task",
  /** @param {Context} context  @param {{ orderId: string, shipmentId: string }} input */
  async run(context, { orderId, shipmentId }) {
    if (kindOf(orderId) === "cancelled_in_confirmation") await untilCancelled(context);
    else await pause(30);
    await record(context, { orderId, shipmentId });
    return { orderId, shipmentId, confirmed: true };
  },
};

export const remindOfPayment = {
  id: "payment_reminder_task",
  /** @param {Context} context  @param {{ orderId: string }} input */
  async run(context, { orderId }) {
    await record(context, { orderId });
    return { orderId, reminded: true };
  },
};

export const notifyDeclined = {
  id: "payment_declined_task",
  /** @param {Context} context  @param {{ orderId: string }} input */
  async run(context, { orderId }) {
    await record(context, { orderId });
    return { orderId, notified: true };
  },
};

/**
 * What a compensation step without an `input` of its own gets.
 *
 * @typedef {object} Undo
 * @property {any} originalOutput  of the step that is undone
 * @property {{ orderId: string }} workflowInput
 */

/** @param {string} orderId  `declined-007` → `declined` */
function kindOf(orderId) {
  return orderId.split("-", 1)[0];
}

/** @param {number} milliseconds */
function pause(milliseconds) {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}

/**
 * Work that takes as long as it is let: up to two minutes, or until the step is told to stop.
 *
 * @param {Context} context
 * @param {{ isCarriedOn?: boolean }} options  whether the work can no longer be broken off
 */
async function untilCancelled({ signal }, { isCarriedOn = false } = {}) {
  const end = Date.now() + 120_000;
  while (!signal.aborted && Date.now() < end) await pause(20);
  if (!isCarriedOn) signal.throwIfAborted();
}

/**
 * The effect on the world, which for these tasks is an entry in a ledger.
 *
 * @param {Context} context
 * @param {object} facts
 */
async function record(context, facts) {
  const { idempotencyKey, attempt, deliveries, stepId: step, instance } = context;
  context.logger.info(facts, step);
  const ledger = process.env.MILLRACE_DEMO_LEDGER;
  if (!ledger) return;
  const response = await fetch(ledger, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      instance: instance.id,
      step,
      attempt,
      idempotencyKey,
      deliveries,
      pid: process.pid,
      ...facts,
    }),
    signal: AbortSignal.timeout(10_000),
  });
  if (!response.ok) throw new Error(`the ledger answers ${response.status}`);
}
