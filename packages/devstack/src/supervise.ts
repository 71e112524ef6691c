import { closeSync, fstatSync, mkdirSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { startChild, type Child, type Exit } from "./child.ts";

export type Role = "api" | "scheduler" | "worker";

/** Something that happened to one process of the stack, for whoever wants to tell about it. */
export interface StackEvent {
  readonly kind: "started" | "ready" | "ended" | "restarting";
  readonly role: Role;
  /** Role and number, as `worker-2`. */
  readonly name: string;
  readonly pid: number;
  /** With `ended` and `restarting`. */
  readonly exit?: Exit;
}

/**
 * - `files`: one log file per process below the data folder.
 * - `inherit`: the outputs of this process.
 * - a function: gets each piece of output as it comes, with the name of the process.
 */
export type StackOutput = "files" | "inherit" | ((name: string, text: string) => void);

export interface ProcessPlan {
  readonly role: Role;
  readonly name: string;
  /** The JavaScript file that Node runs. */
  readonly program: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly logsFolder: string;
  readonly output: StackOutput;
  /** Whether it is started again when it ends by itself. */
  readonly isRestarted: boolean;
  /** Waits beyond the message `ready`; aborted when the process ends. */
  readonly waitForMore?: (signal: AbortSignal) => Promise<void>;
  readonly onEvent: (event: StackEvent) => void;
  /** Aborted when nobody waits for it to be ready any more. */
  readonly signal?: AbortSignal | undefined;
}

/** One place in the stack, and the process that fills it now. */
export interface SupervisedProcess {
  readonly role: Role;
  readonly name: string;
  /** `undefined` while no process fills the place. */
  readonly pid: number | undefined;
  /** Ends the process politely and starts no other. */
  stop(): Promise<void>;
}

/**
 * Starts a process, waits until it is ready, and from then on replaces it when it dies: at once
 * the first time, later and later (up to 5 s) while it keeps dying within ten seconds.
 *
 * A process says that it is ready with `process.send?.({ kind: "ready", endsWithinMs })`, the time that it
 * takes at most to end when it is asked to, where that is not 15 s.
 *
 * @throws When the first process ends, or is not ready in a minute; with the end of its output. The reason
 *   of `signal`, where that was aborted meanwhile.
 */
export async function supervise(plan: ProcessPlan): Promise<SupervisedProcess> {
  const stopping = new AbortController();
  let current: Run | undefined = await start(plan);

  const { ready, child } = current;
  const first = await Promise.race([ready, child.exited, minutePassed(), calledOff(plan.signal)]);
  if (first !== "ready") {
    // It has nothing to bring to an end, and what blocks it from its first line on hears nothing.
    await child.stop(startingGraceMs);
    plan.signal?.throwIfAborted();
    const reason =
      first === "late" ? "was not ready within a minute" : `ended (${describe(first)})`;
    throw new Error(`${plan.name} ${reason}; it said:\n${current.lastOutput()}`);
  }

  const replaceWhenDead = async () => {
    let quickDeaths = 0;
    while (current !== undefined) {
      const exit = await current.child.exited;
      const { pid, startedAt } = { ...current, pid: current.child.pid };
      if (stopping.signal.aborted) return;
      const { role, name } = plan;
      plan.onEvent({ kind: plan.isRestarted ? "restarting" : "ended", role, name, pid, exit });
      current = undefined;
      if (!plan.isRestarted) return;
      quickDeaths = performance.now() - startedAt < 10_000 ? quickDeaths + 1 : 0;
      const delayMs = quickDeaths <= 1 ? 0 : Math.min(100 * 2 ** quickDeaths, 5_000);
      await sleep(delayMs, undefined, { signal: stopping.signal }).catch(() => {});
      if (stopping.signal.aborted) return;
      current = await start(plan);
      if (stopping.signal.aborted) await current.child.stop();
    }
  };
  const done = replaceWhenDead();

  return {
    role: plan.role,
    name: plan.name,
    get pid() {
      return current?.child.exit === undefined ? current?.child.pid : undefined;
    },
    stop: async () => {
      stopping.abort();
      await current?.child.stop(current.endsWithinMs());
      await done;
    },
  };
}

interface Run {
  readonly child: Child;
  readonly startedAt: number;
  /** Never settles when the process ends before it is ready. */
  readonly ready: Promise<"ready">;
  /** Patience with its end. */
  endsWithinMs(): number;
  lastOutput(): string;
}

async function start(plan: ProcessPlan): Promise<Run> {
  const { role, name, output } = plan;
  const startedAt = performance.now();
  let tail = "";
  let endsWithinMs = usualEndMs;
  let sayReady = () => {};
  const saidReady = new Promise<void>((resolve) => {
    sayReady = resolve;
  });
  const log = output === "files" ? openLog(plan) : undefined;
  const child = await startChild({
    command: process.execPath,
    args: [plan.program],
    env: plan.env,
    stopSignal: "SIGTERM",
    output:
      log?.descriptor ??
      (typeof output === "function"
        ? (text) => {
            tail = (tail + text).slice(-tailLength);
            output(name, text);
          }
        : "inherit"),
    onMessage: (message) => {
      if (typeof message !== "object" || !("kind" in message) || message.kind !== "ready") return;
      if ("endsWithinMs" in message && typeof message.endsWithinMs === "number")
        endsWithinMs = message.endsWithinMs + marginMs;
      sayReady();
    },
  });
  if (log) closeSync(log.descriptor);
  const { pid } = child;
  plan.onEvent({ kind: "started", role, name, pid });

  const ended = new AbortController();
  void child.exited.then(() => ended.abort());
  const ready = (async () => {
    await saidReady;
    await plan.waitForMore?.(ended.signal);
    if (!ended.signal.aborted) plan.onEvent({ kind: "ready", role, name, pid });
    return "ready" as const;
  })();
  return {
    child,
    startedAt,
    ready,
    endsWithinMs: () => endsWithinMs,
    lastOutput: () =>
      log ? readFileSync(log.file).subarray(log.begin).toString().slice(-tailLength) : tail,
  };
}

interface LogFile {
  readonly file: string;
  readonly descriptor: number;
  /** Bytes that processes before this one have written. */
  readonly begin: number;
}

function openLog({ logsFolder, name }: ProcessPlan): LogFile {
  mkdirSync(logsFolder, { recursive: true });
  const file = join(logsFolder, `${name}.log`);
  const descriptor = openSync(file, "a", 0o600);
  return { file, descriptor, begin: fstatSync(descriptor).size };
}

async function minutePassed(): Promise<"late"> {
  return sleep(60_000, "late" as const, { ref: false });
}

async function calledOff(signal: AbortSignal | undefined): Promise<"late"> {
  return new Promise((resolve) => {
    if (signal?.aborted === true) resolve("late");
    signal?.addEventListener("abort", () => resolve("late"), { once: true });
  });
}

function describe({ code, signal }: Exit): string {
  return signal === null ? `exit code ${code}` : signal;
}

/** Patience with the end of a process that is not ready yet. */
const startingGraceMs = 2_000;
/** A worker uses it to let its running steps come to an end. */
const usualEndMs = 15_000;
/** A process ends itself in its time; only one that does not is killed. */
const marginMs = 2_000;

const tailLength = 4_000;
