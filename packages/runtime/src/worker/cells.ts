import { fork } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import type { Running, StepJob } from "@millrace/queue";
import { setTimeout as sleep } from "node:timers/promises";
import { holdsAnything, lookAtOnce, noteDeath } from "@millrace/store";
import type { Services } from "../services.ts";
import type { Environment } from "../settings.ts";
import { begunMessage, cellArgument } from "./cell.ts";

/**
 * Processes of this worker in which suspects run, one at a time each (decision 0015): steps under which
 * workers have died before. Whatever one of them does to its process, nobody else is in it.
 *
 * ```
 *   worker                       cell
 *     │ fork ─────────────────▶  registers, beats, is a worker without a queue
 *     │ ◀──────────────── ready  │
 *     │ step ─────────────────▶
 *     │ ◀──────────────── begun  │ says under which id, and claims it
 *     │ ◀──────────────── taken  │ runs it, commits what came of it
 *     │ ◀───────────────── free  │
 *     │ disconnect ───────────▶  ends as by SIGTERM; so it does when the worker has died
 * ```
 */
export interface Cells {
  /** Settles when the step is claimed, or was not there to be. @throws When no process can be had. */
  run(job: StepJob, jobId: string): Promise<Running | void>;
  /** Asks all of them to end, as their worker was, and waits until they have. */
  close(): Promise<void>;
}

export interface CellsOptions {
  readonly program: CellProgram;
  readonly graceMs: number;
}

/** How this worker was started, and how its cells are. */
export interface CellProgram {
  /** A JavaScript file. */
  readonly file: string;
  readonly env: Environment;
}

/** A cell that has nothing to do ends after so long; to start one takes half a second. */
const idleMs = 2_000;
/** A cell that was asked to end takes its grace, and so long to say goodbye; then it is killed. */
const goodbyeMs = 3_000;
/** Between the end of a process's channel and the news of its death. */
const dyingMs = 500;
/** So often a busy cell is asked about: whether the step that it runs is still its own. */
const lookMs = 2_000;
/** A cell needs few connections: one step and what watches over it. */
const poolSize = "2";

/**
 * Once a suspect has died alone, it gets a process that no other has been in, and leaves none behind for
 * others: what another has left behind there, a timer say, cannot be laid at its door.
 */
const deathsBeforeAlone = 2;

export function openCells({ database, log }: Services, { program, graceMs }: CellsOptions): Cells {
  const cells = new Set<Cell>();
  const idle: Cell[] = [];
  let closing = false;

  function open(): Cell {
    const cell = openCell(program);
    cells.add(cell);
    void bury(cell);
    return cell;
  }

  async function bury(cell: Cell): Promise<void> {
    const exit = await cell.exited;
    cells.delete(cell);
    const { pid, workerId } = cell;
    log.debug({ pid, workerId, exit }, "a cell has ended");
    // Of one that has ended by itself there is no entry any more.
    if (workerId !== undefined) await noteDeath(database.db, workerId, exit).catch(() => {});
  }

  /**
   * A step whose row says that it has ended, or is another's, has the grace to notice. One that blocks its
   * process never does, and would keep the cell for good; it is killed, and nobody dies of that.
   */
  function watchOver(cell: Cell): () => void {
    const stopped = new AbortController();
    const look = async () => {
      let lostSince: number | undefined;
      for (;;) {
        await sleep(lookMs, undefined, { signal: stopped.signal });
        const holds = await holdsSomething(cell);
        lostSince = holds ? undefined : (lostSince ?? performance.now());
        if (lostSince === undefined || performance.now() - lostSince < graceMs + goodbyeMs)
          continue;
        log.warn({ pid: cell.pid }, "a step that has ended keeps its process busy: killing it");
        return cell.kill();
      }
    };
    look().catch((error: unknown) => {
      if (!stopped.signal.aborted) log.warn({ err: error }, "a cell is not watched over");
    });
    return () => stopped.abort();
  }

  /** As long as it has not begun, or nobody can be asked, it does. */
  async function holdsSomething({ workerId }: Cell): Promise<boolean> {
    if (workerId === undefined) return true;
    return holdsAnything(database.db, workerId).catch(() => true);
  }

  function takeIdle(): Cell | undefined {
    const cell = idle.pop();
    cell?.keep();
    return cell?.isOver === true ? takeIdle() : cell;
  }

  async function over(cell: Cell, freed: Promise<boolean>, isReusable: boolean): Promise<void> {
    if (!(await freed) || closing) return;
    if (!isReusable) return cell.end();
    idle.push(cell);
    cell.endUnlessKept(idleMs, () => idle.splice(idle.indexOf(cell), 1));
  }

  return {
    async run(job, jobId) {
      if (closing) return lookAtOnce(database.db, job);
      const isReusable = (job.lapses ?? 0) <= deathsBeforeAlone;
      const cell = (isReusable ? takeIdle() : undefined) ?? open();
      if (await cell.ready) {
        // Both answers may come at once.
        const freed = cell.said("free");
        cell.send({ kind: "step", job, jobId });
        const stopWatching = watchOver(cell);
        void freed.then(stopWatching);
        // Never where the step blocks the process from its first line on.
        if (await cell.said("taken")) return { ended: over(cell, freed, isReusable) };
      } else if (!closing) {
        // What cannot start now is not tried again at once: the row has its time for a look.
        throw new Error(`no process to run a step alone: it ended (${await cell.exited})`);
      }
      // It has ended with or without the claim; only a row that waits is looked at.
      await lookAtOnce(database.db, job);
    },
    async close() {
      closing = true;
      await Promise.all([...cells].map((cell) => cell.endWithin(graceMs + goodbyeMs)));
    },
  };
}

interface Cell {
  readonly pid: number | undefined;
  /** Under which it has begun its last step. */
  readonly workerId: string | undefined;
  /** False where it has ended before it was. */
  readonly ready: Promise<boolean>;
  /** Settles when its process is gone, with a signal or an exit code in words. */
  readonly exited: Promise<string>;
  readonly isOver: boolean;
  send(message: object): void;
  /** Whether it says so; false when it ends instead. */
  said(what: "taken" | "free"): Promise<boolean>;
  end(): void;
  kill(): void;
  endWithin(ms: number): Promise<void>;
  endUnlessKept(ms: number, whenEnding: () => void): void;
  keep(): void;
}

function openCell({ file, env }: CellProgram): Cell {
  const child = fork(file, [cellArgument], {
    env: { ...env, MILLRACE_POOL_SIZE: poolSize, MILLRACE_METRICS_PORT: "" },
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  let isAsked = false;
  let isSevered = false;
  const exited = exitOf(child).then((exit) =>
    isSevered && exit === "SIGKILL" ? "it had closed the channel to its worker" : exit,
  );
  const kill = () => void child.kill("SIGKILL");
  // Its step has closed the channel, if it still runs a moment later. It would hand the step over, again and again.
  child.once("disconnect", () => {
    setTimeout(() => {
      if (isAsked || child.exitCode !== null || child.signalCode !== null) return;
      isSevered = true;
      kill();
    }, dyingMs);
  });
  let workerId: string | undefined;
  child.on("message", (message) => {
    const begun = begunMessage.safeParse(message);
    if (begun.success) ({ workerId } = begun.data);
  });
  let idling: NodeJS.Timeout | undefined;
  const said = (what: string) => Promise.race([heard(child, what), exited.then(() => false)]);
  const end = () => {
    isAsked = true;
    if (child.connected) child.disconnect();
  };

  return {
    pid: child.pid,
    get workerId() {
      return workerId;
    },
    ready: said("ready"),
    exited,
    get isOver() {
      return !child.connected || child.exitCode !== null || child.signalCode !== null;
    },
    // One that has just died is heard of by its exit.
    send: (message) => void child.send(message, () => {}),
    said,
    end,
    kill,
    async endWithin(ms) {
      end();
      const lastResort = setTimeout(kill, ms);
      await exited;
      clearTimeout(lastResort);
    },
    endUnlessKept(ms, whenEnding) {
      idling = setTimeout(() => {
        whenEnding();
        end();
      }, ms);
    },
    keep: () => clearTimeout(idling),
  };
}

function exitOf(child: ChildProcess): Promise<string> {
  return new Promise((resolve) => {
    child.once("exit", (code, signal) => resolve(signal ?? `exit code ${code}`));
    child.on("error", (error) => {
      // Any other is of a message or signal to one that has ended.
      if (child.pid === undefined) resolve(error.message);
    });
  });
}

function heard(child: ChildProcess, what: string): Promise<true> {
  return new Promise((resolve) => {
    const listener = (message: unknown) => {
      if (typeof message !== "object" || message === null) return;
      if (!("kind" in message) || message.kind !== what) return;
      child.off("message", listener);
      resolve(true);
    };
    child.on("message", listener);
  });
}
