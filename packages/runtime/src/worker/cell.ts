import { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { stepJobSchema } from "@millrace/queue";
import type { Consumer, Handler, StepJob } from "@millrace/queue";
import type { Count } from "@millrace/telemetry";
import * as z from "zod";
import { openChannel } from "./channel.ts";
import { handlersAtWork } from "./run-attempt.ts";

/**
 * The other side of `cells.ts`: a worker process that takes no jobs of its own and runs what the worker
 * that started it, its keeper, hands over, one step at a time.
 */

/** What says on the command line that a process is a cell. It is of no use to people. */
export const cellArgument = "cell";

export function isCell(): boolean {
  return process.argv.at(2) === cellArgument;
}

/** Of the pipe to the keeper: the first after the outputs. */
const channelDescriptor = 3;

const fromKeeper = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("hello"), token: z.string(), pid: z.int() }),
  z.object({ kind: z.literal("step"), job: stepJobSchema, jobId: z.string() }),
  z.object({ kind: z.literal("end") }),
]);
export type KeeperMessage = z.infer<typeof fromKeeper>;
type Introduction = Extract<KeeperMessage, { kind: "hello" }>;

const count = z.object({
  metric: z.string(),
  labels: z.record(z.string(), z.union([z.string(), z.number()])),
  value: z.number(),
});

export const fromCell = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("ready") }),
  /** Comes before the step can do harm, so that it is known whose death it was. */
  z.object({ kind: z.literal("begun"), workerId: z.string() }),
  z.object({ kind: z.literal("taken") }),
  /**
   * With what is to be counted of the step, since nobody asks a cell for its metrics, and whether its handler
   * goes on all the same, since it does not heed its abort.
   */
  z.object({ kind: z.literal("free"), counts: z.array(count), isHaunted: z.boolean() }),
  /** Why it ends by itself; what else it says of that is in the log of its keeper. */
  z.object({ kind: z.literal("dying"), why: z.string() }),
]);
export type CellMessage = z.infer<typeof fromCell>;

/** The worker that has started this cell. */
export interface Keeper {
  tell(message: CellMessage): void;
  /** Who takes the steps that it hands over; nobody, and they are not heard. */
  handOverTo(take: ((job: StepJob, jobId: string) => void) | undefined): void;
  /** What is counted here is counted there, once a step is over. */
  readonly count: (count: Count) => void;
  takeCounts(): Count[];
  /** Settles once it asks this process to end, or has died. */
  readonly ended: Promise<void>;
}

/** Between two looks whether a keeper has died. */
const lookMs = 50;
/** A step counts a handful. */
const mostCounts = 1_000;

let lastWords: (why: string) => void = () => {};
const mostWords = 300;

/** Tells the keeper why this process is about to end, where it has one. */
export function tellWhy(error: unknown): void {
  lastWords(String(error).slice(0, mostWords));
}

/**
 * Hears from the worker that has started this process. To be called before a task is loaded: what a task
 * writes into the pipe lacks the token, which is known from here on to nobody else.
 */
export async function meetKeeper(): Promise<Keeper> {
  let take: ((job: StepJob, jobId: string) => void) | undefined;
  let met: ((hello: Introduction) => void) | undefined;
  let end = () => {};
  const hello = new Promise<Introduction>((resolve) => (met = resolve));
  const ended = new Promise<void>((resolve) => (end = resolve));
  const pipe = new Socket({ fd: channelDescriptor });
  const channel = openChannel(pipe, (sent) => {
    const { data: message } = fromKeeper.safeParse(sent);
    if (message?.kind === "hello") met?.(message);
    if (message?.kind === "step") take?.(message.job, message.jobId);
    if (message?.kind === "end") end();
  });
  const { token, pid } = await hello;
  lastWords = (why) => channel.send({ kind: "dying", why, token });
  pipe.once("close", () => void deathOf(pid).then(end));

  const counts: Count[] = [];
  return {
    tell: (message) => channel.send({ ...message, token }),
    handOverTo(taking) {
      take = taking;
    },
    count(each) {
      if (counts.length < mostCounts) counts.push(each);
    },
    takeCounts: () => counts.splice(0),
    ended,
  };
}

/**
 * A pipe that closes is the death of the keeper, or the doing of the step, for which the keeper kills this
 * process: to hand the step over would have it come again for ever.
 */
async function deathOf(keeper: number): Promise<void> {
  while (process.ppid === keeper) await sleep(lookMs);
}

/** One step at a time: what comes beside it is not from the keeper. */
export function takeFromKeeper(
  keeper: Keeper,
  worker: { readonly id: string },
  handle: Handler<StepJob>,
): Consumer {
  let isBusy = false;
  const run = async (job: StepJob, jobId: string) => {
    if (isBusy) return;
    isBusy = true;
    keeper.tell({ kind: "begun", workerId: worker.id });
    try {
      const running = await handle(job, jobId);
      keeper.tell({ kind: "taken" });
      await running?.ended;
    } finally {
      isBusy = false;
      keeper.tell({
        kind: "free",
        counts: keeper.takeCounts(),
        isHaunted: handlersAtWork() > 0,
      });
    }
  };
  keeper.handOverTo((job, jobId) => void run(job, jobId));
  return {
    // What comes from now on is refused by the handler.
    pause: () => Promise.resolve(),
    resume: () => {},
    close() {
      keeper.handOverTo(undefined);
      return Promise.resolve();
    },
    get active() {
      return isBusy ? 1 : 0;
    },
  };
}
