import { mergeReads, noReads } from "@millrace/engine";
import type { Decision, ExecutionRead, Reads, Signal } from "@millrace/engine";
import { DataRefusedError, loadInbox, loadInstance, loadReads } from "@millrace/store";
import type { Commit, Key } from "@millrace/store";
import { decideLoading } from "../advance.ts";
import { signalsOf } from "../inbox.ts";
import { perform } from "../perform.ts";
import type { Services } from "../services.ts";
import type { Held } from "./held.ts";
import { nextStep } from "./next-step.ts";
import { retryPolicyOf, runAttempt } from "./run-attempt.ts";
import type { AttemptSignal } from "./run-attempt.ts";
import { persistently } from "./persist.ts";
import type { WorkerState } from "./worker-state.ts";

/**
 * Runs a held step, commits its outcome, and goes on with the step that follows, as long as this
 * worker may: the commit that settles step n inserts step n + 1 already held, so that a chain costs
 * one statement a step and no job (DESIGN, Carry-on).
 */

/** Bounds of one chain, so that no instance keeps a slot for itself. */
const maxChainSteps = 1_000;
const maxChainMs = 10_000;

/** Outputs kept in memory along a chain for the steps that read them; the rest is loaded again. */
const keptOutputs = 100;

export async function carryOn(worker: WorkerState, first: Held, carrier: string): Promise<void> {
  const until = performance.now() + maxChainMs;
  let held: Held | undefined = first;
  for (let steps = 1; held !== undefined; steps++) {
    const goOn = steps < maxChainSteps && performance.now() < until && !worker.closing;
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
  const startedAt = performance.now();
  try {
    const [signal, reads] = await Promise.all([
      runAttempt(held),
      // Only to save time: what is missing is loaded when the decision asks for it.
      prefetch(worker, held).catch(() => held.reads),
    ]);
    if (signal === undefined) {
      metrics.voidResults.add({ reason: "aborted" });
      return undefined;
    }
    count(worker, held, signal, startedAt);
    return await commitResult(worker, { ...held, reads }, signal, carrier, goOn);
  } finally {
    worker.holdings.remove(held);
  }
}

const outcomes = {
  stepSucceeded: "completed",
  stepFailed: "failed",
  attemptTimedOut: "timed_out",
} as const satisfies Record<AttemptSignal["kind"], string>;

function count(
  { services: { metrics } }: WorkerState,
  { call: { taskId: task }, snapshot: { workflowId }, step: { stepId } }: Held,
  { kind }: AttemptSignal,
  startedAt: number,
): void {
  metrics.stepDuration.observe({ task }, (performance.now() - startedAt) / 1_000);
  metrics.steps.add({ task, outcome: outcomes[kind] });
  if (kind !== "stepSucceeded") metrics.errors.add({ workflow: workflowId, step: stepId });
}

/** Loads, while the task runs, the rows that the decision after it may read. */
async function prefetch({ services }: WorkerState, held: Held): Promise<Reads> {
  const step = held.definition.steps.get(held.step.stepId);
  const wanted = step === undefined || held.step.compensates !== null ? [] : step.reads;
  if (wanted === "ALL") return held.reads;
  const requests = wanted
    .filter((path) => path !== held.step.path && !held.reads.latest.has(path))
    .map((path) => ({ kind: "latest", path }) as const);
  if (requests.length === 0) return held.reads;
  const key = { tenantId: held.snapshot.tenantId, instanceId: held.snapshot.id };
  return mergeReads(held.reads, await loadReads(services.database.db, key, requests));
}

/** Tries until the result is committed or void: a task's result is never given up. */
async function commitResult(
  worker: WorkerState,
  held: Held,
  result: AttemptSignal,
  carrier: string,
  goOn: boolean,
): Promise<Held | undefined> {
  const { services } = worker;
  const { workerId } = held;
  let signal = result;
  const key: Key = { tenantId: held.snapshot.tenantId, instanceId: held.snapshot.id };
  let { snapshot, reads } = held;
  let signals: readonly Signal[] = [signal];
  for (let attempt = 0; ; attempt++) {
    const at = services.clock.now();
    const [from, folded, known] = [snapshot, signals, reads];
    const decided = await persistently(services.log, () =>
      decideLoading(services.database.db, key, held.definition, from, folded, known, at),
    );
    const { decision } = decided;
    if (decision.snapshot === snapshot) return dropped(worker, held);
    // Under a former id nothing new is begun: others may have all that it held.
    const next =
      goOn && workerId === worker.id
        ? nextStep(worker, held.definition, decision, carrier)
        : undefined;
    const commit: Commit = {
      previous: snapshot,
      decision,
      signals,
      at,
      actor: `worker:${workerId}`,
      holds: [
        { path: held.step.path, iteration: held.step.iteration, fence: held.step.fence, workerId },
      ],
      carry: next === undefined ? [] : [next.carry],
    };
    const outcome = await worker.submit(commit, attempt).catch(refusalOf);
    if (outcome instanceof DataRefusedError) {
      // What is refused even so is not the result's doing.
      if (signal.kind === "stepFailed" && signal.failure.type === refusedType) throw outcome;
      signal = refused(held, outcome);
      signals = [...signals.slice(0, -1), signal];
      continue;
    }
    if (outcome.kind === "committed") {
      await perform(services, commit);
      return (
        next && worker.hold({ ...next.step, reads: rememberRows(decided.reads, decision, held) })
      );
    }
    if (outcome.kind === "void") return dropped(worker, held);
    services.metrics.commitConflicts.add({ cause: "result" });
    const fresh = await persistently(services.log, () => loadAnew(services, key));
    if (fresh === undefined) return dropped(worker, held);
    snapshot = fresh.snapshot;
    // What events have taken comes before the result: the decision may be waiting for it.
    signals = [...signalsOf(fresh.inbox), signal];
    reads = noReads;
  }
}

const refusedType = "OUTPUT_REFUSED";

function refusalOf(error: unknown): DataRefusedError {
  if (error instanceof DataRefusedError) return error;
  throw error;
}

/** Postgres takes everything about this result but its values: the step fails, and nobody else's. */
function refused(held: Held, { message }: DataRefusedError): AttemptSignal {
  const { path, iteration, attempt } = held.step;
  const failure = { type: refusedType, message, details: null, retryable: false };
  return { kind: "stepFailed", path, iteration, attempt, failure, retry: retryPolicyOf(held) };
}

async function loadAnew({ database: { db } }: Services, key: Key) {
  const snapshot = await loadInstance(db, key);
  return snapshot && { snapshot, inbox: await loadInbox(db, key) };
}

function dropped({ services }: WorkerState, { step, snapshot }: Held): undefined {
  services.metrics.voidResults.add({ reason: "fenced" });
  services.log.info(
    { instanceId: snapshot.id, stepId: step.stepId, attempt: step.attempt },
    "the result no longer counts: the step is held by somebody else, or has ended",
  );
}

/** Adds what the commit wrote to what the chain knows, so that the next decision need not load it. */
function rememberRows(reads: Reads, decision: Decision, held: Held): Reads {
  if (reads.latest.size > keptOutputs) return noReads;
  const latest = new Map(reads.latest);
  for (const row of decision.inserts) latest.delete(row.path);
  for (const update of decision.updates) {
    latest.delete(update.path);
    if (update.path !== held.step.path || update.status !== "COMPLETED") continue;
    latest.set(update.path, readOf(held, update));
  }
  return { latest, executions: new Map(), all: false };
}

function readOf({ step, call }: Held, update: Decision["updates"][number]): ExecutionRead {
  const { path, iteration, status, attempt, output, error, completion } = update;
  const { stepId, fence } = step;
  const { queue } = call;
  return {
    stepId,
    path,
    iteration,
    status,
    attempt,
    fence,
    output,
    outputLeftOut: false,
    error,
    completion,
    queue,
  };
}
