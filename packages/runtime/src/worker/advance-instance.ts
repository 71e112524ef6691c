import type { AdvanceJob } from "@millrace/queue";
import { advance } from "../advance.ts";
import type { Intent } from "../advance.ts";
import { signalsOf } from "../inbox.ts";
import { perform } from "../perform.ts";
import { persistently } from "./persist.ts";
import type { WorkerState } from "./worker-state.ts";

/**
 * Applies what waits for an instance: the events that its waits were matched with. The step that
 * follows goes to a job.
 */
export async function advanceInstance(
  worker: WorkerState,
  job: AdvanceJob,
  _jobId: string,
): Promise<void> {
  const { tenantId, instanceId } = job;
  const intent: Intent = {
    actor: "event",
    cause: "event",
    inbox: true,
    signals: (_snapshot, inbox) => signalsOf(inbox),
  };
  const advanced = await persistently(worker.services.log, () =>
    advance(worker.services, { tenantId, instanceId }, intent),
  );
  if (advanced.kind === "committed") await perform(worker.services, advanced.commit);
}
