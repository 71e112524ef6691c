import type { Json } from "@millrace/expressions";
import { defined } from "../assert.ts";
import type { DurationValue, TaskCall } from "../definition/definition.ts";
import type { LiveExecution, TimerKind } from "../state/snapshot.ts";
import { executionKey } from "../state/snapshot.ts";
import { taskCalled, withCalled } from "./called.ts";
import { after, clockMs } from "./evaluate.ts";
import { putLive } from "./live-executions.ts";
import { setTimer } from "./set-timers.ts";
import type { Context } from "./standpoint.ts";
import { noteStep } from "./turn.ts";
import type { Turn } from "./turn.ts";
import { insertExecution, nextEntry } from "./write-rows.ts";

/** Handing work to workers: the PENDING row is the promise, the job only a nudge (DESIGN). */

/**
 * Writes the PENDING row of a TASK or compensation step, sets its clocks and asks for a job.
 *
 * @param input Undefined: the instance's input.
 * @throws ExpressionError, BadValueError where a clock, or what it calls, has no good value.
 */
export function dispatchTask(
  turn: Turn,
  call: TaskCall,
  entered: LiveExecution,
  input: Json | undefined,
  context: Context = entered,
): void {
  const { stepId, path, iteration, attempt, compensates = null } = entered;
  const execution = withCalled(turn, entered, call, context);
  const { taskId, queue } = taskCalled(call, execution);
  const clock = (value: DurationValue | undefined) => clockMs(turn, value, context);
  const timeoutMs = clock(call.timeout);
  const heartbeatTimeoutMs = clock(call.heartbeatTimeout);
  const totalMs = clock(call.totalTimeout);
  const scheduleMs = clock(call.scheduleTimeout);
  insertExecution(turn, {
    stepId,
    path,
    iteration,
    type: "TASK",
    status: "PENDING",
    attempt,
    taskId,
    queue,
    priority: call.priority ?? turn.state.priority,
    input,
    output: undefined,
    error: null,
    completion: null,
    items: undefined,
    timeoutMs,
    heartbeatTimeoutMs,
    startedAt: null,
    completedAt: null,
    compensates,
    entry: nextEntry(turn, path),
  });
  const timers: TimerKind[] = [];
  const start = (timer: TimerKind, ms: number | null) => {
    if (ms === null) return;
    setTimer(turn, timer, execution, after(turn, ms));
    timers.push(timer);
  };
  start("total", totalMs);
  start("schedule", scheduleMs);
  putLive(turn, { ...execution, timers });
  requestJob(turn, call, execution, 0);
  noteStep(turn, "workflow.step.scheduled", execution);
}

/** Asks for a job for the execution's current attempt. */
export function requestJob(
  turn: Turn,
  call: TaskCall,
  execution: LiveExecution,
  delayMs: number,
): void {
  const { path, iteration, attempt } = execution;
  const { taskId, queue } = taskCalled(call, execution);
  turn.dispatches.set(executionKey(path, iteration), {
    kind: "dispatch",
    path,
    iteration,
    attempt,
    taskId,
    queue,
    priority: call.priority ?? turn.state.priority,
    delayMs,
  });
}

/** Tells whoever runs the attempt that it no longer counts. An attempt of this same turn has nobody. */
export function abortAttempt(turn: Turn, execution: LiveExecution, reason: string): void {
  const { path, iteration, attempt } = execution;
  const key = executionKey(path, iteration);
  if (turn.inserts.has(key)) return;
  turn.aborts.set(key, { kind: "abort", path, iteration, attempt, reason });
}

/** The task that an execution calls. */
export function callOf({ definition }: Turn, { stepId, compensates }: LiveExecution): TaskCall {
  const steps = compensates === undefined ? definition.steps : definition.compensationSteps;
  return defined(steps.get(stepId), `step ${stepId}`) as TaskCall;
}
