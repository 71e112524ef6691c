import { defineTask } from "@millrace/sdk";

/** Does nothing; its output is null. */
export const noop = defineTask({ id: "noop", run: () => null });
