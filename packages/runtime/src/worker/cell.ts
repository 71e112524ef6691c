import { stepJobSchema } from "@millrace/queue";
import type { Consumer, Handler, StepJob } from "@millrace/queue";
import * as z from "zod";

/**
 * The other side of `cells.ts`: a worker process that takes no jobs of its own and runs what the worker
 * that started it hands over, one step at a time.
 */

/** What says on the command line that a process is a cell. It is of no use to people. */
export const cellArgument = "cell";

export function isCell(): boolean {
  return process.argv.at(2) === cellArgument && process.channel !== undefined;
}

const stepMessage = z.object({ kind: z.literal("step"), job: stepJobSchema, jobId: z.string() });
/** Comes before the step can do harm, so that it is known whose death it was. */
export const begunMessage = z.object({ kind: z.literal("begun"), workerId: z.string() });

export function takeFromParent(
  worker: { readonly id: string },
  handle: Handler<StepJob>,
): Consumer {
  let active = 0;
  const run = async (sent: unknown) => {
    const parsed = stepMessage.safeParse(sent);
    if (!parsed.success) return;
    const { job, jobId } = parsed.data;
    active += 1;
    tell({ kind: "begun", workerId: worker.id });
    try {
      const running = await handle(job, jobId);
      tell({ kind: "taken" });
      await running?.ended;
    } finally {
      active -= 1;
      tell({ kind: "free" });
    }
  };
  const listener = (sent: unknown) => void run(sent);
  process.on("message", listener);
  return {
    // What comes from now on is refused by the handler.
    pause: () => Promise.resolve(),
    resume: () => {},
    close() {
      process.off("message", listener);
      return Promise.resolve();
    },
    get active() {
      return active;
    },
  };
}

/** A parent that has died hears nothing, and is no reason to fail. */
function tell(message: z.infer<typeof begunMessage> | { readonly kind: "taken" | "free" }): void {
  process.send?.(message, undefined, undefined, () => {});
}
