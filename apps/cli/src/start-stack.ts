import { openStack, type Stack, type StackOptions } from "@millrace/devstack";
import { CommandError, messageOf } from "./errors.ts";

/**
 * `openStack`, whose failures are told to people: most are of the machine (a folder, a port, a task
 * module), and the message holds what the process in question said.
 *
 * @returns Undefined where `signal` was aborted before all was ready: nothing runs then.
 * @throws {CommandError} When something does not start; what had started is stopped again.
 */
export async function startStack(
  options: StackOptions & { readonly signal: AbortSignal },
): Promise<Stack | undefined> {
  try {
    return await openStack(options);
  } catch (error) {
    if (options.signal.aborted) return undefined;
    const code = error instanceof Error && "code" in error ? String(error.code) : "START_FAILED";
    throw new CommandError(code, messageOf(error), { cause: error });
  }
}
