import { errorDetailsOf, errorMessageOf, errorNameOf, retryableOf } from "@millrace/sdk";
import type { TaskContext, ValueSchema } from "@millrace/sdk";
import type { Signal, TaskFailure } from "@millrace/engine";
import { executionKey, mapValues, resolveRetryPolicy } from "@millrace/engine";
import type { RetryPolicy } from "@millrace/engine";
import type { Json } from "@millrace/store";
import { changeToAllObjects } from "./all-objects.ts";
import { BadTaskValueError } from "./bad-task-value.ts";
import type { Held } from "./held.ts";
import { asJson, asShownJson } from "./json-form.ts";

/**
 * One run of a task: what its handler gets, what may end it, and what it comes to as a signal.
 *
 * Whichever is first decides: the handler settles, the attempt's clock runs out, the task falls silent,
 * or the step is taken away. A handler that goes on after that is on its own.
 */

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

/**
 * @param onEnd Called at once when it has ended, though its handler may go on.
 * @returns Undefined: the step was taken away, so there is nothing to report.
 */
export async function runAttempt(
  held: Held,
  onEnd: () => void,
): Promise<AttemptSignal | undefined> {
  const { abort, step } = held;
  const timers: (NodeJS.Timeout | undefined)[] = [];
  let heartbeat: Heartbeat | undefined;
  let ended: Ended;
  try {
    ended = await new Promise<Ended>((resolve, reject) => {
      const isCompensable = held.definition.compensationFor.has(step.stepId);
      const graceMs = isCompensable ? awaitedGraceMs : abortGraceMs;
      abort.onAbort(() => {
        timers.push(after(graceMs, () => resolve({ kind: "lost" })));
      });
      const timeoutMs = step.timeoutMs ?? held.known.timeoutMs;
      if (timeoutMs !== null) {
        timers.push(after(timeoutMs, () => resolve({ kind: "timedOut", clock: "timeout" })));
      }
      heartbeat = awaitBeats(held, () => resolve({ kind: "timedOut", clock: "heartbeat" }));
      callHandler(held, heartbeat.beat).then(resolve, reject);
    });
    if (ended.kind === "timedOut") {
      const reason = new Error(`the attempt ended by its ${ended.clock}`);
      // As that of `AbortSignal.timeout()` is named.
      reason.name = "TimeoutError";
      abort.abort(reason);
    }
  } finally {
    onEnd();
    heartbeat?.stop();
    for (const timer of timers) clearTimeout(timer);
  }
  const change = changeToAllObjects();
  return change === undefined ? signalOf(held, ended) : held.mistrust(change);
}

function signalOf(held: Held, ended: Ended): AttemptSignal | undefined {
  const { path, iteration, attempt } = held.step;
  switch (ended.kind) {
    case "returned":
      return { kind: "stepSucceeded", path, iteration, attempt, output: ended.output };
    case "failed": {
      const { failure } = ended;
      const retry = retryPolicyOf(held);
      return { kind: "stepFailed", path, iteration, attempt, failure, retry };
    }
    case "timedOut": {
      const { clock } = ended;
      const retry = retryPolicyOf(held);
      return { kind: "attemptTimedOut", path, iteration, attempt, clock, retry };
    }
    case "lost":
      return undefined;
  }
}

type Ended =
  | { readonly kind: "returned"; readonly output: Json }
  | { readonly kind: "failed"; readonly failure: TaskFailure }
  | { readonly kind: "timedOut"; readonly clock: "timeout" | "heartbeat" }
  | { readonly kind: "lost" };

/** Of this process, those among them that go on although their attempt has ended. */
export function handlersAtWork(): number {
  return atWork;
}

let atWork = 0;

async function callHandler(held: Held, beat: (progress?: Json) => void): Promise<Ended> {
  atWork++;
  try {
    if (held.abort.reason !== undefined) throw held.abort.reason;
    const { task } = held.known;
    const input = checked("input", task.input, inputOf(held));
    const result = checked("output", task.output, await task.run(contextOf(held, beat), input));
    return { kind: "returned", output: asJson(result) };
  } catch (error) {
    return { kind: "failed", failure: failureOf(error) };
  } finally {
    atWork--;
  }
}

/** Each run has a copy of its own: what a handler does to its input must not reach the next run. */
function inputOf({ step, snapshot }: Held): unknown {
  return copyOf(step.input === undefined ? snapshot.input : step.input);
}

/** For JSON several times as fast as `structuredClone`. */
function copyOf(value: Json): Json {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(copyOf);
  return mapValues(value as { readonly [key: string]: Json }, copyOf);
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
      return (copy ??= { input: copyOf(snapshot.input) }).input;
    },
  };
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

/** Whatever was thrown becomes a failure that can be stored. */
export function failureOf(error: unknown): TaskFailure {
  return {
    type: storable(errorNameOf(error), 300),
    message: storable(errorMessageOf(error), 4_000),
    details: asShownJson(errorDetailsOf(error)),
    retryable: retryableOf(error),
  };
}

/** Cut first: a cut may leave half a character. */
export function storable(text: string, maxLength: number): string {
  return text.slice(0, maxLength).replace(unstorable, "\uFFFD");
}

/**
 * What Postgres takes none of: NUL, and half a surrogate pair. With the `u` flag a pair is one
 * character, so that only a lone half is a surrogate.
 */
const unstorable = /[\0\p{Surrogate}]/gu;

interface Heartbeat {
  readonly beat: (progress?: Json) => void;
  readonly stop: () => void;
}

/** Tells when `heartbeat()` has not been called for the step's heartbeatTimeout. */
function awaitBeats(held: Held, onSilent: () => void): Heartbeat {
  const limitMs = held.step.heartbeatTimeoutMs ?? held.known.heartbeatTimeoutMs;
  let timer: NodeJS.Timeout | undefined;
  const arm = () => {
    if (limitMs === null) return;
    clearTimeout(timer);
    timer = after(limitMs, onSilent);
  };
  arm();
  return {
    beat(progress) {
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
