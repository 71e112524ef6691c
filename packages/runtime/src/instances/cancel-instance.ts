import { canCancel } from "@millrace/engine";
import type { InstanceRead } from "@millrace/store";
import { StatusConflictError } from "../errors.ts";
import type { Caller, Services } from "../services.ts";
import { intervene } from "./intervene.ts";

export interface CancelBody {
  readonly reason?: string | null | undefined;
  /** Default true (CONTRACT 2). */
  readonly shouldCompensate?: boolean | undefined;
}

/**
 * Cancels at once; compensation runs beside it (CONTRACT 2). One that has FAILED is abandoned so: what was
 * not undone is undone now.
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
    signals: (snapshot) => {
      if (!canCancel(snapshot)) {
        throw new StatusConflictError("cancelled", instanceId, snapshot.status);
      }
      return [{ kind: "cancelRequested", reason, actor, shouldCompensate }];
    },
  });
}
