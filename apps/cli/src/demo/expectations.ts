import { isDeepStrictEqual } from "node:util";
import type {
  CancellationSource,
  CompensationStatus,
  ErrorKind,
  InstanceView,
  StepStatus,
  TerminalStatus,
} from "@millrace/contract";
import type { Order, OrderPath } from "./orders.ts";

/** How an order must have ended. What is left out is not looked at. */
export interface Expectation {
  readonly status: TerminalStatus;
  readonly error: {
    readonly kind: ErrorKind;
    readonly type?: string;
    readonly stepId: string;
  } | null;
  /** Exactly these steps have an entry; the others were never reached. */
  readonly steps: Readonly<Record<string, StepExpectation>>;
  readonly compensation: {
    readonly status: CompensationStatus;
    readonly completed: readonly string[];
    readonly failed: readonly string[];
    /** In the order in which they ran, with their outputs; `null` for one that failed. */
    readonly outputs: Readonly<Record<string, unknown>>;
  } | null;
  readonly cancellation: { readonly source: CancellationSource; readonly reason: string } | null;
  readonly output?: unknown;
}

export interface StepExpectation {
  readonly status: StepStatus;
  readonly output?: unknown;
  readonly errorType?: string;
  readonly attempts?: number;
}

const BY_CUSTOMER = "Order was cancelled by customer";
const BY_FAILURES = "Payment failed after multiple attempts";
const NO_PAYMENT = "no payment within the window";

/** What the acceptance table demands of an order of `order_processing`, by the way that it goes. */
export function expectationOf({ path, orderId, paymentId, amount }: Order): Expectation {
  const reservationId = `reservation-${orderId}`;
  const shipmentId = `shipment-${orderId}`;
  const confirmation = { orderId, shipmentId, confirmed: true };
  const done = (output?: unknown): StepExpectation => ({
    status: "COMPLETED",
    ...(output === undefined ? {} : { output }),
  });
  const cancelled = { status: "CANCELLED" } as const;

  const reserved = { reserve_inventory: done({ reservationId }) };
  const paid = {
    ...reserved,
    wait_for_payment: done(),
    process_payment: done({ paymentId, amount }),
  };
  const checked = { ...paid, fraud_check: done({ orderId, suspicious: false }) };
  const shipped = { ...paid, ship_order: done({ shipmentId }) };
  const confirmed = { confirm_order: done(confirmation) };

  const release = { release_inventory: { released: reservationId } };
  const refund = (reason?: string) => ({
    refund_payment: {
      refundId: `refund-of-${paymentId}`,
      paymentId,
      amount,
      ...(reason === undefined ? {} : { reason }),
    },
  });
  const callBack = { cancel_shipment: { cancelled: shipmentId } };

  const completed = (steps: Expectation["steps"]): Expectation => ({
    status: "COMPLETED",
    error: null,
    steps,
    compensation: null,
    cancellation: null,
    output: confirmation,
  });
  const cancelledByEvent = (
    steps: Expectation["steps"],
    outputs: Readonly<Record<string, unknown>>,
    reason = BY_CUSTOMER,
  ): Expectation => ({
    status: "CANCELLED",
    error: null,
    steps,
    compensation: compensated(outputs),
    cancellation: { source: "EVENT", reason },
  });

  const expectations: Readonly<Record<OrderPath, Expectation>> = {
    paid: completed({ ...shipped, ...confirmed }),
    paid_early: completed({ ...shipped, ...confirmed }),
    payment_retried: completed({ ...shipped, ...confirmed }),
    cancelled_too_late: completed({ ...shipped, ...confirmed }),
    paid_large: completed({ ...checked, ...shipped, ...confirmed }),
    declined: {
      status: "FAILED",
      error: { kind: "END", type: "PaymentDeclined", stepId: "declined" },
      steps: {
        ...paid,
        process_payment: { status: "FAILED", errorType: "PaymentDeclined", attempts: 1 },
        notify_declined: done({ orderId, notified: true }),
        declined: done(),
      },
      compensation: compensated(release),
      cancellation: null,
    },
    timed_out: {
      status: "CANCELLED",
      error: null,
      steps: {
        ...reserved,
        wait_for_payment: { status: "FAILED", errorType: "TIMEOUT" },
        handle_payment_timeout: done({ orderId, reminded: true }),
        give_up: done(),
      },
      compensation: compensated(release),
      cancellation: { source: "END", reason: NO_PAYMENT },
    },
    cancelled_waiting: cancelledByEvent({ ...reserved, wait_for_payment: cancelled }, release),
    payment_failed: cancelledByEvent(
      { ...reserved, wait_for_payment: cancelled },
      release,
      BY_FAILURES,
    ),
    cancelled_in_fraud_check: cancelledByEvent(
      { ...paid, fraud_check: cancelled },
      { ...refund(BY_CUSTOMER), ...release },
    ),
    cancelled_after_handover: cancelledByEvent(shipped, {
      ...callBack,
      ...refund(BY_CUSTOMER),
      ...release,
    }),
    cancelled_before_handover: cancelledByEvent(
      { ...paid, ship_order: cancelled },
      { ...refund(BY_CUSTOMER), ...release },
    ),
    cancelled_in_confirmation: cancelledByEvent(
      { ...shipped, confirm_order: cancelled },
      { ...callBack, ...refund(BY_CUSTOMER), ...release },
    ),
    shipment_failed: {
      status: "FAILED",
      error: { kind: "TASK", stepId: "ship_order" },
      steps: { ...paid, ship_order: { status: "FAILED", attempts: 3 } },
      compensation: compensated({ ...refund(), ...release }),
      cancellation: null,
    },
    refund_failed: cancelledByEvent(
      { ...paid, ship_order: cancelled },
      { refund_payment: null, ...release },
    ),
  };
  return expectations[path];
}

/** @param outputs By compensation step, in the order in which they ran; `null`: it failed. */
function compensated(
  outputs: Readonly<Record<string, unknown>>,
): NonNullable<Expectation["compensation"]> {
  const ids = Object.keys(outputs);
  const failed = ids.filter((id) => outputs[id] === null);
  return {
    status: failed.length > 0 ? "COMPLETED_WITH_ERRORS" : "COMPLETED",
    completed: ids.filter((id) => outputs[id] !== null),
    failed,
    outputs,
  };
}

/** Every way in which an instance differs from what is expected of its order, each as a sentence. */
export function differencesOf(order: Order, instance: InstanceView): readonly string[] {
  const expected = expectationOf(order);
  const found: string[] = [];
  const compare = (what: string, actual: unknown, wanted: unknown) => {
    if (!isDeepStrictEqual(actual, wanted)) {
      found.push(`${what} is ${JSON.stringify(actual)}, not ${JSON.stringify(wanted)}`);
    }
  };
  compare("the status", instance.status, expected.status);
  compare("the input", instance.input, order.input);
  if ("output" in expected) compare("the output", instance.output, expected.output);
  compareError(compare, instance, expected);
  compareSteps(compare, instance, expected);
  compareCompensation(compare, instance, expected);
  const { cancellation } = instance;
  compare(
    "the cancellation",
    cancellation && { source: cancellation.source, reason: cancellation.reason },
    expected.cancellation,
  );
  if (cancellation?.source === "EVENT" && !cancellation.eventId) {
    found.push("the cancellation does not name its event");
  }
  return found;
}

type Compare = (what: string, actual: unknown, wanted: unknown) => void;

function compareError(compare: Compare, { error }: InstanceView, expected: Expectation): void {
  const isTyped = expected.error?.type !== undefined;
  const shown = error && {
    kind: error.kind,
    ...(isTyped ? { type: error.type } : {}),
    stepId: error.stepId,
  };
  compare("the error", shown, expected.error);
}

function compareSteps(compare: Compare, { state }: InstanceView, expected: Expectation): void {
  compare(
    "the list of steps reached",
    Object.keys(state.steps).toSorted(),
    Object.keys(expected.steps).toSorted(),
  );
  for (const [stepId, wanted] of Object.entries(expected.steps)) {
    const step = state.steps[stepId];
    if (step === undefined) continue;
    compare(`the status of ${stepId}`, step.status, wanted.status);
    if ("output" in wanted) compare(`the output of ${stepId}`, step.output, wanted.output);
    if ("errorType" in wanted) {
      compare(`the error of ${stepId}`, step.error?.type, wanted.errorType);
    }
    if ("attempts" in wanted) {
      compare(`the number of attempts of ${stepId}`, step.attempts, wanted.attempts);
    }
  }
  compare("the list of open waits", state.waitingFor, []);
}

function compareCompensation(
  compare: Compare,
  { compensation }: InstanceView,
  { compensation: wanted }: Expectation,
): void {
  if (compensation === null || wanted === null) {
    compare("the compensation", compensation, wanted);
    return;
  }
  const { status, plan, completed, failed, steps, uncertain } = compensation;
  compare("the status of the compensation", status, wanted.status);
  compare("the plan of the compensation", plan, Object.keys(wanted.outputs));
  compare("the order of the compensation", completed, wanted.completed);
  compare(
    "the list of failed compensation steps",
    failed.map(({ stepId }) => stepId),
    wanted.failed,
  );
  compare("the list of steps with an unknown outcome", uncertain, []);
  for (const stepId of wanted.completed) {
    compare(`the output of ${stepId}`, steps[stepId]?.output, wanted.outputs[stepId]);
  }
}
