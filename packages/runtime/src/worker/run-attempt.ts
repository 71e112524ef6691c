import { types } from "node:util";
import { errorDetailsOf, errorMessageOf, errorNameOf, retryableOf } from "@millrace/sdk";
import type { TaskContext, ValueSchema } from "@millrace/sdk";
import type { Signal, TaskFailure } from "@millrace/engine";
import { executionKey, resolveRetryPolicy } from "@millrace/engine";
import type { RetryPolicy } from "@millrace/engine";
import { checkJson } from "@millrace/store";
import type { Json } from "@millrace/store";
import type { Held } from "./held.ts";

/**
 * One run of a task: what its handler gets, what may end it, and what it comes to as a signal.
 *
 * Whichever is first decides: the handler settles, the attempt's clock runs out, the task falls silent,
 * or the step is taken away. A handler that goes on after that is on its own.
 */

/** What a step may return, as JSON text (CONTRACT 1, limits; known fault C68). */
export const maxOutputBytes = 1_000_000;

/** `setTimeout` fires at once beyond this. */
const longestTimerMs = 2 ** 31 - 1;

/** A handler that was told to stop is waited for so long, then its slot is given back. */
const abortGraceMs = 5_000;

/** As long as a cancel awaits a step that has a compensation step, whose result still counts. */
const awaitedGraceMs = 30_000;

export type AttemptSignal = Extract<
  Signal,
  { kind: "stepSucceeded" | "stepFailed" | "attemptTimedOut" }
>;

/** Undefined: the step was taken away, so there is nothing to report. */
export async function runAttempt(held: Held): Promise<AttemptSignal | undefined> {
  const retry = retryPolicyOf(held);
  const ended = await firstOf(held);
  const { path, iteration, attempt } = held.step;
  const execution = { path, iteration, attempt };
  switch (ended.kind) {
    case "returned":
      return { kind: "stepSucceeded", ...execution, output: ended.output };
    case "failed":
      return { kind: "stepFailed", ...execution, failure: ended.failure, retry };
    case "timedOut":
      return { kind: "attemptTimedOut", ...execution, clock: ended.clock, retry };
    case "lost":
      return undefined;
  }
}

type Ended =
  | { readonly kind: "returned"; readonly output: Json }
  | { readonly kind: "failed"; readonly failure: TaskFailure }
  | { readonly kind: "timedOut"; readonly clock: "timeout" | "heartbeat" }
  | { readonly kind: "lost" };

async function firstOf(held: Held): Promise<Ended> {
  const { abort, step } = held;
  const timers = new Set<NodeJS.Timeout | undefined>();
  const heartbeat = silenceTimer(held);
  const handler = callHandler(held, heartbeat.beat);
  const clock = new Promise<Ended>((resolve) => {
    const timeoutMs = step.timeoutMs ?? held.known.timeoutMs;
    if (timeoutMs === null) return;
    timers.add(after(timeoutMs, () => resolve({ kind: "timedOut", clock: "timeout" })));
  });
  const isCompensable = held.definition.compensationFor.has(step.stepId);
  const graceMs = isCompensable ? awaitedGraceMs : abortGraceMs;
  const lost = new Promise<Ended>((resolve) => {
    abort.onAbort(() => {
      timers.add(after(graceMs, () => resolve({ kind: "lost" })));
    });
  });
  try {
    const ended = await Promise.race([handler, clock, heartbeat.silent, lost]);
    if (ended.kind === "timedOut")
      abort.abort(new Error(`the attempt ended by its ${ended.clock}`));
    return ended;
  } finally {
    heartbeat.stop();
    for (const timer of timers) clearTimeout(timer);
  }
}

async function callHandler(held: Held, beat: (progress?: Json) => void): Promise<Ended> {
  try {
    if (held.abort.reason !== undefined) throw held.abort.reason;
    const { task } = held.known;
    const input = checked("input", task.input, inputOf(held));
    const result = checked("output", task.output, await task.run(contextOf(held, beat), input));
    return { kind: "returned", output: asJson(result) };
  } catch (error) {
    return { kind: "failed", failure: failureOf(error) };
  }
}

/** Each run has a copy of its own: what a handler does to its input must not reach the next run. */
function inputOf({ step, snapshot }: Held): unknown {
  return structuredClone(step.input === undefined ? snapshot.input : step.input);
}

function contextOf(held: Held, heartbeat: (progress?: Json) => void): TaskContext {
  const { step, snapshot } = held;
  const executionId = `${snapshot.id}.${executionKey(step.path, step.iteration)}`;
  return {
    idempotencyKey: executionId,
    attempt: step.attempt,
    deliveries: step.deliveries,
    stepId: step.stepId,
    executionId,
    instance: instanceOf(snapshot),
    // Made for those who ask.
    get signal() {
      return held.abort.signal;
    },
    get logger() {
      return held.log();
    },
    heartbeat,
  };
}

/** What follows is decided on the snapshot: of its input, too, a handler has a copy, where it asks. */
function instanceOf(snapshot: Held["snapshot"]): TaskContext["instance"] {
  const { id, workflowId, workflowVersion, correlationId, tenantId, userId } = snapshot;
  let copy: { readonly input: Json } | undefined;
  return {
    id,
    workflowId,
    workflowVersion,
    correlationId,
    tenantId,
    userId,
    get input() {
      return (copy ??= { input: structuredClone(snapshot.input) }).input;
    },
  };
}

class BadTaskValueError extends Error {
  readonly type: string;
  readonly details: Json;
  readonly retryable: boolean;
  constructor(type: string, message: string, details: Json, retryable: boolean) {
    super(message);
    this.type = type;
    this.details = details;
    this.retryable = retryable;
  }
}

function checked(
  what: "input" | "output",
  schema: ValueSchema | undefined,
  value: unknown,
): unknown {
  if (schema === undefined) return value;
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const issues = parsed.error.issues.map(
    ({ path, message }) => `/${path.map(String).join("/")}: ${message}`,
  );
  throw new BadTaskValueError(
    what === "input" ? "INVALID_TASK_INPUT" : "INVALID_TASK_OUTPUT",
    `the ${what} does not match the task's schema: ${issues.join("; ")}`,
    issues,
    what === "output",
  );
}

/**
 * The result as it will be read back.
 *
 * @throws BadTaskValueError where a result has no exact JSON form, or is too large.
 */
export function asJson(result: unknown): Json {
  const text = stringify(result) ?? "null";
  const bytes = Buffer.byteLength(text);
  if (bytes > maxOutputBytes) {
    throw new BadTaskValueError(
      "PAYLOAD_TOO_LARGE",
      `the task returned ${bytes} bytes of JSON, and a step's output may have ${maxOutputBytes}; store the data elsewhere and return a reference`,
      { bytes, limit: maxOutputBytes },
      true,
    );
  }
  const value = JSON.parse(text) as Json;
  const faults = checkJson(value).map(({ path, message }) => `${path || "the result"}: ${message}`);
  if (faults.length > 0) throw notJson(faults);
  return value;
}

/** Undefined for what JSON has no form for at all, such as a function. @throws BadTaskValueError */
function stringify(result: unknown): string | undefined {
  if (result === undefined) return undefined;
  let text: string | undefined;
  try {
    text = JSON.stringify(result) as string | undefined;
    // What JSON has no form for becomes null or {} without a word; only then is each value looked at.
    if (text !== undefined && /null|\{\}/.test(text)) JSON.stringify(result, refuseLost);
  } catch (error) {
    throw notJson([error instanceof Error ? error.message : String(error)]);
  }
  if (text === undefined) throw notJson([`the result is a ${typeof result}`]);
  return text;
}

/** As a replacer: `value` is what `toJSON` has made of the member of `this`, which is null of a Date without a time. */
function refuseLost(this: unknown, key: string, value: unknown): unknown {
  const member = (this as Record<string, unknown>)[key];
  const lost = lostAs(types.isDate(member) ? member : value);
  if (lost === undefined) return value;
  throw new Error(`${key === "" ? "the result" : `"${key}"`} is ${lost}`);
}

function lostAs(value: unknown): string | undefined {
  if (typeof value === "number" && !Number.isFinite(value)) return String(value);
  if (typeof value !== "object" || value === null || Object.keys(value).length > 0)
    return undefined;
  if (types.isMap(value)) return "a Map; return Object.fromEntries(it), or [...it]";
  if (types.isSet(value)) return "a Set; return [...it]";
  if (types.isPromise(value)) return "a promise that was not awaited";
  if (types.isDate(value) && Number.isNaN(Number(value))) return "a Date without a time";
  return undefined;
}

function notJson(faults: readonly string[]): BadTaskValueError {
  const message = `the task returned what JSON cannot carry: ${faults.join("; ")}`;
  return new BadTaskValueError("OUTPUT_NOT_JSON", message, faults, true);
}

/** Whatever was thrown becomes a failure that can be stored. */
export function failureOf(error: unknown): TaskFailure {
  return {
    type: storable(errorNameOf(error), 300),
    message: storable(errorMessageOf(error), 4_000),
    details: storableDetails(errorDetailsOf(error)),
    retryable: retryableOf(error),
  };
}

/** Cut first: a cut may leave half a character. */
export function storable(text: string, maxLength: number): string {
  return text.slice(0, maxLength).replace(unstorable, "\uFFFD");
}

/** Null where they have no exact JSON form, or one that is larger than a result may be. */
function storableDetails(details: unknown): Json {
  try {
    return details === undefined ? null : asJson(details);
  } catch {
    return null;
  }
}

/**
 * What Postgres takes none of: NUL, and half a surrogate pair. With the `u` flag a pair is one
 * character, so that only a lone half is a surrogate.
 */
const unstorable = /[\0\p{Surrogate}]/gu;

/** Ends the attempt when `heartbeat()` has not been called for the step's heartbeatTimeout. */
function silenceTimer(held: Held) {
  const limitMs = held.step.heartbeatTimeoutMs ?? held.known.heartbeatTimeoutMs;
  let timer: NodeJS.Timeout | undefined;
  let resolveSilent: (ended: Ended) => void = () => {};
  const silent = new Promise<Ended>((resolve) => {
    resolveSilent = resolve;
  });
  const arm = () => {
    if (limitMs === null) return;
    clearTimeout(timer);
    timer = after(limitMs, () => resolveSilent({ kind: "timedOut", clock: "heartbeat" }));
  };
  arm();
  return {
    silent,
    beat(progress?: Json) {
      arm();
      held.reportProgress(progress);
    },
    stop: () => clearTimeout(timer),
  };
}

/** Beyond what a timer can hold, the reconciler fires the clock by the row's `due_at`. */
function after(ms: number, act: () => void): NodeJS.Timeout | undefined {
  return ms <= longestTimerMs ? setTimeout(act, ms) : undefined;
}

/** The step's fields, then the task's own, then the definition's, then the default (CONTRACT 1.3). */
export function retryPolicyOf({ call, known, definition }: Held): RetryPolicy {
  return resolveRetryPolicy(call.retry, known.retry ?? undefined, definition.retry);
}
