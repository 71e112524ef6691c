import { InstanceNotFoundError, type Services, WorkflowNotFoundError } from "@millrace/runtime";
import { tenantOf } from "@millrace/store";
import { ApiError } from "./errors.ts";
import type { Caller } from "./runtime.ts";

/** Does it as the caller, or as the tenant that has the instance, where the caller named none. */
export async function forOwner<T>(
  { database: { db } }: Services,
  caller: Caller,
  instanceId: string,
  act: (owner: Caller) => Promise<T>,
): Promise<T> {
  try {
    return await act(caller);
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) throw refusalOf(instanceId, error);
    if (!(error instanceof InstanceNotFoundError) || caller.isAnyTenant !== true) throw error;
    const tenantId = await tenantOf(db, instanceId);
    if (tenantId === undefined || tenantId === caller.tenantId) throw error;
    return act({ ...caller, tenantId });
  }
}

/** What a verb on an instance is refused with. One without its definition is there, so that this is no 404. */
export function refusalOf(instanceId: string, cause: unknown): unknown {
  if (!(cause instanceof WorkflowNotFoundError)) return cause;
  const message = `the definition of instance ${instanceId} is not stored any more (${cause.message}): restore it from a backup, since until then it cannot go on, or give it up by a cancel with shouldCompensate false; millrace doctor says what else is wrong with it`;
  return new ApiError("STATUS_CONFLICT", message, { cause });
}
