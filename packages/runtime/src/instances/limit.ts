import { workflowOfLimit } from "@millrace/store";
import type { LimitRef, QueueOrder } from "@millrace/store";
import { WorkflowNotFoundError } from "../errors.ts";
import type { Services } from "../services.ts";

/** A limit as it is now. */
export interface LimitInForce {
  readonly slots: number;
  readonly queue: QueueOrder;
  /** Undefined: any number may be queued. */
  readonly maxQueued: number | undefined;
}

/** As many as Postgres counts: those that were queued before the limit was taken away go on. */
const unlimited: LimitInForce = { slots: 2_147_483_647, queue: "PRIORITY", maxQueued: undefined };

/** What the latest version of the definition says, whichever version the instances are bound to. */
export async function limitOf(
  { definitions }: Pick<Services, "definitions">,
  { tenantId, limitKey }: LimitRef,
): Promise<LimitInForce> {
  try {
    const { definition } = await definitions.latest(tenantId, workflowOfLimit(limitKey));
    if (definition.concurrency === undefined) return unlimited;
    const { limit: slots, queue, maxQueued } = definition.concurrency;
    return { slots, queue, maxQueued };
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return unlimited;
    throw error;
  }
}
