import { isTerminal } from "@millrace/engine";
import type { InstanceRead } from "@millrace/store";
import { StatusConflictError } from "./errors.ts";
import { intervene } from "./intervene.ts";
import type { Caller, Services } from "./services.ts";

export interface CancelBody {
  readonly reason?: string | null | undefined;
  /** Default true (CONTRACT 2). */
  readonly shouldCompensate?: boolean | undefined;
}

/**
 * Cancels at once; compensation runs beside it (CONTRACT 2).
 *
 * @param ifMatch The version that the caller has seen.
 * @throws InstanceNotFoundError, StatusConflictError, PreconditionFailedError
 */
export async function cancelInstance(
  services: Services,
  caller: Caller,
  instanceId: string,
  { reason = null, shouldCompensate = true }: CancelBody,
  ifMatch?: number,
): Promise<InstanceRead> {
  const { actor } = caller;
  return intervene(services, caller, instanceId, {
    ifMatch,
    signals: ({ status }) => {
      if (isTerminal(status)) throw new StatusConflictError("cancelled", instanceId, status);
      return [{ kind: "cancelRequested", reason, actor, shouldCompensate }];
    },
  });
}
