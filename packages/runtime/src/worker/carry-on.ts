import { mergeReads, pathOfStep } from "@millrace/engine";
import type { Reads } from "@millrace/engine";
import { loadReads } from "@millrace/store";
import { giveUp } from "./give-up.ts";
import { heldStepOf } from "./held.ts";
import type { Held } from "./held.ts";
import { runAttempt } from "./run-attempt.ts";
import type { AttemptSignal } from "./run-attempt.ts";
import { settleResult } from "./settle-result.ts";
import { abortIfLost } from "./watch.ts";
import type { WorkerState } from "./worker-state.ts";

/**
 * Runs a held step, commits its outcome, and goes on with the step that follows, as long as this
 * worker may: the commit that settles step n inserts step n + 1 already held, so that a chain costs
 * one statement a step and no job (DESIGN, Carry-on).
 */

/** Bounds of one chain, so that no instance keeps a slot for itself. */
const maxChainSteps = 1_000;
const maxChainMs = 10_000;

export async function carryOn(worker: WorkerState, first: Held, carrier: string): Promise<void> {
  const until = performance.now() + maxChainMs;
  let held: Held | undefined = first;
  for (let steps = 1; held !== undefined; steps++) {
    const goOn = steps < maxChainSteps && performance.now() < until;
    held = await runAndCommit(worker, held, carrier, goOn);
  }
}

/** The step that follows, if this worker holds it now. */
async function runAndCommit(
  worker: WorkerState,
  held: Held,
  carrier: string,
  goOn: boolean,
): Promise<Held | undefined> {
  const { metrics } = worker.services;
  worker.holdings.add(held);
  try {
    const startedAt = performance.now();
    if (startedAt - held.since > freshMs) await abortIfLost(worker, held);
    // Only to save time: what is missing is loaded when the decision asks for it.
    const prefetching = prefetch(worker, held)?.catch(() => held.reads);
    const signal = await runAttempt(held, shown(worker, held));
    const reads = await prefetching;
    if (signal === undefined) {
      metrics.voidResults.add({ reason: "aborted" });
      return undefined;
    }
    count(worker, held, signal, startedAt);
    return await settleResult(worker, {
      held: reads === undefined ? held : { ...held, reads },
      signal,
      carrier,
      goOn,
    });
  } catch (error) {
    await giveUp(worker.services, held.workerId, heldStepOf(held), error);
    throw error;
  } finally {
    worker.holdings.remove(held);
  }
}

/** Not for longer: after it the row may be settled while the answer is on its way. */
function shown(worker: WorkerState, { snapshot, step }: Held): () => void {
  const { path, iteration, fence } = step;
  return worker.shows({ instanceId: snapshot.id, path, iteration, fence });
}

/**
 * What has taken longer to come to its run, since a service was away meanwhile, is looked at once more:
 * after a cancel no step begins, be its row ever so much ours (P11).
 */
const freshMs = 1_000;

const outcomes = {
  stepSucceeded: "completed",
  stepFailed: "failed",
  attemptTimedOut: "timed_out",
} as const satisfies Record<AttemptSignal["kind"], string>;

function count(
  { services: { metrics } }: WorkerState,
  { snapshot: { workflowId }, step: { stepId, taskId: task } }: Held,
  { kind }: AttemptSignal,
  startedAt: number,
): void {
  metrics.stepDuration.observe({ task }, (performance.now() - startedAt) / 1_000);
  metrics.steps.add({ task, outcome: outcomes[kind] });
  if (kind !== "stepSucceeded") metrics.errors.add({ workflow: workflowId, step: stepId });
}

/** Loads, while the task runs, the rows that the decision after it may read; undefined where all are there. */
function prefetch({ services }: WorkerState, held: Held): Promise<Reads> | undefined {
  const step = held.definition.steps.get(held.step.stepId);
  const wanted = step === undefined || held.step.compensates !== null ? [] : step.reads;
  if (wanted === "ALL" || wanted.length === 0) return undefined;
  const { path: from } = held.step;
  const requests = wanted
    .flatMap((stepId) => pathOfStep(held.definition, stepId, from) ?? [])
    .filter((path) => path !== held.step.path && !held.reads.latest.has(path))
    .map((path) => ({ kind: "latest", path }) as const);
  if (requests.length === 0) return undefined;
  const key = { tenantId: held.snapshot.tenantId, instanceId: held.snapshot.id };
  return loadReads(services.database.db, key, requests).then((loaded) =>
    mergeReads(held.reads, loaded),
  );
}
