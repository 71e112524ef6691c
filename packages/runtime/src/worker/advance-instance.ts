import { isSettled } from "@millrace/engine";
import type { AdvanceJob, Running } from "@millrace/queue";
import { forgetDeliveries } from "@millrace/store";
import type { ChildSignal } from "@millrace/store";
import { advance } from "../advance.ts";
import type { Intent } from "../advance.ts";
import { handOnReleased } from "../events/hand-on.ts";
import { signalsOf } from "../events/inbox.ts";
import { childSignalsOf, forgetTold, loadTold, tellsOfChild } from "../instances/children.ts";
import { perform } from "../perform.ts";
import { carryOn } from "./carry-on.ts";
import type { Held } from "./held.ts";
import { nextStep } from "./next-step.ts";
import type { NextStep } from "./next-step.ts";
import { persistently } from "./persist.ts";
import type { WorkerState } from "./worker-state.ts";

/**
 * Applies what waits for an instance, the events that its waits were matched with and the ends of its
 * children, and goes on with the step that follows, where this worker has a slot free for it.
 */
export async function advanceInstance(
  worker: WorkerState,
  job: AdvanceJob,
  jobId: string,
): Promise<Running | void> {
  const held = tellsOfChild(job)
    ? await applyEnds(worker, job, jobId)
    : await apply(worker, job, jobId, []);
  if (held) return { ended: carryOn(worker, held, jobId) };
}

/** Children that end at the same time have a job each; one of them takes all of the ends along. */
async function applyEnds(
  worker: WorkerState,
  job: AdvanceJob,
  jobId: string,
): Promise<Held | undefined> {
  let held: Held | undefined;
  await worker.takeEnds(`${job.tenantId}/${job.instanceId}`, async () => {
    const told = await loadTold(worker.services, job);
    if (told.length > 0) held = await apply(worker, job, jobId, told);
  });
  return held;
}

/** The step that follows, if this worker holds it now. */
async function apply(
  worker: WorkerState,
  job: AdvanceJob,
  jobId: string,
  told: readonly ChildSignal[],
): Promise<Held | undefined> {
  const { services } = worker;
  const { tenantId, instanceId } = job;
  let next: NextStep | undefined;
  const intent: Intent = {
    actor: told.length > 0 ? "child" : "event",
    cause: "event",
    inbox: true,
    signals: (_snapshot, inbox) => [...signalsOf(inbox), ...childSignalsOf(told)],
    extend: (commit, definition, mayCarry) => {
      next =
        mayCarry && worker.hasFreeSlot()
          ? nextStep(worker, definition, commit.decision, jobId)
          : undefined;
      const carry = next === undefined ? [] : [next.carry];
      return { ...commit, carry, ...(told.length > 0 && { received: told }) };
    },
  };
  const advanced = await persistently(services.log, () =>
    advance(services, { tenantId, instanceId }, intent),
  );
  if (advanced.kind === "void" && isSettled(advanced.snapshot)) {
    const { db } = services.database;
    const key = { tenantId, instanceId };
    await persistently(services.log, () => forgetDeliveries(db, key));
    await persistently(services.log, () => handOnReleased(services, key));
  }
  if (advanced.kind !== "committed") {
    await forgetTold(services, job, told);
    return undefined;
  }
  const held = next && worker.hold(next.step);
  await perform(services, advanced.commit);
  return held;
}
