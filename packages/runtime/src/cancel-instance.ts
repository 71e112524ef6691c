import { isTerminal } from "@millrace/engine";
import { readInstance } from "@millrace/store";
import type { InstanceRead } from "@millrace/store";
import { advance } from "./advance.ts";
import { InstanceNotFoundError, PreconditionFailedError, StatusConflictError } from "./errors.ts";
import { perform } from "./perform.ts";
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
  { tenantId, actor }: Caller,
  instanceId: string,
  { reason = null, shouldCompensate = true }: CancelBody,
  ifMatch?: number,
): Promise<InstanceRead> {
  const key = { tenantId, instanceId };
  const advanced = await advance(services, key, {
    actor,
    cause: "cancel",
    signals: ({ version, status }) => {
      if (ifMatch !== undefined && ifMatch !== version) {
        throw new PreconditionFailedError(instanceId, ifMatch, version);
      }
      if (isTerminal(status)) throw new StatusConflictError("cancelled", instanceId, status);
      return [{ kind: "cancelRequested", reason, actor, shouldCompensate }];
    },
  });
  if (advanced.kind === "committed") await perform(services, advanced.commit);
  const instance = await readInstance(services.database.db, key);
  if (instance === undefined) throw new InstanceNotFoundError(instanceId);
  return instance;
}
