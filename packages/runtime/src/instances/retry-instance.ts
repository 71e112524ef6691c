import { retryRefusal } from "@millrace/engine";
import type { Definition } from "@millrace/engine";
import { restoreDeliveries } from "@millrace/store";
import type { Db, InstanceRead } from "@millrace/store";
import { InstanceNotFoundError, RetryRefusedError, UnknownStepError } from "../errors.ts";
import type { Caller, Services } from "../services.ts";
import { heldBack, heldTimers } from "./held-back.ts";
import { intervene } from "./intervene.ts";

export interface RetryBody {
  readonly reason?: string | null | undefined;
  /** Of the definition's own list. Default: where it failed. */
  readonly fromStepId?: string | undefined;
}

/**
 * A FAILED instance goes on: from where it failed, or from a step that is named; what was completed stays.
 * One that is paused because retries are spent has another round of them, and goes on with what was held.
 *
 * @param ifMatch The version that the caller has seen.
 * @param check What else must hold, of whoever has the instance's row: throws where it does not.
 * @throws InstanceNotFoundError, RetryRefusedError, UnknownStepError, PreconditionFailedError
 */
export async function retryInstance(
  services: Services,
  caller: Caller,
  instanceId: string,
  { reason = null, fromStepId }: RetryBody,
  ifMatch?: number,
  check?: (trx: Db) => Promise<void>,
): Promise<InstanceRead> {
  const { tenantId, actor } = caller;
  const key = { tenantId, instanceId };
  const known = await services.load.instance(key);
  if (known === undefined) throw new InstanceNotFoundError(instanceId);
  const { workflowId, workflowVersion } = known;
  const { definition } = await services.definitions.get(tenantId, workflowId, workflowVersion);
  if (fromStepId !== undefined) checkStep(definition, fromStepId);
  const timers = known.pause === null ? [] : await heldTimers(services, key);
  return intervene(services, caller, instanceId, {
    ifMatch,
    inbox: true,
    signals: (snapshot, inbox) => {
      const refusal = retryRefusal(snapshot);
      if (refusal !== undefined) throw new RetryRefusedError(instanceId, refusal);
      const intervention = snapshot.interventions + 1;
      const isPaused = snapshot.pause !== null;
      const { cancels, held } = heldBack(isPaused ? inbox : [], isPaused ? timers : []);
      return [
        ...cancels,
        {
          kind: "retryRequested",
          intervention,
          actor,
          reason,
          fromStepId: fromStepId ?? null,
          ...(isPaused && { held }),
        },
      ];
    },
    // A wait that looks back is not to take what the instance has had already.
    within: async (trx) => {
      await check?.(trx);
      await restoreDeliveries(trx, key);
    },
  });
}

function checkStep({ id, version, steps }: Definition, stepId: string): void {
  const step = steps.get(stepId);
  if (step === undefined) {
    throw new UnknownStepError(`version ${version} of "${id}" has no step "${stepId}"`);
  }
  const [outermost] = step.lineage;
  if (outermost === undefined) return;
  throw new UnknownStepError(
    `step "${stepId}" is inside of "${outermost.stepId}": an instance goes on from a step of the definition's own list`,
  );
}
