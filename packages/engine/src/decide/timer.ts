import { defined } from "../assert.ts";
import type { EventWaitStep } from "../definition/definition.ts";
import type { Signal } from "../state/signal.ts";
import type { LiveExecution } from "../state/snapshot.ts";
import { executionKey } from "../state/snapshot.ts";
import { isTerminal } from "../state/status.ts";
import { settleAwaited } from "./compensate.ts";
import { failInstance } from "./end.ts";
import { abortAttempt, failForGood, timeoutError } from "./finish-step.ts";
import { storedExecution } from "./scope.ts";
import { start } from "./start.ts";
import type { Turn } from "./turn.ts";
import { closeWait, dropTimer, liveExecution, putLive, removeLive } from "./turn.ts";
import { completeStep, failStep, walk } from "./walk.ts";

/**
 * What a timer that has come due means. A timer fires once: it is void unless the execution is live,
 * still at the attempt for which it was set, and still lists it.
 */
export function fireTimer(turn: Turn, signal: Extract<Signal, { kind: "timerFired" }>): void {
  if (signal.path === "") {
    fireInstanceTimer(turn, signal);
    return;
  }
  const execution = liveExecution(turn, signal.path, signal.iteration);
  if (execution === undefined || !execution.timers.includes(signal.timer)) return;

  switch (signal.timer) {
    case "wait":
      return timeOutWait(turn, execution);
    case "delay":
      removeLive(turn, execution);
      return walk(turn, completeStep(turn, execution, undefined));
    case "continue":
      removeLive(turn, execution);
      return walk(turn, execution.stepId);
    case "total":
      return timeOutTotal(turn, execution);
    case "schedule":
      if (execution.attempt === signal.attempt) timeOutSchedule(turn, execution);
      return;
    case "grace":
      return settleAwaited(turn, execution, "UNKNOWN");
    case "start":
    case "timeout":
      return;
  }
}

function fireInstanceTimer(turn: Turn, { timer }: Extract<Signal, { kind: "timerFired" }>): void {
  if (!turn.state.timers.includes(timer)) return;
  if (timer === "start") start(turn);
  if (timer !== "timeout" || isTerminal(turn.state.status)) return;
  failInstance(turn, {
    kind: "TIMEOUT",
    type: "TIMEOUT",
    message: "the instance ran longer than the definition's timeout",
    stepId: null,
    attempt: null,
    details: null,
  });
}

/**
 * FAILED by TIMEOUT, with or without handler. A wait that an event has taken is not timed out: the
 * commit checks, and on a conflict the event is applied first (DESIGN, Events).
 */
function timeOutWait(turn: Turn, execution: LiveExecution): void {
  const { stepId, path, iteration } = execution;
  const { eventTimeout } = defined(turn.definition.steps.get(stepId), stepId) as EventWaitStep;
  turn.guards.set(`wait:${executionKey(path, iteration)}`, { kind: "waitUnmatched", path, iteration });
  removeLive(turn, execution);
  closeWait(turn, path, iteration);
  const error = timeoutError(execution, null, `no event came in time for step "${stepId}"`);
  const handler = eventTimeout?.timeoutHandlerStepId;
  walk(turn, failStep(turn, execution, error, handler));
}

function timeOutTotal(turn: Turn, execution: LiveExecution): void {
  abortAttempt(turn, execution, "the step's totalTimeout passed");
  const { stepId, attempt } = execution;
  const message = `step "${stepId}" took longer than its totalTimeout, retries included`;
  failForGood(turn, execution, timeoutError(execution, attempt, message));
}

/** Only a step that no worker has taken yet; one that runs has met this clock. */
function timeOutSchedule(turn: Turn, execution: LiveExecution): void {
  const { stepId, path, iteration, attempt } = execution;
  const { status, fence } = storedExecution(turn, path, iteration);
  if (status === "RUNNING") {
    turn.observedRunning.add(executionKey(path, iteration));
    putLive(turn, dropTimer(turn, execution, "schedule"));
    return;
  }
  turn.guards.set(executionKey(path, iteration), { kind: "execution", path, iteration, status, fence });
  abortAttempt(turn, execution, "the step's scheduleTimeout passed");
  const message = `no worker took step "${stepId}" within its scheduleTimeout`;
  failForGood(turn, execution, timeoutError(execution, attempt, message));
}
