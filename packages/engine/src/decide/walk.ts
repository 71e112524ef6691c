import { ExpressionError } from "@millrace/expressions";
import type { Json } from "@millrace/expressions";
import { durationMs } from "../definition/duration.ts";
import { resolveTime } from "../definition/time.ts";
import type {
  DelayStep,
  DurationValue,
  EndStep,
  EventWaitStep,
  SetStep,
  Step,
  TaskCall,
  TaskStep,
  Transitions,
} from "../definition/definition.ts";
import { BadValueError } from "../errors.ts";
import { defined } from "../assert.ts";
import type { LiveExecution, TimerKind, WorkflowError } from "../state/snapshot.ts";
import { endInstance, failInstance } from "./end.ts";
import { evaluateCondition, evaluateTemplate, scopeFor } from "./scope.ts";
import type { Context } from "./scope.ts";
import {
  insertExecution,
  note,
  openWait,
  putLive,
  setTimer,
  updateExecution,
} from "./turn.ts";
import type { Turn } from "./turn.ts";
import { waitKeyOf } from "./wait.ts";

/**
 * Moving along the graph: entering steps, choosing transitions, routing errors.
 *
 * A walk is a loop and not a recursion: each `enter` says which step follows at once, if any does.
 */

/** Steps that one decision walks through before it commits and goes on (DESIGN, The pure core). */
const maxWalk = 1_000;

/** Steps whose output can become the instance's (CONTRACT 1, Default `output`). */
const outputTypes: ReadonlySet<Step["type"]> = new Set(["TASK", "EVENT_WAIT"]);

/** Enters `stepId` and whatever follows it without work outside. */
export function walk(turn: Turn, stepId: string | undefined): void {
  let next = stepId;
  while (next !== undefined) {
    turn.walked += 1;
    if (turn.walked > maxWalk) {
      park(turn, next);
      return;
    }
    next = enter(turn, step(turn, next));
  }
}

export function step(turn: Turn, stepId: string): Step {
  return defined(turn.definition.steps.get(stepId), `step ${stepId}`);
}

/** The step succeeded: its execution is COMPLETED, and what follows is entered. */
export function completeStep(
  turn: Turn,
  execution: LiveExecution,
  output: Json | undefined,
): string | undefined {
  const current = step(turn, execution.stepId);
  settleCompleted(turn, current, execution, output);
  return leave(turn, current);
}

/** COMPLETED, with the next completion number. Does not move on. */
export function settleCompleted(
  turn: Turn,
  { type }: Step,
  execution: LiveExecution,
  output: Json | undefined,
): void {
  turn.state.completions += 1;
  if (execution.iteration === 1) turn.state.completedSteps += 1;
  if (outputTypes.has(type)) turn.state.lastOutput = `${execution.path}#${execution.iteration}`;
  updateExecution(turn, execution, {
    status: "COMPLETED",
    output,
    completion: turn.state.completions,
    completedAt: turn.now,
  });
  noteStep(turn, "workflow.step.completed", execution);
}

/** FAILED for good: it goes on at `handler`, else its error through `onError`, else the instance ends. */
export function failStep(
  turn: Turn,
  execution: LiveExecution,
  error: WorkflowError,
  handler?: string,
): string | undefined {
  updateExecution(turn, execution, { status: "FAILED", error, completedAt: turn.now });
  noteStep(turn, "workflow.step.failed", execution, { error: { ...error } });
  return handler ?? routeError(turn, step(turn, execution.stepId), error);
}

/** The step to go to with this error; undefined when it has ended the instance. */
export function routeError(turn: Turn, { onError }: Step, error: WorkflowError): string | undefined {
  const route = onError.find(({ errors }) => errors.includes(error.type) || errors.includes("*"));
  if (route === undefined) failInstance(turn, error);
  return route?.to;
}

/** Chooses the way out of a step that has settled. */
function leave(turn: Turn, current: Step): string | undefined {
  try {
    return chooseTransition(turn, current.transitions);
  } catch (thrown) {
    return routeError(turn, current, expressionError(thrown, current.stepId, "transitions"));
  }
}

function chooseTransition(turn: Turn, { conditions, default: otherwise }: Transitions) {
  return conditions.find(({ when }) => evaluateCondition(turn, when))?.to ?? otherwise;
}

function enter(turn: Turn, current: Step): string | undefined {
  const execution = newExecution(turn, current);
  if (execution.iteration > current.maxIterations) {
    return refuse(turn, current, execution, {
      kind: "LIMIT",
      type: "MAX_ITERATIONS",
      message: `step "${current.stepId}" was entered more than ${current.maxIterations} times; raise its maxIterations if that is meant`,
      stepId: current.stepId,
      attempt: null,
      details: null,
    });
  }
  try {
    if (current.condition && !evaluateCondition(turn, current.condition)) {
      return skip(turn, current, execution);
    }
    return enterByType(turn, current, execution);
  } catch (thrown) {
    return refuse(turn, current, execution, expressionError(thrown, current.stepId, "entering it"));
  }
}

function enterByType(turn: Turn, current: Step, execution: LiveExecution): string | undefined {
  switch (current.type) {
    case "TASK":
      return enterTask(turn, current, execution);
    case "EVENT_WAIT":
      return enterEventWait(turn, current, execution);
    case "DELAY":
      return enterDelay(turn, current, execution);
    case "CHOICE":
      insertInstant(turn, current, execution);
      return completeStep(turn, execution, undefined);
    case "SET":
      return enterSet(turn, current, execution);
    case "END":
      return enterEnd(turn, current, execution);
  }
}

function newExecution(turn: Turn, { stepId, repeats }: Step): LiveExecution {
  const iteration = repeats ? (turn.state.iterations[stepId] ?? 0) + 1 : 1;
  if (repeats) turn.state.iterations = { ...turn.state.iterations, [stepId]: iteration };
  return { stepId, path: stepId, iteration, phase: "ACTIVE", attempt: 1, timers: [] };
}

/** The step could not even begin. */
function refuse(
  turn: Turn,
  current: Step,
  execution: LiveExecution,
  error: WorkflowError,
): string | undefined {
  insertInstant(turn, current, execution);
  return failStep(turn, execution, error);
}

function skip(turn: Turn, current: Step, execution: LiveExecution): string | undefined {
  insertInstant(turn, current, execution);
  updateExecution(turn, execution, { status: "SKIPPED", completedAt: turn.now });
  noteStep(turn, "workflow.step.skipped", execution);
  return current.transitions.default;
}

/** The row of a step that begins and settles in one decision; its status is set next. */
function insertInstant(turn: Turn, { type }: Step, execution: LiveExecution): void {
  const { stepId, path, iteration, attempt } = execution;
  insertExecution(turn, {
    stepId,
    path,
    iteration,
    type,
    status: "PENDING",
    attempt,
    taskId: null,
    queue: null,
    priority: 0,
    input: undefined,
    output: undefined,
    error: null,
    completion: null,
    timeoutMs: null,
    heartbeatTimeoutMs: null,
    startedAt: turn.now,
    completedAt: null,
    compensates: null,
  });
}

function enterTask(turn: Turn, current: TaskStep, execution: LiveExecution): undefined {
  dispatchTask(turn, current, execution, current.input && evaluateTemplate(turn, current.input));
}

/**
 * Writes the PENDING row of a TASK or compensation step, sets its clocks and asks for a job.
 *
 * @throws ExpressionError, BadValueError where a clock has no good value.
 */
export function dispatchTask(
  turn: Turn,
  call: TaskCall,
  execution: LiveExecution,
  input: Json | undefined,
  context?: Context,
): void {
  const { stepId, path, iteration, attempt, compensates = null } = execution;
  const clock = (value: DurationValue | undefined) => clockMs(turn, value, context);
  const timeoutMs = clock(call.timeout);
  const heartbeatTimeoutMs = clock(call.heartbeatTimeout);
  const totalMs = clock(call.totalTimeout);
  const scheduleMs = clock(call.scheduleTimeout);
  const priority = call.priority ?? turn.state.priority;
  insertExecution(turn, {
    stepId,
    path,
    iteration,
    type: "TASK",
    status: "PENDING",
    attempt,
    taskId: call.taskId,
    queue: call.queue,
    priority,
    input,
    output: undefined,
    error: null,
    completion: null,
    timeoutMs,
    heartbeatTimeoutMs,
    startedAt: null,
    completedAt: null,
    compensates,
  });
  const timers: TimerKind[] = [];
  if (totalMs !== null) timers.push("total");
  if (scheduleMs !== null) timers.push("schedule");
  if (totalMs !== null) setTimer(turn, "total", execution, after(turn, totalMs));
  if (scheduleMs !== null) setTimer(turn, "schedule", execution, after(turn, scheduleMs));
  putLive(turn, { ...execution, timers });
  requestJob(turn, call, execution, 0);
  noteStep(turn, "workflow.step.scheduled", execution);
}

/** Asks for a job for the execution's current attempt. */
export function requestJob(
  turn: Turn,
  { taskId, queue, priority }: Pick<TaskCall, "taskId" | "queue" | "priority">,
  { path, iteration, attempt }: LiveExecution,
  delayMs: number,
): void {
  turn.dispatches.set(`${path}#${iteration}`, {
    kind: "dispatch",
    path,
    iteration,
    attempt,
    taskId,
    queue,
    priority: priority ?? turn.state.priority,
    delayMs,
  });
}

function enterEventWait(turn: Turn, current: EventWaitStep, execution: LiveExecution): undefined {
  const { stepId, path, iteration } = execution;
  const pattern = patternOf(evaluateTemplate(turn, current.eventPattern));
  const key = waitKeyOf(turn, current);
  const timeoutMs = clockMs(turn, current.eventTimeout?.duration);
  const lookbackFrom = lookbackStart(turn, current);
  insertInstant(turn, current, execution);
  updateExecution(turn, execution, { status: "WAITING" });
  openWait(turn, {
    path,
    iteration,
    stepId,
    purpose: "STEP",
    pattern,
    eventPaths: current.conjuncts.map(({ eventPath }) => eventPath.join(".")),
    key,
    deliver: current.deliver,
    lookbackFrom,
  });
  if (timeoutMs !== null) setTimer(turn, "wait", execution, after(turn, timeoutMs));
  putLive(turn, {
    ...execution,
    phase: "WAITING",
    timers: timeoutMs === null ? [] : ["wait"],
    ...(!current.keyIsFixed && { waitKey: key }),
  });
  noteStep(turn, "workflow.step.waiting", execution, { pattern });
}

function lookbackStart(turn: Turn, { lookback }: EventWaitStep): Date | null {
  if (lookback === undefined) return null;
  if (lookback === "instance") return turn.state.createdAt;
  return new Date(turn.now.getTime() - (clockMs(turn, lookback) ?? 0));
}

export function patternOf(value: unknown): string {
  if (typeof value === "string" && value !== "") return value;
  throw new BadValueError(`eventPattern must be a text, and is ${JSON.stringify(value) ?? "undefined"}`);
}

function enterDelay(turn: Turn, current: DelayStep, execution: LiveExecution): undefined {
  const ms = clockMs(turn, current.duration);
  const dueAt = ms === null ? untilTime(turn, current) : after(turn, ms);
  insertInstant(turn, current, execution);
  updateExecution(turn, execution, { status: "WAITING" });
  setTimer(turn, "delay", execution, dueAt);
  putLive(turn, { ...execution, phase: "WAITING", timers: ["delay"] });
  noteStep(turn, "workflow.step.waiting", execution, { until: dueAt.toISOString() });
}

function untilTime(turn: Turn, { until, stepId }: DelayStep): Date {
  const template = defined(until, `until of step ${stepId}`);
  return resolveTime(template, scopeFor(turn, template));
}

function enterSet(turn: Turn, current: SetStep, execution: LiveExecution): string | undefined {
  const values = current.variables.map(
    ([name, template]) => [name, evaluateTemplate(turn, template)] as const,
  );
  insertInstant(turn, current, execution);
  setVariables(turn, values);
  return completeStep(turn, execution, undefined);
}

/** An undefined value leaves its variable as it was. */
export function setVariables(
  turn: Turn,
  values: readonly (readonly [string, Json | undefined])[],
): void {
  const known = values.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]]));
  if (known.length === 0) return;
  turn.state.variables = { ...turn.state.variables, ...Object.fromEntries(known) };
}

/** An END step is COMPLETED whatever its outcome; the instance ends wherever it stands. */
function enterEnd(turn: Turn, current: EndStep, execution: LiveExecution): undefined {
  const value = (template: EndStep["output"]) => template && evaluateTemplate(turn, template);
  const output = value(current.output);
  const error = value(current.error);
  const reason = value(current.reason);
  insertInstant(turn, current, execution);
  settleCompleted(turn, current, execution, output);
  endInstance(turn, current, { output, error, reason });
}

/** A walk that was cut short goes on in a decision of its own, which a timer due now brings about. */
function park(turn: Turn, stepId: string): void {
  const parked: LiveExecution = {
    stepId,
    path: stepId,
    iteration: 0,
    phase: "READY",
    attempt: 1,
    timers: ["continue"],
  };
  putLive(turn, parked);
  setTimer(turn, "continue", parked, turn.now);
  note(turn, { type: "workflow.continued", stepId });
}

/**
 * Milliseconds of a clock that starts at `from`, null where there is none.
 *
 * @throws ExpressionError, BadValueError
 */
export function clockMs(
  turn: Turn,
  value: DurationValue | undefined,
  context?: Context,
  from = turn.now,
): number | null {
  if (value === undefined) return null;
  const scope = "template" in value ? scopeFor(turn, value.template, context) : { now: "" };
  return durationMs(value, scope, from);
}

export function after(turn: Turn, ms: number): Date {
  return new Date(turn.now.getTime() + ms);
}

export function noteStep(
  turn: Turn,
  type: string,
  { stepId, path, iteration, attempt }: LiveExecution,
  data?: Json,
): void {
  note(turn, {
    type,
    stepId,
    ...(path !== stepId && { path }),
    ...(iteration > 1 && { iteration }),
    ...(attempt > 1 && { data: { attempt } }),
    ...(data !== undefined && { data }),
  });
}

/** The error of a value that failed at run time; anything else goes on up. */
export function expressionError(thrown: unknown, stepId: string | null, where: string): WorkflowError {
  if (!(thrown instanceof ExpressionError || thrown instanceof BadValueError)) throw thrown;
  return {
    kind: "EXPRESSION",
    type: thrown.code,
    message: stepId === null ? `${where}: ${thrown.message}` : `step "${stepId}", ${where}: ${thrown.message}`,
    stepId,
    attempt: null,
    details: null,
  };
}
