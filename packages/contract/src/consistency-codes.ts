/** What can be wrong with an instance, as the checker finds it. docs/reliability.md has the same table. */

export interface ConsistencyCodeSpec {
  /** WARNING: it goes on, and somebody should look. ERROR: it does not, or does what it should not. */
  readonly severity: "ERROR" | "WARNING";
  readonly meaning: string;
  /** What a repair does; absent where there is none. */
  readonly repair?: string;
  /** What an operator can do where it is not, or cannot be, repaired. */
  readonly advice: string;
}

const restore = "restore the row from a backup, or cancel the instance and start it again";
const rerun = "cancel the instance, and start it again if it is still wanted";

export const CONSISTENCY_CODES = {
  DEFINITION_MISSING: {
    severity: "ERROR",
    meaning: "the definition version that the instance is bound to is not stored",
    advice: "restore it from a backup; registering the same content again makes another version",
  },
  DEFINITION_DIFFERS: {
    severity: "ERROR",
    meaning: "the document of the definition version that the instance is bound to was changed",
    advice:
      "restore it from a backup, and restart all processes: those that have read it go by what they read; until then nothing is replayed",
  },
  GIVEN_DIFFERS: {
    severity: "ERROR",
    meaning: "what the instance was started with, its input say, was changed",
    advice:
      "write the columns of its row again as they were, by what its caller sent, or cancel it and start it again; until then nothing is replayed",
  },
  STEP_UNKNOWN: {
    severity: "ERROR",
    meaning:
      "a step is stored that the definition does not have, or under a path that it cannot have",
    advice: rerun,
  },
  STEP_TYPE_DIFFERS: {
    severity: "ERROR",
    meaning: "a step is stored as of another type than the definition's",
    advice: rerun,
  },
  SNAPSHOT_UNREADABLE: {
    severity: "ERROR",
    meaning: "what is stored as the state of the instance is none",
    repair: "the state is built again from the history",
    advice: restore,
  },
  SNAPSHOT_DIFFERS: {
    severity: "ERROR",
    meaning: "the instance's row is not what its history leads to",
    repair: "the row becomes what both its changes and its signals lead to",
    advice: "compare it with `GET …/state`; pause the instance if what it does next matters",
  },
  VERSION_DIFFERS: {
    severity: "ERROR",
    meaning: "the version of the instance is not that of its last commit",
    repair: "the version becomes that of the history",
    advice: restore,
  },
  HISTORY_GAP: {
    severity: "ERROR",
    meaning: "versions are missing in the history, so that nothing can be built again from it",
    advice: "the instance goes on; restore the rows from a backup if the audit matters",
  },
  HISTORY_DIFFERS: {
    severity: "ERROR",
    meaning:
      "the stored changes or entries of a commit are not what its signals lead to, and the instance is",
    repair: "they become what the signals lead to",
    advice: "the instance goes on; earlier versions of it read wrongly until the row is restored",
  },
  REPLAY_DIFFERS: {
    severity: "ERROR",
    meaning: "the stored signals, decided upon again, do not lead to what is stored",
    advice:
      "the instance goes on by what is stored; look for writes past Millrace, else report it as a fault",
  },
  TIMES_DISAGREE: {
    severity: "WARNING",
    meaning: "times are in the future, or not those of the history, or not in its order",
    repair: "those that the history knows are written again",
    advice:
      "check the clocks of the hosts and of the database; the time of a commit has no copy: restore its row from a backup where they were right",
  },
  PROGRESS_DIFFERS: {
    severity: "WARNING",
    meaning: "more has completed, by the counts, than the instance has",
    advice: "only what is shown as progress is wrong",
  },
  COMPLETIONS_DIFFER: {
    severity: "ERROR",
    meaning: "completion numbers are missing, or given twice: the order of compensation is by them",
    repair: "the step gets the number that the history gives it",
    advice: "look at `compensation-plan` before anything is undone; cancel without compensation",
  },
  STEP_MISSING: {
    severity: "ERROR",
    meaning: "a step that has begun has no row",
    repair: "the row is written again, as the history has it",
    advice: rerun,
  },
  STEP_STRAY: {
    severity: "ERROR",
    meaning: "a step is stored that the instance knows nothing of",
    repair: "it is deleted; where the history cannot say so, it is CANCELLED",
    advice:
      "its result counts for nothing; where another step is missing, it may be that one's row",
  },
  STEP_DIFFERS: {
    severity: "ERROR",
    meaning: "the row of a step does not agree with the instance or its history",
    repair: "the row becomes what the history says",
    advice: rerun,
  },
  STEP_INPUT_DIFFERS: {
    severity: "ERROR",
    meaning: "a step has another input than what it was computed from leads to",
    advice:
      "compare both with what earlier steps answered; if the step is yet to run with the wrong one, cancel the instance and start it again",
  },
  STEP_CLOCK_DIFFERS: {
    severity: "ERROR",
    meaning: "a step runs, and the times by which its attempt would end do not fit its limits",
    repair: "the clock of the attempt begins anew",
    advice: "the worker that runs it keeps its own time; cancel the instance if it is gone",
  },
  STEP_HOLD_DIFFERS: {
    severity: "ERROR",
    meaning: "a step is held though nothing is paused, or is not though the instance is",
    repair: "it is held, or let go",
    advice: "pause the instance and resume it",
  },
  STEP_OVERLOOKED: {
    severity: "ERROR",
    meaning: "a step is to run, and nobody would notice that its job is missing",
    repair: "it is looked for at once",
    advice: "pause the instance and resume it",
  },
  STEP_JOB_MISSING: {
    severity: "WARNING",
    meaning: "a step is to run, and the queue has no job for it",
    repair: "it is looked for at once, which adds the job",
    advice: "a scheduler adds it again within minutes",
  },
  STEP_HOLDER_LOST: {
    severity: "WARNING",
    meaning: "a step is RUNNING under a worker that is gone",
    repair: "it is given to nobody, and a scheduler hands it on",
    advice: "a scheduler hands it on within seconds: is one running?",
  },
  WAIT_MISSING: {
    severity: "ERROR",
    meaning: "the instance waits for an event, and no wait is stored that the event would find",
    repair: "the wait is opened again, and looks back to when it was opened first",
    advice: rerun,
  },
  WAIT_STRAY: {
    severity: "ERROR",
    meaning: "a wait is stored that the instance knows nothing of",
    repair: "it is deleted",
    advice: "events may be counted as delivered to it, and change nothing",
  },
  WAIT_DIFFERS: {
    severity: "ERROR",
    meaning:
      "a wait has another pattern, key or time than its instance, or is held wrongly: the wrong events find it, or none",
    repair: "pattern and key are written again; it looks back to when it was opened",
    advice:
      "the input has no copy: compare it with what the caller sent; if it is right, cancel the instance and start it again",
  },
  SHAPE_MISSING: {
    severity: "ERROR",
    meaning: "no event is looked up as a wait, or a start trigger of the workflow, is keyed",
    repair: "events are looked up so again, and waits look for those that came meanwhile",
    advice: "publish again, under another id, what a start trigger has missed",
  },
  WAIT_EVENT_MISSING: {
    severity: "ERROR",
    meaning: "a wait was taken by an event that is not stored any more",
    repair: "the wait is opened again",
    advice: "publish the event again, under another id",
  },
  MATCH_NOT_APPLIED: {
    severity: "WARNING",
    meaning: "an event has taken a wait, and nobody has told the instance",
    repair: "a worker is told",
    advice: "a scheduler tells one within seconds: are a scheduler and a worker running?",
  },
  LOOKBACK_NOT_DONE: {
    severity: "WARNING",
    meaning: "nobody has looked for the events that came before the wait was open",
    repair: "they are looked for",
    advice: "a scheduler does it within seconds: is one running?",
  },
  TIMER_MISSING: {
    severity: "ERROR",
    meaning: "a clock of the instance is running, and no timer is stored that would fire",
    repair: "it is set again, for the time that it had",
    advice: rerun,
  },
  TIMER_STRAY: {
    severity: "WARNING",
    meaning: "a timer is stored that the instance knows nothing of",
    repair: "it is deleted",
    advice: "it changes nothing when it fires",
  },
  TIMER_DIFFERS: {
    severity: "ERROR",
    meaning: "a timer has another time or attempt than the instance set it for, or is held wrongly",
    repair: "it is set again, for the time that it had",
    advice: rerun,
  },
  TIMER_OVERDUE: {
    severity: "WARNING",
    meaning: "a timer is due for more than a minute, and has not fired",
    advice: "is a scheduler running? after hours of downtime timers fire at a bounded rate",
  },
  CHILD_MISSING: {
    severity: "ERROR",
    meaning: "the instance waits for a child, and there is none, nor is it to be started",
    repair: "where only the request is missing, it is written again",
    advice: "cancel the instance, or restore the child from a backup",
  },
  CHILD_DIFFERS: {
    severity: "ERROR",
    meaning: "what is stored of a child is not what the instance asked for, or not that it exists",
    repair: "the row becomes what the instance asked for, or goes where there is no such child",
    advice: "cancel the child, then the instance",
  },
  CHILD_NOT_STARTED: {
    severity: "WARNING",
    meaning: "a child was asked for more than a minute ago, and is not there yet",
    advice: "a scheduler starts it: is one running? its log says why it cannot",
  },
  CHILD_LINK_DIFFERS: {
    severity: "ERROR",
    meaning:
      "a child of the instance does not know it as its parent, which will not hear of its end",
    repair: "the child's row says again who started it",
    advice: "cancel the child, then the instance",
  },
  CHILD_END_UNREPORTED: {
    severity: "ERROR",
    meaning: "a child has settled, and its parent waits and will not hear of it",
    repair: "the parent is told",
    advice: "cancel the parent",
  },
  CHILD_SIGNAL_LEFT: {
    severity: "WARNING",
    meaning: "what a parent or child has told the instance is not taken note of",
    repair: "it is delivered, or forgotten where nothing follows from it any more",
    advice: "a scheduler delivers it within seconds: are a scheduler and a worker running?",
  },
  CHILD_SIGNAL_UNREADABLE: {
    severity: "ERROR",
    meaning: "what a parent or child has told the instance cannot be read",
    repair: "it is told again from the row of the one that told it, as schedulers do by themselves",
    advice: "cancel the instance: nobody knows any more how its child has ended",
  },
  PARENT_MISSING: {
    severity: "WARNING",
    meaning: "the instance was started by another one, which does not know it",
    advice: "it goes on by itself; nobody will hear of its end",
  },
  EVENT_NOT_MATCHED: {
    severity: "WARNING",
    meaning: "an event that the instance has emitted was not matched with those who wait for it",
    repair: "it is matched",
    advice: "a scheduler does it within seconds: is one running?",
  },
  DELIVERIES_LEFT: {
    severity: "WARNING",
    meaning: "an instance that has settled still remembers the events that it has had",
    repair: "they are forgotten",
    advice: "it costs a few rows, and nothing else",
  },
  DEAD_LETTER_MISSING: {
    severity: "ERROR",
    meaning: "the instance failed with a dead letter for an operator, and there is none",
    repair: "the dead letter is written again",
    advice: "cancel the instance: that undoes what was done",
  },
  DEAD_LETTER_STRAY: {
    severity: "WARNING",
    meaning: "a dead letter is open that the instance knows nothing of",
    repair: "it is resolved as DISCARDED",
    advice: "discard it",
  },
  SLOT_MISSING: {
    severity: "ERROR",
    meaning: "the instance waits for a slot under a limit, or runs with one, and no row says so",
    repair: "the row is written again",
    advice: "pause the instance and resume it",
  },
  SLOT_STRAY: {
    severity: "ERROR",
    meaning: "a slot is taken or asked for by an instance that does not run",
    repair: "it is given up",
    advice: "schedulers give up such slots by themselves within seconds",
  },
  SLOT_FOREIGN: {
    severity: "ERROR",
    meaning: "the instance takes, or waits for, a place under limits that are not its own",
    repair: "it is given up",
    advice: "schedulers give up such slots by themselves within seconds, once they are taken",
  },
  SLOT_DIFFERS: {
    severity: "ERROR",
    meaning: "the place under a limit is not the one that the instance speaks of",
    repair: "the row is written again, where the instance agrees with itself",
    advice: "pause the instance and resume it",
  },
  STUCK: {
    severity: "ERROR",
    meaning: "nothing that is stored can wake the instance any more",
    advice: "repair what else is found; if that is nothing, cancel the instance",
  },
} as const satisfies Readonly<Record<string, ConsistencyCodeSpec>>;

export type ConsistencyCode = keyof typeof CONSISTENCY_CODES;

export function consistencySpec(code: ConsistencyCode): ConsistencyCodeSpec {
  return CONSISTENCY_CODES[code];
}
