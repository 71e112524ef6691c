import { defineTask, TaskError } from "@millrace/sdk";

interface FailInput {
  /** Name of the error; default "Failed". */
  readonly type?: string;
  readonly message?: string;
  readonly retryable?: boolean;
  /** Attempts that fail; later ones succeed with the input as output. Default: all. */
  readonly times?: number;
}

/** Fails on purpose, for tests of error handling. */
export const fail = defineTask<FailInput | null>({
  id: "fail",
  run({ attempt }, input) {
    const { type = "Failed", message = "failed on purpose", retryable = true, times } = input ?? {};
    if (times !== undefined && attempt > times) return input;
    throw new TaskError(type, message, { retryable });
  },
});
