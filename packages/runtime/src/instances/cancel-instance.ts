import { canCancel } from "@millrace/engine";
import { readInstance } from "@millrace/store";
import type { InstanceRead } from "@millrace/store";
import { InstanceNotFoundError, StatusConflictError, WorkflowNotFoundError } from "../errors.ts";
import type { Caller, Services } from "../services.ts";
import { intervene } from "./intervene.ts";
import type { Verb } from "./intervene.ts";
import { remainsOf } from "./remains.ts";

export interface CancelBody {
  readonly reason?: string | null | undefined;
  /** Default true (CONTRACT 2). */
  readonly shouldCompensate?: boolean | undefined;
}

/**
 * Cancels at once; compensation runs beside it (CONTRACT 2). One that has FAILED is abandoned so: what was
 * not undone is undone now.
 *
 * An instance whose definition is not stored any more can be given up, if nothing is to be undone.
 *
 * @param ifMatch The version that the caller has seen.
 * @throws InstanceNotFoundError, StatusConflictError, PreconditionFailedError, WorkflowNotFoundError
 */
export async function cancelInstance(
  services: Services,
  caller: Caller,
  instanceId: string,
  { reason = null, shouldCompensate = true }: CancelBody,
  ifMatch?: number,
): Promise<InstanceRead> {
  const { tenantId, actor } = caller;
  const verb: Verb = {
    ifMatch,
    signals: (snapshot) => {
      if (!canCancel(snapshot)) {
        throw new StatusConflictError("cancelled", instanceId, snapshot.status);
      }
      return [{ kind: "cancelRequested", reason, actor, shouldCompensate }];
    },
  };
  try {
    return await intervene(services, caller, instanceId, verb);
  } catch (error) {
    if (!(error instanceof WorkflowNotFoundError) || shouldCompensate) throw error;
    const read = await readInstance(services.database.db, { tenantId, instanceId });
    if (read === undefined) throw new InstanceNotFoundError(instanceId);
    return intervene(services, caller, instanceId, { ...verb, remains: remainsOf(read) });
  }
}
