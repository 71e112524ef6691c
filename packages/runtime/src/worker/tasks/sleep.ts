import { setTimeout as delay } from "node:timers/promises";
import { defineTask, TaskError } from "@millrace/sdk";

/**
 * Input `{ ms }`, at most an hour; its output is its input. It holds a worker's slot for that long, and
 * ends at once when it is aborted: a DELAY step waits without one.
 */
export const sleep = defineTask<{ ms: number }>({
  id: "sleep",
  async run({ signal }, input) {
    const { ms } = input;
    if (typeof ms !== "number" || !(ms >= 0 && ms <= 3_600_000)) {
      throw new TaskError("INVALID_TASK_INPUT", "sleep takes { ms }, from 0 to 3600000", {
        retryable: false,
      });
    }
    await delay(ms, undefined, { signal });
    return input;
  },
});
