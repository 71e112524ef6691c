import { spawn, type Serializable } from "node:child_process";
import { inheritedEnvironment } from "./config.ts";
import { guard } from "./guard.ts";

export interface ChildOptions {
  readonly command: string;
  readonly args: readonly string[];
  /** Added to the inherited environment; `undefined` takes a variable away. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly cwd?: string;
  /** Run as this user; only root may. */
  readonly account?: { readonly uid: number; readonly gid: number };
  /**
   * Where both outputs go: the file of this descriptor, the outputs of this process, or a function
   * that gets each piece as it comes. A file outlives this process, a function does not.
   */
  readonly output: number | "inherit" | ((text: string) => void);
  /** What a polite end is for this program. */
  readonly stopSignal: "SIGINT" | "SIGTERM";
  /** Gets what the child sends with `process.send`; where absent the child has no channel. */
  readonly onMessage?: (message: Serializable) => void;
}

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** A process that was started here and that does not outlive this one. */
export interface Child {
  readonly pid: number;
  /** Settles when it has ended, however it ended. */
  readonly exited: Promise<Exit>;
  /** How it ended; `undefined` while it runs. */
  readonly exit: Exit | undefined;
  /** Sends one signal; false when it has ended already. */
  kill(signal: NodeJS.Signals): boolean;
  /** Asks it to end, kills it when it has not within `graceMs` (10 s), and waits for its end. */
  stop(graceMs?: number): Promise<Exit>;
}

/**
 * Starts a program in a session of its own: Ctrl-C in the terminal reaches only this process, which
 * then stops its children in order. A guard ends the child should this process be killed.
 *
 * @throws When the program cannot be started at all.
 */
export async function startChild(options: ChildOptions): Promise<Child> {
  const { output, stopSignal, onMessage } = options;
  const sink = typeof output === "function" ? "pipe" : output;
  const child = spawn(options.command, [...options.args], {
    stdio: ["ignore", sink, sink, ...(onMessage ? (["ipc"] as const) : [])],
    detached: true,
    env: withoutUndefined({ ...inheritedEnvironment(), ...options.env }),
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    ...options.account,
  });
  if (typeof output === "function") {
    child.stdout?.setEncoding("utf8").on("data", output);
    child.stderr?.setEncoding("utf8").on("data", output);
  }
  if (onMessage) child.on("message", onMessage);

  let exit: Exit | undefined;
  let callOff = () => {};
  const exited = new Promise<Exit>((resolve) => {
    child.once("exit", (code, signal) => {
      exit = { code, signal };
      callOff();
      resolve(exit);
    });
  });
  await new Promise<void>((resolve, reject) => {
    child.once("spawn", resolve);
    child.once("error", reject);
  });
  // Later errors are those of signals and messages to a process that has just ended.
  child.on("error", () => {});
  const pid = child.pid;
  if (pid === undefined) throw new Error(`${options.command} started without a process id`);
  if (exit === undefined) callOff = guard(pid, stopSignal === "SIGINT" ? "INT" : "TERM");

  const stop = async (graceMs = 10_000): Promise<Exit> => {
    child.kill(stopSignal);
    // A process stopped by SIGSTOP hears nothing until it goes on.
    child.kill("SIGCONT");
    const lastResort = setTimeout(() => child.kill("SIGKILL"), graceMs);
    const ended = await exited;
    clearTimeout(lastResort);
    return ended;
  };
  return {
    pid,
    exited,
    get exit() {
      return exit;
    },
    kill: (signal) => exit === undefined && child.kill(signal),
    stop,
  };
}

function withoutUndefined(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([, value]) => value !== undefined));
}
