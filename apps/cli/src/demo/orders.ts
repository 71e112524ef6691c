/**
 * The ways that an order of the demo can go; see `examples/order-processing`. The key is the first
 * part of the order's id, by which the tasks of the example know what is to happen.
 */
export const ORDER_PATHS = {
  paid: { title: "paid", share: 10 },
  paid_early: { title: "paid before the wait is open", share: 6 },
  paid_large: { title: "paid, 1000 or more: fraud check", share: 5 },
  timed_out: { title: "not paid in time", share: 4 },
  declined: { title: "payment declined", share: 4 },
  payment_retried: { title: "payment failed up to 3 times, then paid", share: 3 },
  payment_failed: { title: "payment failed more than 3 times", share: 3 },
  cancelled_waiting: { title: "cancelled while waiting for payment", share: 3 },
  cancelled_after_handover: { title: "cancelled while shipping, shipped", share: 3 },
  cancelled_before_handover: { title: "cancelled while shipping, stopped", share: 2 },
  cancelled_in_fraud_check: { title: "cancelled during the fraud check", share: 2 },
  cancelled_too_late: { title: "cancelled after completion", share: 2 },
  cancelled_in_confirmation: { title: "cancelled during confirmation", share: 1 },
  shipment_failed: { title: "shipment failed for good", share: 1 },
  refund_failed: { title: "cancelled while shipping, refund failed", share: 1 },
} as const satisfies Readonly<Record<string, { readonly title: string; readonly share: number }>>;

export type OrderPath = keyof typeof ORDER_PATHS;

export const orderPaths = Object.keys(ORDER_PATHS) as readonly OrderPath[];

export interface Order {
  readonly path: OrderPath;
  readonly orderId: string;
  readonly paymentId: string;
  readonly amount: number;
  /** What the instance is started with. */
  readonly input: {
    readonly orderId: string;
    readonly lines: readonly { readonly sku: string; readonly quantity: number }[];
    /** How long the payment is waited for. */
    readonly paymentWindow: string;
  };
}

export interface OrderOptions {
  /** Ends every order id, so that several runs may share a database. */
  readonly run?: string | undefined;
  /** For orders that are to time out: an ISO 8601 duration. `PT3S` when absent. */
  readonly shortWindow?: string | undefined;
}

/** `count` orders, each path once before any comes twice, then by their shares of 50. */
export function planOrders(
  count: number,
  { run, shortWindow = "PT3S" }: OrderOptions = {},
): readonly Order[] {
  const cycle = fiftyPaths();
  return Array.from({ length: count }, (_, index) => {
    const path = cycle[index % cycle.length] ?? "paid";
    const number = String(index + 1).padStart(3, "0");
    const orderId = [path, number, ...(run === undefined ? [] : [run])].join("-");
    const isLarge = path === "paid_large" || path === "cancelled_in_fraud_check";
    return {
      path,
      orderId,
      paymentId: `payment-${orderId}`,
      amount: 10 + (index % 900) + (isLarge ? 1_000 : 0),
      input: {
        orderId,
        lines: [{ sku: "mug", quantity: 1 + (index % 3) }],
        paymentWindow: path === "timed_out" ? shortWindow : "PT1H",
      },
    };
  });
}

/** Round by round, one of each path that still has a share left. */
function fiftyPaths(): readonly OrderPath[] {
  const most = Math.max(...orderPaths.map((path) => ORDER_PATHS[path].share));
  const rounds = Array.from({ length: most }, (_, round) =>
    orderPaths.filter((path) => ORDER_PATHS[path].share > round),
  );
  return rounds.flat();
}
