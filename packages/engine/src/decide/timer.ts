import type { Signal } from "../state/signal.ts";

import type { LiveExecution, TimerKind } from "../state/snapshot.ts";
import { retryChild, timeOutChild, timeOutChildren } from "./child-end.ts";
import { noteUnknown, settleAwaited } from "./compensate.ts";
import { abortAttempt } from "./dispatch.ts";
import { failInstance } from "./end.ts";
import { failForGood, timeoutError } from "./finish-step.ts";
import { close, liveInside } from "./join.ts";
import { liveExecution, putLive, removeLive } from "./live-executions.ts";
import { isPaused } from "./pause.ts";
import { observeStatus } from "./read-rows.ts";
import { dropTimer } from "./set-timers.ts";
import { start } from "./start.ts";
import { hasTimedOut } from "./stop.ts";
import { attemptsBegun } from "./step-views.ts";
import { move } from "./turn.ts";
import type { Turn } from "./turn.ts";
import { leaveWait, relyOnNoEvent, timeOutWait } from "./wait.ts";
import { goAstray, goOn, stepOf } from "./walk.ts";

/**
 * What a timer that has come due means. A timer fires once: it is void unless the execution is live
 * and still lists it, and a timer of one attempt unless it was set for this very attempt.
 */
export function fireTimer(turn: Turn, signal: Extract<Signal, { kind: "timerFired" }>): void {
  if (signal.path === "") {
    fireInstanceTimer(turn, signal);
    return;
  }
  const execution = liveExecution(turn, signal.path, signal.iteration);
  if (execution === undefined || !execution.timers.includes(signal.timer)) return;
  if (isPaused(turn) && signal.timer !== "grace") return;
  if (ofOneAttempt.has(signal.timer) && execution.attempt !== signal.attempt) return;

  switch (signal.timer) {
    case "wait":
      return timeOutWait(turn, execution);
    case "delay":
      removeLive(turn, execution);
      return goOn(turn, execution, undefined);
    case "continue":
      removeLive(turn, execution);
      return move(turn, {
        kind: "enter",
        stepId: execution.stepId,
        within: execution.within,
      });
    case "retry":
      return retryChild(turn, execution);
    case "attempt":
      return timeOutChild(turn, execution);
    case "total":
      return timeOutStep(turn, execution);
    case "schedule":
      return timeOutSchedule(turn, execution);
    case "grace":
      return settleAwaited(turn, execution, "UNKNOWN");
    case "start":
    case "timeout":
    case "resume":
      return;
  }
}

/** Set anew for each attempt: one that comes late may be that of an earlier one. */
const ofOneAttempt: ReadonlySet<TimerKind> = new Set(["retry", "attempt", "schedule"]);

/** Both are gone once the instance has ended; what had come due before a retry is void after it. */
function fireInstanceTimer(
  turn: Turn,
  { timer, attempt }: Extract<Signal, { kind: "timerFired" }>,
): void {
  const { timers, reopened } = turn.state;
  if (!timers.includes(timer) || attempt !== reopened || isPaused(turn)) return;
  if (timer === "start") start(turn);
  if (timer !== "timeout") return;
  relyOnNoEvent(turn, Object.values(turn.state.live));
  failInstance(turn, {
    kind: "TIMEOUT",
    type: "TIMEOUT",
    message: "the instance ran longer than the definition's timeout",
    stepId: null,
    attempt: null,
    details: null,
  });
}

/** The step as a whole is out of time, by whichever of its clocks that is. */
function timeOutStep(turn: Turn, execution: LiveExecution): void {
  const { stepId, phase } = execution;
  if (phase === "ACTIVE") return timeOutTotal(turn, execution);
  if (stepOf(turn, stepId).type === "SUB_WORKFLOW") return timeOutChildren(turn, execution);

  const message = `step "${stepId}" of type ${stepOf(turn, stepId).type} took longer than its timeout`;
  const error = timeoutError(execution, null, message);
  if (phase === "OPEN") {
    relyOnNoEvent(turn, liveInside(turn, execution));
    close(turn, execution, message);
  } else leaveWait(turn, execution);
  goAstray(turn, execution, error);
}

/** It may be queued or waiting for its next attempt, and then only earlier ones have been made. */
function timeOutTotal(turn: Turn, execution: LiveExecution): void {
  const { stepId, attempt } = execution;
  const status = observeStatus(turn, execution);
  const made = attemptsBegun(status, attempt);
  const mayBeAtIt = status === "RUNNING" || (status === "RETRYING" && hasTimedOut(turn, execution));
  if (mayBeAtIt) noteUnknown(turn, execution);
  const message = `step "${stepId}" took longer than its totalTimeout, retries included`;
  abortAttempt(turn, execution, "the step's totalTimeout passed");
  failTimedOut(turn, execution, made, message);
}

/** Only a step that no worker has taken yet; one that runs has met this clock. */
function timeOutSchedule(turn: Turn, execution: LiveExecution): void {
  const { stepId, attempt } = execution;
  const status = observeStatus(turn, execution);
  if (status === "RUNNING") {
    putLive(turn, dropTimer(turn, execution, "schedule"));
    return;
  }
  const made = attemptsBegun(status, attempt);
  const message = `no worker took step "${stepId}" within its scheduleTimeout`;
  abortAttempt(turn, execution, "the step's scheduleTimeout passed");
  failTimedOut(turn, execution, made, message);
}

/** @param made Attempts; where there was none, the error is that of none. */
function failTimedOut(turn: Turn, execution: LiveExecution, made: number, message: string): void {
  const error = timeoutError(execution, made === 0 ? null : made, message);
  failForGood(turn, { ...execution, attempt: made }, error);
}
