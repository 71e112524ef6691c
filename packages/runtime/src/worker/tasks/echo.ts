import { defineTask } from "@millrace/sdk";

/** Its output is its input. */
export const echo = defineTask({ id: "echo", run: (_context, input) => input });
