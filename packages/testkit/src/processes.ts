import { startChild, type Child, type Exit } from "@millrace/devstack";
import { eventually } from "./eventually.ts";

export interface ProcessOptions {
  /** Node itself when absent. */
  readonly command?: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly cwd?: string;
}

/** A real process under test. It ends with the test run, whatever happens to either. */
export interface TestProcess {
  readonly pid: number;
  readonly exited: Promise<Exit>;
  /** `undefined` while it runs. */
  readonly exit: Exit | undefined;
  /** Everything it has printed so far, both outputs. */
  output(): string;
  /** The match, once the output so far has one. Fails when the process ends without. */
  waitForOutput(pattern: RegExp, timeoutMs?: number): Promise<RegExpExecArray>;
  /** kill -9, and waits for its end. */
  kill(): Promise<Exit>;
  /** SIGTERM, and kill -9 after ten seconds; waits for its end. */
  stop(): Promise<Exit>;
  /** Any other signal. */
  signal(signal: NodeJS.Signals): void;
  /** SIGSTOP: it stands still and does not know it. */
  freeze(): void;
  /** SIGCONT after `freeze`. */
  thaw(): void;
}

const running = new Set<Child>();

export async function startProcess(options: ProcessOptions): Promise<TestProcess> {
  let text = "";
  const child = await startChild({
    ...options,
    command: options.command ?? process.execPath,
    stopSignal: "SIGTERM",
    output: (piece) => {
      text += piece;
    },
  });
  running.add(child);
  void child.exited.then(() => running.delete(child));
  return {
    pid: child.pid,
    exited: child.exited,
    get exit() {
      return child.exit;
    },
    output: () => text,
    waitForOutput: (pattern, timeoutMs = 30_000) => {
      const look = () => pattern.exec(text) ?? (child.exit && { ended: child.exit });
      return eventually(`${pattern} in the output`, look, { timeoutMs }).then((found) => {
        if (!("ended" in found)) return found;
        throw new Error(
          `it ended (${describe(found.ended)}) without ${pattern}; it said:\n${text}`,
        );
      });
    },
    kill: () => {
      child.kill("SIGKILL");
      return child.exited;
    },
    stop: () => child.stop(),
    signal: (signal) => void child.kill(signal),
    freeze: () => freeze(child.pid),
    thaw: () => thaw(child.pid),
  };
}

/** Ends what `startProcess` started and a test left running; for `afterEach`. */
export async function stopProcesses(): Promise<void> {
  await Promise.all(
    [...running].map((child) => {
      child.kill("SIGKILL");
      return child.exited;
    }),
  );
}

/** kill -9, for processes known by number only. */
export function kill(pid: number): void {
  process.kill(pid, "SIGKILL");
}

export function freeze(pid: number): void {
  process.kill(pid, "SIGSTOP");
}

export function thaw(pid: number): void {
  process.kill(pid, "SIGCONT");
}

function describe({ code, signal }: Exit): string {
  return signal === null ? `exit code ${code}` : signal;
}
