import type { Json } from "@millrace/expressions";
import { defined } from "../assert.ts";
import type {
  DelayStep,
  EmitEventStep,
  EndStep,
  EventWaitStep,
  SetStep,
  Step,
} from "../definition/definition.ts";
import { waitPathOf } from "../definition/paths.ts";
import { eventNameFrom, isLifecyclePattern } from "../definition/pattern.ts";
import { BadValueError } from "../errors.ts";
import type { NewWait } from "../state/decision.ts";
import { executionKey } from "../state/snapshot.ts";
import type { JsonObject, LiveExecution, TimerKind, WorkflowError } from "../state/snapshot.ts";
import { inStoredOrder, withKeysInOrder } from "../state/stored-order.ts";
import { enterSubWorkflow } from "./child.ts";
import { dispatchTask } from "./dispatch.ts";
import { cancelInstance, completeInstance, completeWith, failInstance } from "./end.ts";
import { endOfDelay } from "./end-of-delay.ts";
import { after, clockMs, limitOf, textOf } from "./evaluate.ts";
import { insertInstant, settleCompleted } from "./execution.ts";
import { openBranches, openItems } from "./join.ts";
import { matcherFields } from "./listen.ts";
import { putLive } from "./live-executions.ts";
import { openWait } from "./open-waits.ts";
import { evaluateTemplate } from "./scope.ts";
import { setTimer } from "./set-timers.ts";
import { noteStep } from "./turn.ts";
import type { Turn } from "./turn.ts";
import { updateExecution } from "./write-rows.ts";

/**
 * Beginning one execution, by the type of its step. Whatever can fail is evaluated first, so that a
 * step whose values fail has left nothing behind.
 */

/**
 * @returns Whether the step is done at once and the walk goes on; else it stays live, or has ended
 *   the instance.
 * @throws ExpressionError, BadValueError
 */
export function enterStep(turn: Turn, current: Step, execution: LiveExecution): boolean {
  switch (current.type) {
    case "TASK": {
      const { input } = current;
      const value =
        input === undefined ? undefined : (evaluateTemplate(turn, input, execution) ?? null);
      dispatchTask(turn, current, execution, value);
      return false;
    }
    case "EVENT_WAIT":
      enterEventWait(turn, current, execution);
      return false;
    case "DELAY":
      enterDelay(turn, current, execution);
      return false;
    case "PARALLEL":
      openBranches(turn, current, execution);
      return false;
    case "MAP": {
      const output = openItems(turn, current, execution);
      if (output === undefined) return false;
      settleCompleted(turn, current, execution, output);
      return true;
    }
    case "SUB_WORKFLOW":
      return enterSubWorkflow(turn, current, execution);
    case "CHOICE":
      insertInstant(turn, current.type, execution);
      settleCompleted(turn, current, execution, undefined);
      return true;
    case "SET":
      enterSet(turn, current, execution);
      return true;
    case "EMIT_EVENT":
      emitEvent(turn, current, execution);
      return true;
    case "END":
      enterEnd(turn, current, execution);
      return false;
  }
}

function enterEventWait(turn: Turn, current: EventWaitStep, execution: LiveExecution): void {
  const { stepId, path, iteration } = execution;
  const { deliver, mode } = current;
  const matchers = current.events.map((event) => matcherFields(turn, event, execution));
  const timeoutMs = clockMs(turn, current.eventTimeout?.duration, execution);
  const ownEnd = timeoutMs === null ? null : after(turn, timeoutMs);
  const end = sooner("wait", ownEnd, limitOf(turn, current, execution));
  const lookbackFrom = lookbackStart(turn, current, execution);
  if (lookbackFrom !== null) refuseLifecycle(matchers);
  insertInstant(turn, current.type, execution);
  updateExecution(turn, execution, { status: "WAITING" });
  for (const [place, matcher] of matchers.entries()) {
    const at = waitPathOf(path, mode && place);
    openWait(turn, {
      ...matcher,
      path: at,
      iteration,
      stepId,
      purpose: "STEP",
      deliver,
      lookbackFrom,
    });
  }
  if (end !== undefined) setTimer(turn, end.timer, execution, end.dueAt);
  putLive(turn, {
    ...execution,
    phase: "WAITING",
    timers: end === undefined ? [] : [end.timer],
    ...keysToWatch(current, matchers),
  });
  const patterns = matchers.map(({ pattern }) => pattern);
  const data = mode === undefined ? { pattern: patterns[0] ?? "" } : { mode, patterns };
  noteStep(turn, "workflow.step.waiting", execution, data);
}

/** Of what is known before it runs the checker says so. @throws BadValueError */
function refuseLifecycle(matchers: readonly Pick<NewWait, "pattern">[]): void {
  const reserved = matchers.find(({ pattern }) => isLifecyclePattern(pattern));
  if (reserved === undefined) return;
  const pattern = JSON.stringify(reserved.pattern);
  throw new BadValueError(`events under ${pattern} are not looked back for`);
}

/** Keys that have to be written again when what they read changes. */
function keysToWatch(
  { mode, events }: EventWaitStep,
  matchers: readonly Pick<NewWait, "key">[],
): Pick<LiveExecution, "waitKey" | "awaiting"> {
  const keys = matchers.map(({ key }, place) => (events[place]?.keyIsFixed === true ? null : key));
  if (mode !== undefined) return { awaiting: Object.fromEntries(keys.entries()) };
  const [key] = keys;
  return key === null || key === undefined ? {} : { waitKey: key };
}

/**
 * The timer that ends a step: its own, or the end of its `timeout`. The later one would never fire, and
 * is not set. Of two that are due together its own goes first, as that is no error.
 */
function sooner(
  own: TimerKind,
  ownDueAt: Date | null,
  limit: Date | null,
): { readonly timer: TimerKind; readonly dueAt: Date } | undefined {
  if (limit !== null && (ownDueAt === null || limit < ownDueAt)) {
    return { timer: "total", dueAt: limit };
  }
  return ownDueAt === null ? undefined : { timer: own, dueAt: ownDueAt };
}

function lookbackStart(
  turn: Turn,
  { lookback }: EventWaitStep,
  execution: LiveExecution,
): Date | null {
  if (lookback === "instance") return turn.state.createdAt;
  const isSaid = lookback !== undefined && "template" in lookback;
  if (isSaid && evaluateTemplate(turn, lookback.template, execution) === "instance") {
    return turn.state.createdAt;
  }
  const ms = clockMs(turn, lookback, execution);
  return ms === null ? null : after(turn, -ms);
}

function enterDelay(turn: Turn, current: DelayStep, execution: LiveExecution): void {
  const { until, counted } = endOfDelay(turn, current, execution);
  const limit = limitOf(turn, current, execution);
  const { timer, dueAt } = defined(sooner("delay", until, limit), "end of a delay");
  insertInstant(turn, current.type, execution);
  updateExecution(turn, execution, { status: "WAITING" });
  setTimer(turn, timer, execution, dueAt);
  putLive(turn, { ...execution, phase: "WAITING", timers: [timer] });
  noteStep(turn, "workflow.step.waiting", execution, { until: dueAt.toISOString(), ...counted });
}

function enterSet(turn: Turn, current: SetStep, execution: LiveExecution): void {
  const values = current.variables.map(
    ([name, template]) => [name, evaluateTemplate(turn, template, execution)] as const,
  );
  insertInstant(turn, current.type, execution);
  setVariables(turn, values);
  settleCompleted(turn, current, execution, undefined);
}

/** An undefined value leaves its variable as it was. */
export function setVariables(
  turn: Turn,
  values: readonly (readonly [string, Json | undefined])[],
): void {
  const known = values.flatMap(([name, value]) =>
    value === undefined ? [] : [[name, inStoredOrder(value)]],
  );
  if (known.length === 0) return;
  turn.state.variables = withKeysInOrder({
    ...turn.state.variables,
    ...Object.fromEntries(known),
  });
}

/** The event goes with the commit; whom it concerns is looked for after it. */
function emitEvent(turn: Turn, current: EmitEventStep, execution: LiveExecution): void {
  const pattern = eventNameFrom(evaluateTemplate(turn, current.eventPattern, execution));
  const payload = evaluateTemplate(turn, current.payload, execution) ?? null;
  const id = `${turn.state.id}:${executionKey(execution.path, execution.iteration)}`;
  turn.emitted.push({ kind: "emitEvent", event: { id, pattern, payload } });
  insertInstant(turn, current.type, execution);
  noteStep(turn, "workflow.event.emitted", execution, { eventId: id, pattern });
  settleCompleted(turn, current, execution, { id, pattern });
}

/** An END step is COMPLETED whatever its outcome; the instance ends wherever it stands. */
function enterEnd(turn: Turn, current: EndStep, execution: LiveExecution): void {
  const value = (template: EndStep["output"]) =>
    template && evaluateTemplate(turn, template, execution);
  const output = value(current.output);
  const error = value(current.error);
  const reason = value(current.reason);
  insertInstant(turn, current.type, execution);
  settleCompleted(turn, current, execution, output);
  switch (current.outcome) {
    case "COMPLETED":
      return current.output === undefined
        ? completeInstance(turn)
        : completeWith(turn, output ?? null);
    case "FAILED":
      return failInstance(turn, endError(current.stepId, error));
    case "CANCELLED":
      return cancelInstance(turn, {
        reason: textOf(reason) ?? null,
        requestedBy: `step:${current.stepId}`,
        requestedAt: turn.now.toISOString(),
        source: "END",
        shouldCompensate: true,
      });
  }
}

/** As a rule `{ type, message, details }`; a text alone is the message. */
function endError(stepId: string, value: Json | undefined): WorkflowError {
  const { type, message = value, details = null } = isObject(value) ? value : {};
  return {
    kind: "END",
    type: textOf(type) ?? "FAILED",
    message:
      (isObject(message) ? undefined : textOf(message)) ?? `the workflow ended at step "${stepId}"`,
    stepId,
    attempt: null,
    details,
  };
}

function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
