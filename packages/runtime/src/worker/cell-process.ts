import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { randomBytes } from "node:crypto";
import { PassThrough } from "node:stream";
import type { Duplex } from "node:stream";
import type { StepJob } from "@millrace/queue";
import type { Count } from "@millrace/telemetry";
import * as z from "zod";
import type { Environment } from "../settings.ts";
import { cellArgument, fromCell } from "./cell.ts";
import type { CellMessage, KeeperMessage } from "./cell.ts";
import { openChannel } from "./channel.ts";
import { noInspector } from "./no-inspector.ts";
import { watchMemory } from "./resident-memory.ts";
import type { MemoryWatch } from "./resident-memory.ts";

/** How this worker was started, and how its cells are. */
export interface CellProgram {
  /** A JavaScript file. */
  readonly file: string;
  /** Options of Node. */
  readonly options: readonly string[];
  readonly env: Environment;
}

/** A process in which suspects run, as seen by the worker that has started it (`cells.ts`). */
export interface CellProcess {
  readonly pid: number | undefined;
  /** Under which it has begun its last step. */
  readonly workerId: string | undefined;
  /** The most memory that it was seen to have during its last step. */
  readonly peakBytes: number | undefined;
  /** Whether a handler of its last step goes on in it: nobody else is to run beside that. */
  readonly isHaunted: boolean;
  /** False where it has ended before it was. */
  readonly ready: Promise<boolean>;
  /** Settles when its process is gone, with a signal or an exit code in words. */
  readonly exited: Promise<string>;
  readonly isOver: boolean;
  /** Hands a step over; `said` is to be asked for before. */
  run(job: StepJob, jobId: string): void;
  /** Whether it says so; false when it ends instead. */
  said(what: "taken" | "free"): Promise<boolean>;
  kill(): void;
  /** Asks it to end, kills it when it has not by then, and waits for its end. */
  endWithin(ms: number): Promise<void>;
  /** Calls back after so long, unless it is kept. */
  endUnlessKept(ms: number, end: () => void): void;
  keep(): void;
}

/** A process that is not ready after so long, since it stands still say, is given up. */
const startMs = 90_000;
/** Between the end of a process's channel and the news of its death. */
const dyingMs = 500;
/** What a step makes of the process's own folder is not for cells: paths of tasks may be relative. */
const startedIn = process.cwd();
/** A cell needs few connections: one step and what watches over it. */
const poolSize = "2";

/** @param count Gets what the cell has counted. */
export function openCell(
  { file, options, env }: CellProgram,
  count: (counts: Count[]) => void,
): CellProcess {
  const child = spawn(process.execPath, [...options, ...noInspector, file, cellArgument], {
    cwd: startedIn,
    env: { ...env, MILLRACE_POOL_SIZE: poolSize, MILLRACE_METRICS_PORT: "" },
    stdio: ["ignore", "inherit", "inherit", "pipe"],
  });
  // Listened to at once: where there is no process to be had it fails, and has no pipes.
  const ended = exitOf(child);
  const pipe = pipeOf(child);
  const token = randomBytes(16).toString("hex");
  const own = z.object({ token: z.literal(token) });
  const listeners = new Map<CellMessage["kind"], () => void>();
  let workerId: string | undefined;
  let memory: MemoryWatch | undefined;
  let why: string | undefined;
  let isAsked = false;
  let isSevered = false;
  let isHaunted = false;

  const channel = openChannel(pipe, (sent) => {
    const { data: message } = fromCell.safeParse(sent);
    if (message === undefined || !own.safeParse(sent).success) return;
    if (message.kind === "begun") ({ workerId } = message);
    if (message.kind === "dying") ({ why } = message);
    if (message.kind === "free") {
      memory?.stop();
      ({ isHaunted } = message);
      count(message.counts);
    }
    listeners.get(message.kind)?.();
  });
  const send = (message: KeeperMessage) => channel.send(message);
  const kill = () => void child.kill("SIGKILL");
  const exited = ended.then((exit) => {
    memory?.stop();
    if (isSevered && exit === "SIGKILL") return "it had closed the channel to its worker";
    return why === undefined ? exit : `${exit}, ${why}`;
  });
  const isOver = () => child.exitCode !== null || child.signalCode !== null;
  // Its step has closed the channel, if it still runs a moment later.
  pipe.once("close", () => {
    setTimeout(() => {
      if (isAsked || isOver()) return;
      isSevered = true;
      kill();
    }, dyingMs);
  });
  const said = (what: CellMessage["kind"]) =>
    Promise.race([
      new Promise<true>((resolve) => listeners.set(what, () => resolve(true))),
      exited.then(() => false),
    ]);
  const ready = said("ready");
  const late = setTimeout(kill, startMs);
  void ready.then(() => clearTimeout(late));
  let idling: NodeJS.Timeout | undefined;
  send({ kind: "hello", token, pid: process.pid });

  return {
    pid: child.pid,
    get workerId() {
      return workerId;
    },
    get peakBytes() {
      return memory?.peakBytes;
    },
    get isHaunted() {
      return isHaunted;
    },
    ready,
    exited,
    get isOver() {
      return pipe.destroyed || isOver();
    },
    run(job, jobId) {
      if (child.pid !== undefined) memory = watchMemory(child.pid);
      send({ kind: "step", job, jobId });
    },
    said,
    kill,
    async endWithin(ms) {
      isAsked = true;
      send({ kind: "end" });
      const lastResort = setTimeout(kill, ms);
      await exited;
      clearTimeout(lastResort);
    },
    endUnlessKept(ms, end) {
      idling = setTimeout(end, ms);
    },
    keep: () => clearTimeout(idling),
  };
}

/** Its channel: one that is closed where the process could not be made. */
function pipeOf({ stdio }: Partial<Pick<ChildProcess, "stdio">>): Duplex {
  return (stdio?.[3] as Duplex | undefined) ?? new PassThrough().destroy();
}

function exitOf(child: ChildProcess): Promise<string> {
  return new Promise((resolve) => {
    child.once("exit", (code, signal) => resolve(signal ?? `exit code ${code}`));
    child.on("error", (error) => {
      // Any other is of a signal to one that has ended.
      if (child.pid === undefined) resolve(error.message);
    });
  });
}
