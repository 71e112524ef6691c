import type { MillraceClient } from "@millrace/client";
import {
  type InstanceView,
  isSettled,
  type JsonObject,
  type PublishEventAnswer,
  type StepStatus,
} from "@millrace/contract";
import { messageOf } from "../errors.ts";
import { differencesOf } from "./expectations.ts";
import type { Order, OrderPath } from "./orders.ts";
import { gate, patiently } from "./patience.ts";
import type { Watch } from "./watch.ts";

/** What became of one order. */
export interface Outcome {
  readonly order: Order;
  /** As it ended; `undefined` when it did not get that far. */
  readonly instance: InstanceView | undefined;
  /** What is not as the acceptance table demands, each as a sentence. None: all is right. */
  readonly faults: readonly string[];
  /** Whether the payment was there before anybody waited for it. */
  readonly isPaidEarly: boolean;
}

export interface DriveOptions {
  readonly client: MillraceClient;
  readonly watch: Watch;
  /** Ties the instances of one run; also makes keys and event ids its own. */
  readonly correlationId: string;
}

/** Starts an order, does to it what belongs to its path, and judges how it ended. */
export async function driveOrder(order: Order, options: DriveOptions): Promise<Outcome> {
  const faults: string[] = [];
  let isPaidEarly = false;
  try {
    const world = await startOrder(order, options, faults);
    isPaidEarly = (await SCRIPTS[order.path](world)) === "early";
    const instance = await world.until("its end", isSettled);
    faults.push(...differencesOf(order, instance));
    return { order, instance, faults, isPaidEarly };
  } catch (error) {
    return { order, instance: undefined, faults: [...faults, messageOf(error)], isPaidEarly };
  }
}

/** What the outside world can do to one order, and see of it. */
interface World {
  readonly order: Order;
  until(what: string, isThere: (instance: InstanceView) => boolean): Promise<InstanceView>;
  /** Waits until a step has this status. */
  untilStep(stepId: string, status: StepStatus): Promise<InstanceView>;
  /**
   * Publishes an event about the order; notes it as a fault when the answer is another.
   *
   * @param key Makes it the same event as another one with this key.
   */
  publish(
    pattern: string,
    facts: JsonObject,
    expected: Counts,
    key?: string,
  ): Promise<PublishEventAnswer>;
  /** Publishes the payment; a second time it is the same event. */
  pay(expected: Counts): Promise<PublishEventAnswer>;
}

type Counts = Partial<
  Pick<PublishEventAnswer, "duplicate" | "delivered" | "cancelled" | "started">
>;

async function startOrder(
  order: Order,
  { client, watch, correlationId }: DriveOptions,
  faults: string[],
): Promise<World> {
  const { orderId, paymentId, amount, input } = order;
  const { id } = await startGate(() =>
    patiently(() =>
      client.instances.start(
        { workflowId: "order_processing", input, correlationId },
        { idempotencyKey: `${correlationId}-${orderId}` },
      ),
    ),
  );
  const until: World["until"] = (what, isThere) => watch.until(id, what, isThere);
  let published = 0;
  const publish: World["publish"] = async (pattern, facts, expected, key) => {
    published += 1;
    const eventId = `${correlationId}-${orderId}-${key ?? published}`;
    const payload = { orderId, ...facts };
    let tries = 1;
    const answer = await patiently((attempt) => {
      tries = attempt;
      return client.events.publish({ id: eventId, pattern, payload });
    });
    // The first try was accepted after all; what it would have answered is not known.
    if (tries > 1 && answer.duplicate) return answer;
    for (const [name, wanted] of Object.entries(expected)) {
      const actual = answer[name as keyof Counts];
      if (actual === wanted) continue;
      faults.push(`the answer to ${pattern} says ${name}: ${actual}, not ${wanted}`);
    }
    return answer;
  };
  return {
    order,
    until,
    untilStep: (stepId, status) =>
      until(`${stepId} to be ${status}`, ({ state }) => state.steps[stepId]?.status === status),
    publish,
    pay: (expected) => publish("payment.received", { id: paymentId, amount }, expected, "payment"),
  };
}

/** Starts under way at a time: a burst of a thousand would only fill a queue in the API. */
const startGate = gate(32);

const DELIVERED = { duplicate: false, delivered: 1, cancelled: 0, started: 0 };
const CANCELLED = { duplicate: false, delivered: 0, cancelled: 1, started: 0 };
const NOTHING = { duplicate: false, delivered: 0, cancelled: 0, started: 0 };

async function payWhenAsked({ untilStep, pay }: World): Promise<void> {
  await untilStep("wait_for_payment", "WAITING");
  await pay(DELIVERED);
}

function cancelDuring(stepId: string): (world: World) => Promise<void> {
  return async (world) => {
    await payWhenAsked(world);
    await world.untilStep(stepId, "RUNNING");
    await world.publish("order.cancelled", {}, CANCELLED);
  };
}

const SCRIPTS: Readonly<Record<OrderPath, (world: World) => Promise<"early" | void>>> = {
  paid: payWhenAsked,
  paid_large: payWhenAsked,
  declined: payWhenAsked,
  shipment_failed: payWhenAsked,
  timed_out: async () => {},
  paid_early: async ({ pay }) => {
    const { delivered } = await pay({ duplicate: false, cancelled: 0 });
    return delivered === 0 ? "early" : undefined;
  },
  payment_retried: async (world) => {
    await world.untilStep("wait_for_payment", "WAITING");
    await world.publish("payment.failed", { attempts: 3 }, NOTHING);
    await world.publish("payment.failed", {}, NOTHING);
    await world.pay(DELIVERED);
    await world.pay({ ...NOTHING, duplicate: true });
  },
  payment_failed: async ({ untilStep, publish }) => {
    await untilStep("wait_for_payment", "WAITING");
    await publish("payment.failed", { attempts: 4 }, CANCELLED);
  },
  cancelled_waiting: async ({ untilStep, publish }) => {
    await untilStep("wait_for_payment", "WAITING");
    await publish("order.cancelled", {}, CANCELLED);
  },
  cancelled_in_fraud_check: cancelDuring("fraud_check"),
  cancelled_after_handover: cancelDuring("ship_order"),
  cancelled_before_handover: cancelDuring("ship_order"),
  refund_failed: cancelDuring("ship_order"),
  cancelled_in_confirmation: cancelDuring("confirm_order"),
  cancelled_too_late: async (world) => {
    await payWhenAsked(world);
    await world.until("its completion", isSettled);
    await world.publish("order.cancelled", {}, NOTHING);
  },
};
