import type { InstanceStatus } from "@millrace/engine";
import { findInstances } from "@millrace/store";
import type { InstanceFilter } from "@millrace/store";
import type { Caller, Services } from "../services.ts";
import { cancelInstance } from "./cancel-instance.ts";
import { pauseInstance, resumeInstance } from "./pause-instance.ts";
import { retryInstance } from "./retry-instance.ts";

export type BulkVerb = "cancel" | "pause" | "resume" | "retry";

export interface Bulk {
  readonly action: BulkVerb;
  readonly filter: InstanceFilter;
  readonly limit: number;
  readonly cursor?: string | undefined;
  readonly dryRun: boolean;
  readonly reason?: string | undefined;
  readonly shouldCompensate?: boolean | undefined;
}

export interface BulkOutcome {
  /** In the order in which the instances were created. */
  readonly outcomes: readonly { readonly id: string; readonly error?: unknown }[];
  readonly nextCursor: string | null;
}

/** Commits that come together share their statements; more at once would only wait in this process. */
const atOnce = 25;

/**
 * Does the same to many instances, each for itself: what is refused for one changes nothing for the others.
 *
 * @throws BadCursorError
 */
export async function actOnMany(
  services: Services,
  caller: Caller,
  { action, filter, limit, cursor, dryRun, ...body }: Bulk,
): Promise<BulkOutcome> {
  const { tenantId } = caller;
  const status = statusesFor(action, filter.status);
  const query = { tenantId, filter: { ...filter, status }, limit, cursor };
  const { ids, nextCursor } = await findInstances(services.database.db, query);
  const outcomes: { id: string; error?: unknown }[] = [];
  for (let from = 0; from < ids.length; from += atOnce) {
    const some = ids.slice(from, from + atOnce);
    if (dryRun) outcomes.push(...some.map((id) => ({ id })));
    else outcomes.push(...(await Promise.all(some.map((id) => attempt(id)))));
  }
  return { outcomes, nextCursor };

  async function attempt(id: string): Promise<{ id: string; error?: unknown }> {
    try {
      await verbs[action](services, caller, id, body);
      return { id };
    } catch (error) {
      return { id, error };
    }
  }
}

const verbs = {
  cancel: cancelInstance,
  pause: pauseInstance,
  resume: resumeInstance,
  retry: retryInstance,
} as const;

/** In which the verb has an effect. */
const movable: Readonly<Record<BulkVerb, readonly InstanceStatus[]>> = {
  cancel: ["CREATED", "RUNNING", "WAITING_FOR_EVENT", "PAUSED"],
  pause: ["CREATED", "RUNNING", "WAITING_FOR_EVENT"],
  resume: ["PAUSED"],
  retry: ["FAILED"],
};

/** Also where somebody names them: a cancel of FAILED abandons, a retry of PAUSED has another round of retries. */
const movableIfNamed: Readonly<Record<BulkVerb, readonly InstanceStatus[]>> = {
  ...movable,
  cancel: [...movable.cancel, "FAILED"],
  retry: [...movable.retry, "PAUSED"],
};

function statusesFor(
  action: BulkVerb,
  named: readonly InstanceStatus[] | undefined,
): readonly InstanceStatus[] {
  if (named === undefined) return movable[action];
  return movableIfNamed[action].filter((status) => named.includes(status));
}
