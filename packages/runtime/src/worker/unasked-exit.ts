import { ownFrames } from "./own-frames.ts";

/**
 * Code of users that ends its worker: it costs every step that the worker holds, and by itself says nothing
 * of who it was. What is known when it happens is the module that was being loaded, and the call itself.
 */

let loaded: string | undefined;

/** What happens meanwhile is the doing of this module, or of what it imports. */
export async function whileLoading<T>(module: string, load: () => Promise<T>): Promise<T> {
  loaded = module;
  try {
    return await load();
  } finally {
    loaded = undefined;
  }
}

/** To be asked in a listener of the process's `exit`: the call that ends it is in the stack then. */
export function describeUnaskedExit(code: number): string {
  const asked = new Error("to see who calls");
  const how = exitCall.test(asked.stack ?? "")
    ? [`process.exit(${code}) was called`, ...ownFrames(asked, exitCall)].join("\n")
    : `it ended with exit code ${code}, since there was nothing left to do`;
  return loaded === undefined
    ? `a task ended its worker, and all that ran in it; throw an error instead: ${how}`
    : `the task module ${loaded} ended its worker while it was loaded; throw an error instead: ${how}`;
}

/** Where Node has `process.exit`. */
const exitCall = /node:internal\/process\/per_thread/;
