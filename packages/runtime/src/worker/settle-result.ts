import { decide, executionKey, noReads, taskCalled } from "@millrace/engine";
import type { Decision, ExecutionRead, Reads, Signal, Snapshot } from "@millrace/engine";
import { DataRefusedError, loadInbox, loadInstance } from "@millrace/store";
import type { Commit, Key } from "@millrace/store";
import { answerLoading } from "../answer.ts";
import { signalsOf } from "../events/inbox.ts";
import { loadRows } from "../load-rows.ts";
import { perform } from "../perform.ts";
import type { Services } from "../services.ts";
import type { Held } from "./held.ts";
import { nextSteps } from "./next-step.ts";
import type { NextStep } from "./next-step.ts";
import { persistently } from "./persist.ts";
import { retryPolicyOf } from "./run-attempt.ts";
import type { AttemptSignal } from "./run-attempt.ts";
import type { WorkerState } from "./worker-state.ts";

/**
 * Commits what held steps came to, and takes up the steps that follow.
 *
 * A lone result is committed at once. Those of branches of one instance that come while a commit of it
 * is under way wait for that one and then travel together: one decision for all of them, where each by
 * itself would find that another was first.
 */

/** What an attempt came to, and whether its chain may go on. */
export interface Result {
  readonly held: Held;
  readonly signal: AttemptSignal;
  readonly carrier: string;
  readonly goOn: boolean;
}

interface Waiting extends Result {
  readonly resolve: (next: Held | undefined) => void;
  readonly reject: (error: unknown) => void;
}

/** Results that one decision takes at most, so that its commit stays small. */
const mostTogether = 100;

/** Outputs kept in memory along a chain for the steps that read them; the rest is loaded again. */
const keptOutputs = 100;

/**
 * Instances with several branches of which a worker keeps what it committed last. Its next commit goes
 * from there without asking, and should another worker have been first, the version says so.
 */
const mostRemembered = 20;

const remembered = new WeakMap<WorkerState, Map<string, Snapshot>>();

/** By worker and instance, what waits for the commit that is under way. */
const waiting = new WeakMap<WorkerState, Map<string, Waiting[]>>();

/** Tries until the result is committed or void: a task's result is never given up. */
export async function settleResult(worker: WorkerState, result: Result): Promise<Held | undefined> {
  const instances = waiting.get(worker) ?? new Map<string, Waiting[]>();
  waiting.set(worker, instances);
  const name = nameOf(result);
  const company = instances.get(name);
  if (company !== undefined) {
    return new Promise((resolve, reject) => company.push({ ...result, resolve, reject }));
  }
  const queue: Waiting[] = [];
  instances.set(name, queue);
  try {
    const [next] = await commitTogether(worker, [result], recall(worker, [result]));
    return next;
  } finally {
    if (queue.length === 0) instances.delete(name);
    else void settleWaiting(worker, queue, () => instances.delete(name));
  }
}

async function settleWaiting(
  worker: WorkerState,
  queue: Waiting[],
  done: () => void,
): Promise<void> {
  while (queue.length > 0) {
    const together = queue.splice(0, mostTogether);
    try {
      const [first] = together as [Waiting];
      const fresh = recall(worker, together) ?? (await loadAnew(worker.services, keyOf(first)));
      const next = await commitTogether(worker, together, fresh);
      for (const [index, { resolve }] of together.entries()) resolve(next[index]);
    } catch (error) {
      for (const { reject } of together) reject(error);
    }
  }
  done();
}

/** Not where a result is of a later version: its step may have begun after what is remembered. */
function recall(worker: WorkerState, results: readonly Result[]): Fresh | undefined {
  const [first] = results;
  const snapshot = first && remembered.get(worker)?.get(nameOf(first));
  if (snapshot === undefined) return undefined;
  const isLater = ({ held }: Result) => held.snapshot.version > snapshot.version;
  return results.some(isLater) ? undefined : { snapshot, signals: [] };
}

function remember(worker: WorkerState, result: Result, snapshot: Snapshot): void {
  const instances = remembered.get(worker) ?? new Map<string, Snapshot>();
  remembered.set(worker, instances);
  forget(worker, result);
  if (Object.keys(snapshot.live).length < 2) return;
  instances.set(nameOf(result), snapshot);
  const [oldest] = instances.keys();
  if (instances.size > mostRemembered && oldest !== undefined) instances.delete(oldest);
}

function forget(worker: WorkerState, result: Result): void {
  remembered.get(worker)?.delete(nameOf(result));
}

function nameOf({ held: { snapshot } }: Result): string {
  return `${snapshot.tenantId}/${snapshot.id}`;
}

interface Fresh {
  readonly snapshot: Snapshot;
  readonly signals: readonly Signal[];
}

/**
 * @param fresh What is stored now; undefined: the results are of the snapshot that they were held with.
 * @returns For each of the results the step with which its chain goes on.
 */
async function commitTogether(
  worker: WorkerState,
  given: readonly Result[],
  fresh: Fresh | undefined,
): Promise<readonly (Held | undefined)[]> {
  const { services } = worker;
  let results = given;
  let from = fresh;
  let mayCarry = true;
  for (let attempt = 0; ; attempt++) {
    const [first] = results;
    if (first === undefined) return [];
    const key = keyOf(first);
    const { definition } = first.held;
    const isLone = from === undefined;
    const { snapshot, signals: before } = from ?? { snapshot: first.held.snapshot, signals: [] };
    const signals = [...before, ...results.map(({ signal }) => signal)];
    const known = isLone ? first.held.reads : noReads;
    const at = services.clock.now();
    const { answer: decision, reads } = await answerLoading(
      `instance ${key.instanceId}`,
      (rows) => decide(definition, snapshot, signals, rows, at),
      (requests) => persistently(services.log, () => loadRows(services.database.db, key, requests)),
      known,
    );
    if (decision.snapshot === snapshot) {
      forget(worker, first);
      return results.map(({ held }) => dropped(worker, held));
    }
    const next = mayCarry ? followers(worker, results, decision) : results.map(() => undefined);
    const commit: Commit = {
      previous: snapshot,
      decision,
      signals,
      at,
      actor: `worker:${first.held.workerId}`,
      holds: results.map(({ held: { step, workerId } }) => ({
        path: step.path,
        iteration: step.iteration,
        fence: step.fence,
        workerId,
      })),
      carry: next.flatMap((each) => each?.carry ?? []),
    };
    const outcome = await worker.submit(commit, attempt).catch(refusalOf);
    if (outcome instanceof DataRefusedError) {
      if (results.length > 1) return oneByOne(worker, results);
      results = [refused(first, outcome)];
      continue;
    }
    if (outcome.kind === "committed") {
      remember(worker, first, decision.snapshot);
      await perform(services, commit);
      const rows = rememberRows(reads, decision, first.held);
      return next.map((each) => each && worker.hold(each.step, rows));
    }
    forget(worker, first);
    // One of them is no longer held: the others are as good as ever.
    if (outcome.kind === "void") {
      return results.length > 1
        ? oneByOne(worker, results)
        : results.map(({ held }) => dropped(worker, held));
    }
    services.metrics.commitConflicts.add({ cause: "result" });
    if (outcome.kind === "queuePaused") mayCarry = false;
    from = await loadAnew(services, key);
    if (from === undefined) return results.map(({ held }) => dropped(worker, held));
  }
}

async function oneByOne(
  worker: WorkerState,
  results: readonly Result[],
): Promise<readonly (Held | undefined)[]> {
  const next: (Held | undefined)[] = [];
  for (const result of results) {
    const fresh = await loadAnew(worker.services, keyOf(result));
    next.push(...(await commitTogether(worker, [result], fresh)));
  }
  return next;
}

/** One next step at most for each chain that may go on. */
function followers(
  worker: WorkerState,
  results: readonly Result[],
  decision: Decision,
): readonly (NextStep | undefined)[] {
  // Under a former id nothing new is begun: others may have all that it held.
  // A worker that has been asked to end meanwhile would only have to hand the next step over.
  const mayGoOn = ({ goOn, held }: Result) => goOn && held.workerId === worker.id;
  const going = worker.closing ? [] : results.filter(mayGoOn);
  const [first] = going;
  if (first === undefined) return results.map(() => undefined);
  const carriers = going.map(({ carrier }) => carrier);
  const steps = nextSteps(worker, first.held.definition, decision, carriers);
  return results.map((result) => steps[going.indexOf(result)]);
}

function keyOf({ held: { snapshot } }: Result): Key {
  return { tenantId: snapshot.tenantId, instanceId: snapshot.id };
}

function refusalOf(error: unknown): DataRefusedError {
  if (error instanceof DataRefusedError) return error;
  throw error;
}

const refusedType = "OUTPUT_REFUSED";

/** Postgres takes everything about this result but its values: the step fails, and nobody else's. */
function refused(result: Result, error: DataRefusedError): Result {
  const { held, signal } = result;
  // What is refused even so is not the result's doing.
  if (signal.kind === "stepFailed" && signal.failure.type === refusedType) throw error;
  const { path, iteration, attempt } = held.step;
  const { message } = error;
  const failure = { type: refusedType, message, details: null, retryable: false };
  const retry = retryPolicyOf(held);
  return { ...result, signal: { kind: "stepFailed", path, iteration, attempt, failure, retry } };
}

/** What events have taken comes before the results: the decision may be waiting for it. */
async function loadAnew(services: Services, key: Key): Promise<Fresh | undefined> {
  const { db } = services.database;
  return persistently(services.log, async () => {
    const snapshot = await loadInstance(db, key);
    return snapshot && { snapshot, signals: signalsOf(await loadInbox(db, key)) };
  });
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
  const { inputs } = reads;
  if (reads.latest.size > keptOutputs) return { ...noReads, inputs };
  const latest = new Map(reads.latest);
  for (const row of decision.inserts) latest.delete(row.path);
  for (const update of decision.updates) {
    latest.delete(update.path);
    if (update.path !== held.step.path || update.status !== "COMPLETED") continue;
    latest.set(update.path, readOf(held, update));
  }
  return { ...noReads, latest, inputs };
}

function readOf(held: Held, update: Decision["updates"][number]): ExecutionRead {
  const { path, iteration, status, attempt, output, error, completion } = update;
  const { stepId, fence } = held.step;
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
    entry: null,
    queue: queueOf(held),
  };
}

function queueOf({ call, snapshot, step: { path, iteration } }: Held): string {
  return taskCalled(call, snapshot.live[executionKey(path, iteration)] ?? {}).queue;
}
