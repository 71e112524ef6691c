import type { InstanceRead } from "@millrace/store";
import { NotQueuedError } from "../errors.ts";
import type { Caller, Services } from "../services.ts";
import { intervene } from "./intervene.ts";

export interface PromoteBody {
  readonly reason?: string | null | undefined;
}

/**
 * Puts one that waits for a slot at the head of its queues: it goes before all that have not run either.
 *
 * @param ifMatch The version that the caller has seen.
 * @throws InstanceNotFoundError, NotQueuedError, PreconditionFailedError
 */
export async function promoteInstance(
  services: Services,
  caller: Caller,
  instanceId: string,
  { reason = null }: PromoteBody,
  ifMatch?: number,
): Promise<InstanceRead> {
  const { actor } = caller;
  return intervene(services, caller, instanceId, {
    ifMatch,
    signals: ({ slot, status, interventions }) => {
      if (slot !== "WANTED") throw new NotQueuedError(instanceId, status);
      return [{ kind: "promoteRequested", intervention: interventions + 1, actor, reason }];
    },
  });
}
