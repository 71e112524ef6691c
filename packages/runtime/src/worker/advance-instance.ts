import type { AdvanceJob } from "@millrace/queue";
import { advance } from "../advance.ts";
import type { Intent } from "../advance.ts";
import { signalsOf } from "../inbox.ts";
import { perform } from "../perform.ts";
import { carryOn } from "./carry-on.ts";
import { nextStep } from "./next-step.ts";
import type { NextStep } from "./next-step.ts";
import { persistently } from "./persist.ts";
import type { WorkerState } from "./worker-state.ts";

/**
 * Applies what waits for an instance, the events that its waits were matched with, and goes on with
 * the step that follows, where this worker has a slot free for it.
 */
export async function advanceInstance(
  worker: WorkerState,
  job: AdvanceJob,
  jobId: string,
): Promise<void> {
  const { services } = worker;
  const { tenantId, instanceId } = job;
  let next: NextStep | undefined;
  const intent: Intent = {
    actor: "event",
    cause: "event",
    inbox: true,
    signals: (_snapshot, inbox) => signalsOf(inbox),
    extend: (commit, definition) => {
      next = worker.hasFreeSlot()
        ? nextStep(worker, definition, commit.decision, jobId)
        : undefined;
      return next === undefined ? commit : { ...commit, carry: [next.carry] };
    },
  };
  const advanced = await persistently(services.log, () =>
    advance(services, { tenantId, instanceId }, intent),
  );
  if (advanced.kind !== "committed") return;
  const held = next && worker.hold(next.step);
  await perform(services, advanced.commit);
  if (held) await carryOn(worker, held, jobId);
}
