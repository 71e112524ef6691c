import { hostname } from "node:os";
import { noReads } from "@millrace/engine";
import type { Reads } from "@millrace/engine";
import type { AdvanceJob, Consumer, Handler, Running, StepJob } from "@millrace/queue";
import {
  blockStep,
  claimSteps,
  forgetWorker,
  noteWentOn,
  lookAtOnce,
  registerWorker,
  releaseSteps,
  setAside,
  unblockSteps,
} from "@millrace/store";
import type { Claimed, ClaimRequest } from "@millrace/store";
import { groupCalls } from "../group.ts";
import { newWorkerId } from "../ids.ts";
import { enqueueDue } from "../perform.ts";
import type { Services } from "../services.ts";
import { shareCalls } from "../share-calls.ts";
import { openAbort } from "./abort.ts";
import { advanceInstance } from "./advance-instance.ts";
import { undoChangeToAllObjects } from "./all-objects.ts";
import { openBeatThread } from "./beat.ts";
import type { Beat } from "./beat.ts";
import { carryOn } from "./carry-on.ts";
import { takeFromKeeper } from "./cell.ts";
import type { Keeper } from "./cell.ts";
import type { CellProgram } from "./cell-process.ts";
import { availableBytes, cellsFor, openCells } from "./cells.ts";
import type { Cells } from "./cells.ts";
import { giveUp } from "./give-up.ts";
import { heldStepOf } from "./held.ts";
import type { Held } from "./held.ts";
import { openHoldings } from "./holdings.ts";
import { loadTasks } from "./load-tasks.ts";
import { persistently, persistentlyFor } from "./persist.ts";
import { openProgress } from "./progress.ts";
import { startQueuePauses } from "./queue-pauses.ts";
import { taskRegistry } from "./task-registry.ts";
import { startWatch } from "./watch.ts";
import type { StepToHold, WorkerState } from "./worker-state.ts";

export interface WorkerOptions {
  /** Files or folders of task modules. */
  readonly tasks: readonly string[];
  readonly queues: readonly string[];
  /** Hosts, addresses and ranges that `http.request` may reach beside public ones. */
  readonly httpAllow?: readonly string[];
  /** Steps that run at once. */
  readonly concurrency: number;
  /** Milliseconds that running steps get at shutdown before they are handed back. */
  readonly graceMs: number;
  /**
   * So that suspects and isolated tasks run in processes of their own (cells.ts). Absent where the process is
   * not the worker's alone: they run in it, one at a time.
   */
  readonly program?: CellProgram;
  /** Opened before the services are; by the worker itself when absent. */
  readonly beat?: Beat;
  /** Such processes that it has at a time for each of its queues; as the memory allows when absent. */
  readonly cells?: number;
  /** Of such a process: it takes steps from the worker that started it, and from nobody else. */
  readonly keeper?: Keeper;
}

export interface RunningWorker {
  readonly id: string;
  close(): Promise<void>;
}

/**
 * Pulls jobs and runs the steps that they point at, until it is closed. Stateless: what it holds is
 * in the step rows, and another worker takes that over when its beat stops.
 *
 * @throws Error naming every task module that could not be loaded.
 */
export async function runWorker(
  services: Services,
  options: WorkerOptions,
): Promise<RunningWorker> {
  const { concurrency, graceMs, program, keeper } = options;
  // A cell carries nothing on, since it serves no queue.
  const queues = keeper === undefined ? options.queues : [];
  const { database, queue, log } = services;
  const beat = options.beat ?? openBeatThread(database.url, { isKilled: false });
  const tasks = await loadTasks(options.tasks, (message) => log.warn({}, message));
  const registry = taskRegistry(tasks, options.httpAllow);
  const holdings = openHoldings();
  const progress = openProgress(services);
  const worker: WorkerState = {
    id: newWorkerId(),
    renewal: undefined,
    closing: false,
    services,
    registry,
    queues,
    cells: program === undefined ? 1 : (options.cells ?? cellsFor(availableBytes())),
    holdings,
    submit: (commit) => persistently(log, () => services.commit(commit)),
    concurrency,
    hasFreeSlot: () =>
      !worker.closing && worker.renewal === undefined && holdings.size < concurrency,
    takeEnds: shareCalls(),
    shows: beat.shows,
    hold: (step, reads = noReads) => holdStep(worker, step, reads, progress),
  };

  await register(worker);
  await beat.start(worker.id, async () => {
    log.warn("the beat was silent for too long; taking a new id");
    const renewal = takeNewId(worker);
    worker.renewal = renewal;
    await renewal;
    worker.renewal = undefined;
    return worker.id;
  });
  // Not before the beat, however many steps there are: a worker that is registered and silent counts as gone.
  await unblockSteps(database.db, [...registry.keys()]);
  const watch = startWatch(worker);
  const claim = groupedClaim(services);

  const cells = program === undefined ? undefined : openCells(services, { program, graceMs });
  const runHere = guarded(services, (job: StepJob, jobId) => runStep(worker, claim, job, jobId));
  const runAlone = cells === undefined ? runHere : guarded(services, runIn(worker, cells));
  const runShared: Handler<StepJob> = (job, jobId) =>
    isIsolated(worker, job) ? passOn(job, jobId) : runHere(job, jobId);
  const passOn = guarded(services, (job: StepJob) => sendToCells(services, job));
  const advance = guarded(services, (job: AdvanceJob, jobId) =>
    advanceInstance(worker, job, jobId),
  );
  const ofQueues = new Map(
    [...new Set(queues)].map((name) => [
      name,
      [
        queue.consumeSteps(name, { concurrency }, runShared),
        queue.consumeSteps(name, { concurrency: worker.cells, isolated: true }, runAlone),
      ],
    ]),
  );
  const pauses = startQueuePauses(services, ofQueues);
  const consumers: Consumer[] = keeper
    ? [takeFromKeeper(keeper, worker, runHere)]
    : [...[...ofQueues.values()].flat(), queue.consumeAdvance({ concurrency }, advance)];
  log.info(
    { workerId: worker.id, tasks: [...registry.keys()], queues, concurrency },
    "worker started",
  );
  if (program === undefined && keeper === undefined) tellWhatIsNotIsolated(worker);

  return {
    get id() {
      return worker.id;
    },
    async close() {
      worker.closing = true;
      const askedAt = performance.now();
      // They have the same grace.
      const cellsEnded = cells?.close();
      const pausesEnded = pauses.stop();
      await Promise.all(consumers.map((consumer) => consumer.pause()));
      await finishWithin(worker, consumers, graceMs);
      await handBack(worker, askedAt);
      await cellsEnded;
      await pausesEnded;
      await watch.stop();
      await progress.close();
      await Promise.all(consumers.map((consumer) => consumer.close(true)));
      await beat.stop();
      await persistentlyFor(log, partingMs, () => forgetWorker(database.db, worker.id));
      log.info({ workerId: worker.id }, "worker stopped");
    },
  };
}

async function register(worker: WorkerState): Promise<void> {
  const { id, registry, queues, cells, concurrency, services } = worker;
  const { db } = services.database;
  const tasks = [...registry.keys()];
  await registerWorker(db, {
    id,
    host: hostname(),
    pid: process.pid,
    tasks,
    isolatedTasks: tasks.filter((task) => registry.get(task)?.isIsolated),
    queues,
    cells: queues.length > 0 ? cells : null,
    concurrency: queues.length > 0 ? concurrency : null,
  });
}

async function takeNewId(worker: WorkerState): Promise<void> {
  const { services, holdings } = worker;
  const { database, log } = services;
  const former = worker.id;
  worker.id = newWorkerId();
  // Before their handlers hear of it: what a handler makes of its abort is not the step's failure.
  const released = await persistently(log, () => releaseSteps(database.db, former));
  holdings.abortOf(former, "the worker was away too long; others have its steps");
  await enqueueDue(services, released);
  await persistently(log, () => register(worker));
  // The new id is to beat at once: whatever keeps the former one's row, a lock on it say, is not waited for.
  persistently(log, () => noteWentOn(database.db, former)).catch((error: unknown) =>
    log.warn(
      { err: error, workerId: former },
      "the silence of this worker under its former id counts as a death",
    ),
  );
}

/** A handler that fails is a fault of ours or of a service: the row stays, and is found again. */
function guarded<J extends { readonly instanceId: string }>(
  { log }: Services,
  handle: Handler<J>,
): Handler<J> {
  return async (job, jobId) => {
    const failed = (error: unknown) =>
      log.error(
        { err: error, jobId, instanceId: job.instanceId },
        "the job failed; it is found again",
      );
    const running = await handle(job, jobId).catch(failed);
    return running && { ended: running.ended.catch(failed) };
  };
}

type Claim = (request: ClaimRequest) => Promise<Claimed | undefined>;

function groupedClaim({ database }: Services): Claim {
  return groupCalls<ClaimRequest, Claimed | undefined>(
    {
      lanes: 2,
      maxBatch: 100,
      keyOf: ({ instanceId, path, iteration }) => `${instanceId}/${path}#${iteration}`,
    },
    (requests) => claimSteps(database.db, requests),
  );
}

function isIsolated({ registry }: WorkerState, { taskId }: StepJob): boolean {
  return registry.get(taskId)?.isIsolated === true;
}

/**
 * To the queue of those that run alone, beside the one it came by: whichever worker has a cell free takes it
 * from there. Nobody has claimed it, so that this costs one small statement and a job.
 */
async function sendToCells(services: Services, job: StepJob): Promise<void> {
  const { database, log } = services;
  const step = await persistently(log, () => setAside(database.db, job));
  if (step !== undefined) await enqueueDue(services, [{ ...step, isSetAside: true }]);
}

/** No process is started for a task that it would not know either. */
function runIn(worker: WorkerState, cells: Cells): Handler<StepJob> {
  return (job, jobId) =>
    worker.registry.has(job.taskId) ? cells.run(job, jobId) : leaveUnknown(worker, job);
}

async function leaveUnknown({ services }: WorkerState, job: StepJob): Promise<void> {
  await blockStep(services.database.db, job, `task:${job.taskId}`);
  services.log.warn({ taskId: job.taskId, instanceId: job.instanceId }, "no such task here");
}

/** Who embeds a worker in a program of theirs is to know what they do not get. */
function tellWhatIsNotIsolated({ registry, services }: WorkerState): void {
  const tasks = [...registry].flatMap(([id, { isIsolated: asks }]) => (asks ? id : []));
  if (tasks.length === 0) return;
  services.log.warn(
    { tasks },
    "isolated tasks run in this process, one at a time, and take along what runs beside them when they end it: only a worker that was started by itself (millrace worker) can start processes for them",
  );
}

/** Claims the step: from then on its row says who holds it, and the job may end. */
async function runStep(
  worker: WorkerState,
  claim: Claim,
  job: StepJob,
  jobId: string,
): Promise<Running | void> {
  const { services, registry } = worker;
  const known = registry.get(job.taskId);
  if (known === undefined) return leaveUnknown(worker, job);
  if (worker.closing) {
    await lookAtOnce(services.database.db, job);
    return;
  }
  // Others would take at once what it took without a beat.
  if (worker.renewal !== undefined) await worker.renewal;
  const since = performance.now();
  const workerId = worker.id;
  const claimed = await claimSurely(services, claim, {
    tenantId: job.tenantId,
    instanceId: job.instanceId,
    path: job.path,
    iteration: job.iteration,
    attempt: job.attempt,
    fence: job.fence,
    workerId,
    carrier: jobId,
    timeoutMs: known.timeoutMs,
    heartbeatTimeoutMs: known.heartbeatTimeoutMs,
    retry: known.retry,
  });
  if (claimed === undefined) return;
  let held: Held;
  try {
    held = worker.hold({ ...(await definedStep(services, claimed)), since, known });
  } catch (error) {
    await giveUp(services, workerId, heldStepOf(claimed), error);
    throw error;
  }
  return { ended: carryOn(worker, held, jobId) };
}

/**
 * A claim passes over a row that is being changed, by the reconciler say, which looks at each retry that is
 * due, and whose job may find nothing as well. So whoever got nothing asks again, and else the step would
 * wait for the next look, half a minute later.
 */
async function claimSurely(
  { database, log }: Services,
  claim: Claim,
  request: ClaimRequest,
): Promise<Claimed | undefined> {
  for (let tries = 1; ; tries++) {
    const claimed = await persistently(log, () => claim(request));
    if (claimed !== undefined) return claimed;
    const dueInMs = await persistently(log, () => lookAtOnce(database.db, request));
    if (dueInMs === undefined || dueInMs > soonDueMs || tries === mostClaims) return undefined;
    if (dueInMs > 0) await new Promise((resolve) => setTimeout(resolve, dueInMs));
  }
}

/** As early as the job of a retry comes at most, where clocks differ. */
const soonDueMs = 100;
/** A row that is still being changed then is found by the reconciler, within its next round. */
const mostClaims = 3;

/** @throws WorkflowNotFoundError where its definition is not stored any more. */
async function definedStep(
  { definitions, log }: Services,
  { snapshot, step }: Claimed,
): Promise<Pick<StepToHold, "snapshot" | "definition" | "step" | "call">> {
  const { tenantId, workflowId, workflowVersion } = snapshot;
  const { definition } = await persistently(log, () =>
    definitions.get(tenantId, workflowId, workflowVersion),
  );
  const call = definition.steps.get(step.stepId) ?? definition.compensationSteps.get(step.stepId);
  if (call === undefined || !("taskId" in call))
    throw new Error(`step "${step.stepId}" is no task`);
  return { snapshot, definition, step, call };
}

function holdStep(
  { services, id }: WorkerState,
  { since, snapshot, definition, step, call, known }: StepToHold,
  reads: Reads,
  progress: ReturnType<typeof openProgress>,
): Held {
  const { tenantId, id: instanceId } = snapshot;
  const { stepId, path, iteration, attempt, fence } = step;
  let log: ReturnType<Held["log"]> | undefined;
  return {
    workerId: id,
    since,
    snapshot,
    definition,
    step,
    call,
    known,
    reads,
    abort: openAbort(),
    log: () => (log ??= services.log.child({ instanceId, stepId, attempt })),
    mistrust: (why) => endUntrusted(why, `${stepId} of ${instanceId}`),
    reportProgress: (value) =>
      progress.report(
        { tenantId, instanceId, path, iteration, fence, workerId: id },
        value,
        step.heartbeatTimeoutMs ?? known.heartbeatTimeoutMs,
      ),
  };
}

/**
 * Which of the tasks of this process has done it nobody knows: all that run here begin again elsewhere, and the
 * one that does it again ends alone, as every step under which workers die. Its result is not stored.
 */
async function endUntrusted(why: string, step: string): Promise<never> {
  undoChangeToAllObjects();
  const error = new Error(
    `${why}, by step ${step} or one that ran beside it: what this worker stored from now on would be wrong, so it ends`,
  );
  // To whoever listens for what nobody has caught (run-process.ts), before anything else gets its turn.
  queueMicrotask(() => {
    throw error;
  });
  return new Promise(() => {});
}

/** Waits for the running steps, at most so long. */
async function finishWithin(
  { services }: WorkerState,
  consumers: readonly Consumer[],
  graceMs: number,
): Promise<void> {
  const until = performance.now() + graceMs;
  const active = () => consumers.reduce((sum, consumer) => sum + consumer.active, 0);
  while (active() > 0 && performance.now() < until) {
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  if (active() > 0) services.log.warn({ steps: active() }, "steps still run; handing them back");
}

/**
 * A step that asks its own worker to end does so within this time, as it seems. One that takes longer costs
 * a worker its time more seldom than that, and cannot be told from one that deployments meet.
 */
const soonMs = 600_000;

/** How long an end waits for a database that is away, each time that it has something to tell it. */
const partingMs = 1_500;

/**
 * What still runs goes to others at once; where the database is away, after this worker's beat has lapsed.
 *
 * @param askedAt When the worker was asked to end.
 */
async function handBack({ services, holdings, id }: WorkerState, askedAt: number): Promise<void> {
  const justBegun = holdings
    .all()
    .filter(({ since }) => askedAt - since < soonMs)
    .map(({ snapshot: { tenantId, id: instanceId }, step: { path, iteration } }) => ({
      tenantId,
      instanceId,
      path,
      iteration,
    }));
  // Before their handlers hear of it: what a handler makes of its abort is not the step's failure.
  const released = await persistentlyFor(services.log, partingMs, () =>
    releaseSteps(services.database.db, id, justBegun),
  );
  if (released === undefined) {
    // Nor is it told to stop: its rows may still be this worker's, so that its failure would count.
    services.log.warn("what still runs is left to whoever misses it");
    return;
  }
  holdings.abortOf(id, "the worker is shutting down");
  await enqueueDue(services, released);
}
