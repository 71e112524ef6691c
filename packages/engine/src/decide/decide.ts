import type { Definition } from "../definition/definition.ts";
import type { Decision } from "../state/decision.ts";
import type { Needs, Reads } from "../state/reads.ts";
import type { ExecutionRef, Signal } from "../state/signal.ts";
import type { LiveExecution, Snapshot } from "../state/snapshot.ts";
import { isSettled } from "../state/snapshot.ts";
import { isTerminal } from "../state/status.ts";
import { admit } from "./admit.ts";
import { requestCancel, triggerCancel } from "./cancel.ts";
import { refuseChild, takeChildEnd } from "./child-end.ts";
import { closeTurn } from "./close-turn.ts";
import { discardDeadLetter, retryDeadLetter } from "./dead-letter.ts";
import { completeIfDone } from "./end.ts";
import { foresee } from "./foresee.ts";
import { failAttempt, poison, succeed, timeOutAttempt } from "./finish-step.ts";
import { refreshKeys } from "./listen.ts";
import { liveExecution } from "./live-executions.ts";
import { patchVariables } from "./patch.ts";
import { isHeld, requestPause, requestResume } from "./pause.ts";
import { promote } from "./promote.ts";
import { MissingReads } from "./read-rows.ts";
import { requestRetry } from "./reopen.ts";
import { schedule, start } from "./start.ts";
import { allowedStatus, isLimited, noteLimits, statusOf, updateSlot } from "./slot.ts";
import { fireTimer } from "./timer.ts";
import { changeStatus, note, openTurn } from "./turn.ts";
import type { Held, Turn } from "./turn.ts";
import { takeEvent } from "./wait.ts";
import { leaveHeld, walk } from "./walk.ts";

/**
 * Applies signals to one instance, in order, and says what must happen next.
 *
 * Pure: the only clock is `now`, and chance is derived from ids. Total: a signal that arrives late or
 * twice changes nothing; if none changes anything, the snapshot comes back by identity with nothing to
 * write. Several signals fold into one decision, as if each had been decided and committed in turn.
 *
 * @returns The decision, or the rows that it needs in `reads`: load them and ask again.
 */
export function decide(
  definition: Definition,
  snapshot: Snapshot,
  signals: readonly Signal[],
  reads: Reads,
  now: Date,
): Decision | Needs {
  const turn = openTurn(definition, snapshot, reads, now);
  try {
    for (const signal of signals) {
      const pausedAt = turn.state.pause?.at;
      follow(turn, () => apply(turn, signal));
      for (let held = turn.backlog.shift(); held !== undefined; held = turn.backlog.shift()) {
        const each = held;
        // A wait that looks back may hold what came long before the pause.
        const since = pausedAt !== undefined && pausedAt > each.at ? pausedAt : each.at;
        follow(turn, () => applyHeld(turn, each), since);
      }
    }
    if (turn.entries.length > 0 && !isTerminal(turn.state.status)) refreshKeys(turn);
    return closeTurn(turn);
  } catch (thrown) {
    if (thrown instanceof MissingReads) return { needs: foresee(turn, signals, thrown.requests) };
    throw thrown;
  }
}

export function isNeeds(answer: Decision | Needs): answer is Needs {
  return "needs" in answer;
}

/** What has happened, and all that comes of it at once; what is next finds the status that this left. */
function follow(turn: Turn, act: () => void, since?: string): void {
  act();
  walk(turn);
  completeIfDone(turn);
  forgetLostItems(turn);
  updateStatus(turn, since);
}

/** Of an instance that has ended it stays to be seen how much there was to do; a retry counts anew. */
function forgetLostItems(turn: Turn): void {
  if (!isTerminal(turn.state.status)) turn.state.begunItems -= turn.lostItems;
  turn.lostItems = 0;
}

function applyHeld(turn: Turn, held: Held): void {
  if ("signal" in held) apply(turn, held.signal);
  else if (isHeld(turn, held.execution)) leaveHeld(turn, held.execution);
}

/** What an operator may do with an instance that has settled: nothing else changes it any more. */
const reopens: ReadonlySet<Signal["kind"]> = new Set([
  "deadLetterDiscarded",
  "limitsNoted",
  "retryRequested",
  "variablesPatched",
  "cancelRequested",
  "repaired",
]);

/** The one switch. Each case finds what the signal speaks of, or lets it go as void. */
function apply(turn: Turn, signal: Signal): void {
  if (isSettled(turn.state) && !reopens.has(signal.kind)) return;

  switch (signal.kind) {
    case "observedRunning":
    case "calendarsAsked":
      return;
    case "scheduled":
      return schedule(turn, signal.startAt);
    case "started":
      return start(turn);
    case "limitsNoted":
      return noteLimits(turn, signal);
    case "admitted":
      return admit(turn, signal);
    case "stepSucceeded":
      return withLive(turn, signal, (execution) => succeed(turn, execution, signal.output));
    case "stepFailed":
      return withLive(turn, signal, (execution) => failAttempt(turn, execution, signal));
    case "attemptTimedOut":
      return withLive(turn, signal, (execution) => timeOutAttempt(turn, execution, signal));
    case "poisoned":
      return withLive(turn, signal, (execution) => poison(turn, execution, signal.deliveries));
    case "deadLetterDiscarded":
      return discardDeadLetter(turn, signal);
    case "deadLetterRetried":
      return retryDeadLetter(turn, signal);
    case "timerFired":
      return fireTimer(turn, signal);
    case "eventMatched":
      return takeEvent(turn, signal);
    case "cancelTriggered":
      return triggerCancel(turn, signal);
    case "cancelRequested":
      return requestCancel(turn, signal);
    case "childEnded":
      return takeChildEnd(turn, signal);
    case "childRefused":
      return refuseChild(turn, signal);
    case "pauseRequested":
      return requestPause(turn, signal);
    case "variablesPatched":
      return patchVariables(turn, signal);
    case "promoteRequested":
      return promote(turn, signal);
    case "retryRequested":
      return requestRetry(turn, signal);
    case "resumeRequested":
      return requestResume(turn, signal);
    case "repaired":
      return noteRepair(turn, signal);
  }
}

function noteRepair(turn: Turn, { actor, findings }: Extract<Signal, { kind: "repaired" }>): void {
  note(turn, { type: "workflow.repaired", actor, data: { findings } });
}

/** The execution, if it is live and still at the attempt that the signal speaks of. */
function withLive(
  turn: Turn,
  { path, iteration, attempt }: ExecutionRef,
  act: (execution: LiveExecution) => void,
): void {
  const execution = liveExecution(turn, path, iteration);
  if (execution?.attempt !== attempt) return;
  if (execution.phase !== "ACTIVE" && execution.phase !== "AWAITED") return;
  act(execution);
}

/** Whether anything of it can run is seen by what is live. */
function updateStatus(turn: Turn, since: string | undefined): void {
  const { state } = turn;
  if (state.status === "RUNNING" || state.status === "WAITING_FOR_EVENT") {
    changeStatus(turn, allowedStatus(turn, statusOf(state)));
  }
  turn.moving = false;
  if (isLimited(turn.definition, state)) updateSlot(turn, since);
}
