import type { Log } from "@millrace/telemetry";
import { startGently } from "./gentle-start.ts";
import { type Settings, SettingsError } from "./settings.ts";
import { describeStartFailure } from "./start-failure.ts";
import { isCell, tellWhy } from "./worker/cell.ts";
import type { Keeper } from "./worker/cell.ts";
import { describeUnaskedExit } from "./worker/unasked-exit.ts";

/** A program that runs, and how to bring it to its end. */
export interface RunningProgram {
  readonly log: Log;
  readonly settings: Settings;
  /** It runs code of its users: a promise of theirs that fails unheard is theirs to mend. */
  readonly isHost?: true;
  /** Of a cell: its keeper alone has it end, and loses patience. */
  readonly keeper?: Keeper | undefined;
  /** Takes in nothing new and lets what runs come to its end. */
  close(): Promise<void>;
  /** Waits for no database any more: what could not be told to it is left to others. */
  resign(): void;
}

/** How the programs end: what a supervisor or a shell script can go by. */
const EXIT = { asked: 0, failed: 1, settings: 2 } as const;

/** What closing may take beyond the grace: connections to say goodbye to. */
const CLOSING_MS = 5_000;
/** Of these, what is left to a database that does not answer. */
const RESIGNING_MS = 2_000;

/**
 * What ends a process that does not listen, and says nothing to a cell: where all processes of a group are
 * told, its keeper is too, and its step may send it signals as well. Those of a crash are left alone.
 */
const unheard = ["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR2", "SIGALRM"] as const;

/**
 * Runs one program as this process, from its settings to its exit: says when it is ready to whoever
 * started it, ends politely at the first SIGTERM or SIGINT and at once at the second. An error that
 * nobody caught ends the process: what it held is taken over by others, and a process in an unknown
 * state is worse than none. A host of other people's code only logs a rejection that nobody handled:
 * one task's must not cost the steps of all others.
 *
 * Exit codes: 0 asked to end, 1 failed, 2 bad settings, 128 + n killed by a second signal.
 */
export async function runProcess(start: () => Promise<RunningProgram>): Promise<void> {
  startGently();
  const tell = takeChannel();
  let program: RunningProgram | undefined;
  const die = (what: string) => (error: unknown) => {
    tellWhy(error);
    if (program) program.log.fatal({ err: error }, what);
    else process.stderr.write(`${describeStartFailure(error)}\n`);
    exit(EXIT.failed);
  };
  process.on("exit", (code) => {
    if (isOurExit) return;
    const why = describeUnaskedExit(code);
    tellWhy(why);
    if (program) program.log.fatal(why);
    else process.stderr.write(`could not start: ${why}\n`);
    // Whoever started it must not take it for an end that was asked for.
    process.exitCode = code || EXIT.failed;
  });
  process.on("uncaughtException", die("uncaught exception"));
  process.on("unhandledRejection", (error) => {
    if (program?.isHost) program.log.error({ err: error }, "a rejection that nobody handled");
    else die("unhandled rejection")(error);
  });

  let isEnding = false;
  const onSignal = (signal: NodeJS.Signals) => {
    // Nothing has been taken on yet, or a person insists.
    if (!program) exit(EXIT.asked);
    if (isEnding) exit(128 + (signal === "SIGINT" ? 2 : 15));
    isEnding = true;
    program.log.info({ signal }, "asked to end");
    void end(program);
  };
  if (isCell()) for (const signal of unheard) process.on(signal, () => {});
  else for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, onSignal);

  try {
    program = await start();
  } catch (error) {
    tellWhy(error);
    process.stderr.write(`${describeStartFailure(error)}\n`);
    exit(error instanceof SettingsError ? EXIT.settings : EXIT.failed);
  }
  const { unknown, graceMs } = program.settings;
  if (unknown.length > 0) program.log.warn({ unknown }, "there are no such settings");
  program.log.info("ready");
  const { keeper } = program;
  if (keeper === undefined) return tell({ kind: "ready", endsWithinMs: graceMs + CLOSING_MS });
  keeper.tell({ kind: "ready" });
  await keeper.ended;
  await end(program);
}

let isOurExit = false;

function exit(code: number): never {
  isOurExit = true;
  process.exit(code);
}

/**
 * Takes the channel to whoever has started this process away from `process`: a task that finds none there
 * takes itself to be alone, as it is in a worker that was started by hand.
 */
function takeChannel(): (message: object) => void {
  const send = process.send?.bind(process);
  delete process.send;
  // Whoever started it may be gone.
  return (message) => void send?.(message, undefined, undefined, () => {});
}

async function end({ log, settings, close, resign }: RunningProgram): Promise<void> {
  const { graceMs } = settings;
  const resigning = setTimeout(resign, graceMs + RESIGNING_MS);
  const limit = setTimeout(() => {
    log.error({ graceMs }, "did not come to an end in time");
    exit(EXIT.failed);
  }, graceMs + CLOSING_MS);
  try {
    await close();
    clearTimeout(resigning);
    clearTimeout(limit);
    log.info("ended");
    exit(EXIT.asked);
  } catch (error) {
    log.error({ err: error }, "could not end properly");
    exit(EXIT.failed);
  }
}
