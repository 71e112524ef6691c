import { parseWith, RetryDocument } from "@millrace/contract";
import type { TaskContext } from "./context.ts";

export interface ValueIssue {
  readonly path: readonly PropertyKey[];
  readonly message: string;
}

/** What a zod schema of any version offers, and anything else that has the same method. */
export interface ValueSchema<T = unknown> {
  safeParse(
    value: unknown,
  ):
    | { readonly success: true; readonly data: T }
    | { readonly success: false; readonly error: { readonly issues: readonly ValueIssue[] } };
}

/** The function that a TASK step calls, and what its author knows about it. */
export interface Task<Input = unknown, Output = unknown> {
  readonly id: string;
  readonly description?: string | undefined;
  /** Checked before each run; what does not fit fails the step and is not retried. */
  readonly input?: ValueSchema<Input> | undefined;
  /** Checked after each run. */
  readonly output?: ValueSchema<Output> | undefined;
  /** Fields that the step leaves open. */
  readonly retry?: RetryDocument | undefined;
  /** Of one attempt: an ISO 8601 duration. */
  readonly timeout?: string | undefined;
  readonly heartbeatTimeout?: string | undefined;
  readonly queue?: string | undefined;
  /**
   * Each run has a process for itself, from the first one on, so that whatever ends it, a crash of a native
   * library or memory that runs out say, ends nothing else; after five such ends the step is POISONED, as ever.
   * For what may do so: a run waits for one of the worker's `MILLRACE_CELLS` such processes, which takes half a
   * second of CPU to start and 150 MB, is used again by the next run, and ends after 2 s without one. Nothing
   * that a run leaves in memory can be relied on in the next. A worker that shares its process with other
   * code starts none: it says so, and runs the task in its own, one at a time. False when absent.
   */
  readonly isolated?: boolean | undefined;
  /** The result must have a JSON form; `undefined` is kept as null. */
  run(context: TaskContext, input: Input): Output | Promise<Output>;
}

/**
 * Gives a task its types and checks what a compiler cannot. A plain object of the same shape is a
 * task, too.
 *
 * @throws {TypeError} When it could never run.
 */
export function defineTask<Input = unknown, Output = unknown>(
  task: Task<Input, Output>,
): Task<Input, Output> {
  const fault = taskFault(task);
  if (fault !== undefined) throw new TypeError(fault);
  return task;
}

export function isTask(value: unknown): value is Task {
  return taskFault(value) === undefined;
}

/** Why a value is no task, in words for its author; `undefined` when it is one. */
export function taskFault(value: unknown): string | undefined {
  if (typeof value !== "object" || value === null) return "a task is an object { id, run }";
  const { id, run, input, output, retry, isolated } = value as Partial<Record<keyof Task, unknown>>;
  if (typeof id !== "string" || id === "") return 'a task has a non-empty string "id"';
  if (typeof run !== "function") return `task ${id}: "run" must be a function`;
  if (!isSchema(input)) return `task ${id}: "input" must be a schema with a safeParse method`;
  if (!isSchema(output)) return `task ${id}: "output" must be a schema with a safeParse method`;
  if (isolated !== undefined && typeof isolated !== "boolean")
    return `task ${id}: "isolated" must be true or false`;
  const problems = retry === undefined ? [] : (parseWith(RetryDocument, retry).problems ?? []);
  if (problems.length === 0) return undefined;
  const faults = problems.map(({ path, message }) => `"retry${path}": ${message}`);
  return `task ${id}: ${faults.join("; ")}`;
}

function isSchema(value: unknown): boolean {
  if (value === undefined) return true;
  return (
    ((typeof value === "object" && value !== null) || typeof value === "function") &&
    typeof Reflect.get(value, "safeParse") === "function"
  );
}
