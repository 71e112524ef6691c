import { canCancel, previewCompensation } from "@millrace/engine";
import type { CompensationPreview, Definition, Snapshot } from "@millrace/engine";
import { loadInstance, loadReads } from "@millrace/store";
import { answerLoading } from "../answer.ts";
import { InstanceNotFoundError } from "../errors.ts";
import type { Caller, Services } from "../services.ts";

export interface CompensationPlan {
  readonly snapshot: Snapshot;
  readonly definition: Definition;
  /** Whether a cancel is possible in its status. */
  readonly cancellable: boolean;
  readonly preview: CompensationPreview;
}

/** Inputs that are worked out: each may hold the whole state of the instance. */
const maxInputs = 500;

/**
 * What a cancel would do now. The instance and its rows are read as they are at one moment, so that
 * they fit each other; nothing is written.
 *
 * @throws InstanceNotFoundError
 */
export async function planCompensation(
  services: Services,
  { tenantId, actor }: Caller,
  instanceId: string,
  reason: string | null = null,
): Promise<CompensationPlan> {
  const key = { tenantId, instanceId };
  const now = services.clock.now();
  return services.database.db
    .transaction()
    .setIsolationLevel("repeatable read")
    .setAccessMode("read only")
    .execute(async (trx) => {
      const snapshot = await loadInstance(trx, key);
      if (snapshot === undefined) throw new InstanceNotFoundError(instanceId);
      const { workflowId, workflowVersion } = snapshot;
      const { definition } = await services.definitions.get(tenantId, workflowId, workflowVersion);
      const options = { reason, actor, maxInputs };
      const { answer: preview } = await answerLoading(
        `instance ${instanceId}, preview`,
        (reads) => previewCompensation(definition, snapshot, reads, now, options),
        (requests) => loadReads(trx, key, requests),
      );
      return { snapshot, definition, cancellable: canCancel(snapshot), preview };
    });
}
