import { hostname, totalmem } from "node:os";
import type { Running, StepJob } from "@millrace/queue";
import { setTimeout as sleep } from "node:timers/promises";
import {
  blockStep,
  claimSteps,
  holdsAnything,
  lookAtOnce,
  noteDeath,
  registerWorker,
} from "@millrace/store";
import { newWorkerId } from "../ids.ts";
import type { Services } from "../services.ts";
import { openCell } from "./cell-process.ts";
import type { CellProcess, CellProgram } from "./cell-process.ts";

/**
 * Processes of this worker in which suspects run, one at a time each (decision 0015): steps under which
 * workers have died before; and those of isolated tasks, from their first run on (decision 0021). Whatever
 * one of them does to its process, nobody else is in it.
 *
 * ```
 *   worker                       cell
 *     │ spawn ────────────────▶  registers, beats, is a worker without a queue
 *     │ ◀──────────────── ready  │
 *     │ step ─────────────────▶
 *     │ ◀──────────────── begun  │ says under which id, and claims it
 *     │ ◀──────────────── taken  │ runs it, commits what came of it
 *     │ ◀───────────────── free  │ and what is to be counted of it
 *     │ end ──────────────────▶  ends as by SIGTERM; so it does when the worker has died
 * ```
 *
 * What a cell says carries a token, and there is no other way to end one politely: a step that could say
 * that it is over, or have itself handed over, would get others into its cell, or come again for ever.
 */
export interface Cells {
  /** Settles when the step is claimed, was not there to be, or is put off since no process can be had. */
  run(job: StepJob, jobId: string): Promise<Running | void>;
  /** Asks all of them to end, as their worker was, and waits until they have. */
  close(): Promise<void>;
}

export interface CellsOptions {
  readonly program: CellProgram;
  readonly graceMs: number;
}

/** A cell that has nothing to do ends after so long; to start one takes half a second. */
const idleMs = 2_000;
/** A cell that was asked to end takes its grace, and so long to say goodbye; then it is killed. */
const goodbyeMs = 3_000;
/** So often a busy cell is asked about: whether the step that it runs is still its own. */
const lookMs = 2_000;

/** Processes that start at a time: each takes half a second of CPU, which all that runs here needs as well. */
const mostStarting = 2;

/** Memory for one process, with as much again three times over for the worker and for others. */
const bytesPerCell = 512 * 2 ** 20;
const [leastCells, mostCells] = [2, 8];

/** Processes at a time where nothing is said: most steps wait, so that it is memory which bounds them. */
export function cellsFor(bytes: number): number {
  return Math.min(mostCells, Math.max(leastCells, Math.floor(bytes / bytesPerCell)));
}

/** What a container, or else the machine, lets this process have. */
export function availableBytes(): number {
  // 0, or more than there is, where nothing constrains it.
  return Math.min(process.constrainedMemory() || Number.POSITIVE_INFINITY, totalmem());
}

/** How a step is marked as blocked for which no process could be had; what the process said follows. */
export const failedCell = "cell:";

/** Failed starts in a row, the last of them some 25 s after the first. */
const startsBeforeDeath = 4;

/**
 * Once a suspect has died alone, it gets a process that no other has been in, and leaves none behind for
 * others: what another has left behind there, a timer say, cannot be laid at its door.
 */
const deathsBeforeAlone = 2;

export function openCells(
  { database, log, metrics }: Services,
  { program, graceMs }: CellsOptions,
): Cells {
  const cells = new Set<CellProcess>();
  const idle: CellProcess[] = [];
  /** Each settles when another process may start, the longest awaited first. */
  const starts: Promise<unknown>[] = Array.from({ length: mostStarting }, () => Promise.resolve());
  const patienceMs = graceMs + goodbyeMs;
  let closing = false;

  /** Once it is its turn to start. @returns Undefined where all are to end by then. */
  async function open(): Promise<CellProcess | undefined> {
    const turn = starts.shift() ?? Promise.resolve();
    const opened = turn.then(() => {
      if (closing) return undefined;
      const cell = openCell(program, metrics.count);
      cells.add(cell);
      void bury(cell);
      return cell;
    });
    starts.push(opened.then((cell) => cell?.ready).catch(() => {}));
    return opened;
  }

  async function bury(cell: CellProcess): Promise<void> {
    const exit = await cell.exited;
    cells.delete(cell);
    const { pid, workerId, peakBytes } = cell;
    log.debug({ pid, workerId, exit }, "a cell has ended");
    // Of one that has ended by itself there is no entry any more.
    if (workerId === undefined) return;
    await noteDeath(database.db, workerId, { exit, peakBytes }).catch(() => {});
  }

  /**
   * A step whose row says that it has ended, or is another's, has the grace to notice. One that blocks its
   * process never does, and would keep the cell for good; it is killed, and nobody dies of that.
   */
  function watchOver(cell: CellProcess): () => void {
    const stopped = new AbortController();
    const look = async () => {
      let lostSince: number | undefined;
      for (;;) {
        await sleep(lookMs, undefined, { signal: stopped.signal });
        const holds = await holdsSomething(cell);
        lostSince = holds ? undefined : (lostSince ?? performance.now());
        if (lostSince === undefined || performance.now() - lostSince < patienceMs) continue;
        log.warn({ pid: cell.pid }, "a step that has ended keeps its process busy: killing it");
        return cell.kill();
      }
    };
    look().catch((error: unknown) => {
      if (!stopped.signal.aborted) log.warn({ err: error }, "a cell is not watched over");
    });
    return () => stopped.abort();
  }

  /** As long as nobody can be asked, it does. */
  async function holdsSomething({ workerId }: CellProcess): Promise<boolean> {
    // A step is begun at once, unless the process stands still.
    if (workerId === undefined) return false;
    return holdsAnything(database.db, workerId).catch(() => true);
  }

  /**
   * No process came so far as to have the step: that is for people to see, and may pass. Where it does not,
   * it counts as a death of the step after some tries, so that it ends where people look for it.
   */
  async function putOff(job: StepJob, jobId: string, cell: CellProcess): Promise<void> {
    const exit = await cell.exited;
    const failedStarts = await blockStep(database.db, job, `${failedCell}${exit}`);
    if (failedStarts === undefined) return;
    metrics.cellsFailed.add({});
    const { instanceId } = job;
    log.error({ pid: cell.pid, exit, instanceId }, "no process to run a step alone");
    // Whether there are processes to be had at all is not the step's doing.
    if (failedStarts < startsBeforeDeath || cell.pid === undefined) return;
    const death = {
      workerId: newWorkerId(),
      pid: cell.pid,
      exit: `${exit}, before it had the step`,
    };
    await dieOf(job, jobId, death);
  }

  /** As if the process had claimed it first: the death of a worker like any other. */
  async function dieOf(
    job: StepJob,
    carrier: string,
    { workerId, pid, exit }: { workerId: string; pid: number; exit: string },
  ): Promise<void> {
    const { db } = database;
    await registerWorker(db, { id: workerId, host: hostname(), pid, tasks: [], queues: [] });
    const own = { timeoutMs: null, heartbeatTimeoutMs: null, retry: null };
    await claimSteps(db, [{ ...job, ...own, workerId, carrier }]);
    await noteDeath(db, workerId, { exit });
  }

  function takeIdle(): CellProcess | undefined {
    const cell = idle.pop();
    cell?.keep();
    return cell?.isOver === true ? takeIdle() : cell;
  }

  async function over(
    cell: CellProcess,
    freed: Promise<boolean>,
    isReusable: boolean,
  ): Promise<void> {
    if (!(await freed) || closing) return;
    if (!isReusable || cell.isHaunted) return cell.endWithin(patienceMs);
    idle.push(cell);
    cell.endUnlessKept(idleMs, () => {
      idle.splice(idle.indexOf(cell), 1);
      void cell.endWithin(patienceMs);
    });
  }

  async function leave(job: StepJob): Promise<void> {
    await lookAtOnce(database.db, job);
  }

  return {
    async run(job, jobId) {
      if (closing) return leave(job);
      const isReusable = (job.lapses ?? 0) <= deathsBeforeAlone;
      const cell = (isReusable ? takeIdle() : undefined) ?? (await open());
      if (cell === undefined) return leave(job);
      if (await cell.ready) {
        // Both answers may come at once.
        const freed = cell.said("free");
        cell.run(job, jobId);
        const stopWatching = watchOver(cell);
        void freed.then(stopWatching);
        // Never where the step blocks the process from its first line on.
        if (await cell.said("taken")) return { ended: over(cell, freed, isReusable) };
      }
      // It has ended with or without the claim; only a row that waits is looked at.
      await (closing ? leave(job) : putOff(job, jobId, cell));
    },
    async close() {
      closing = true;
      await Promise.all([...cells].map((cell) => cell.endWithin(patienceMs)));
    },
  };
}
