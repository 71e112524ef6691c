export { compileCalendar } from "./calendar/calendar.ts";
export type { CalendarDocument } from "@millrace/contract";
export type { Calendar, KnownHolidays } from "./calendar/calendar.ts";
export { usedCalendars } from "./calendar/used-calendars.ts";
export type { UsedCalendar } from "./calendar/used-calendars.ts";
export { addWorkingTime, isWorkingTime, nextWorkingTime } from "./calendar/working-time.ts";
export { InvariantError } from "./assert.ts";
export { taskCalled } from "./decide/called.ts";
export { attemptsMade } from "./decide/step-views.ts";
export { createSnapshot } from "./decide/start.ts";
export type { NewInstance } from "./decide/start.ts";
export { hasOpenDeadLetter } from "./decide/dead-letter.ts";
export { decide, isNeeds } from "./decide/decide.ts";
export { waitPathsOf } from "./decide/open-waits.ts";
export { isUnheldTimer } from "./decide/set-timers.ts";
export { isHeldBack } from "./decide/slot.ts";
export { chooseAdmissions, compareWaiting, foremost } from "./admission.ts";
export type { QueueOrder, Room, Waiting, WaitingQueue } from "./admission.ts";
export { canCancel } from "./decide/cancel.ts";
export { canPause } from "./decide/pause.ts";
export { mergePatch } from "./decide/patch.ts";
export { retryRefusal } from "./decide/reopen.ts";
export { triggerPath } from "./decide/listen.ts";
export { eventKeyOf } from "./decide/listen.ts";
export { eventSatisfies, matcherOf, payloadEqualities } from "./decide/wait.ts";
export type { WaitRef } from "./decide/wait.ts";
export type * from "./definition/definition.ts";
export { BadValueError, DefinitionError } from "./errors.ts";
export { explainWait } from "./explain-wait.ts";
export { advanceInMemory, claimInMemory, fold, memoryInstance, readsOf } from "./fold.ts";
export type { HistoryStep, MemoryInstance } from "./fold.ts";
export { previewCompensation } from "./preview-compensation.ts";
export type {
  AwaitedExecution,
  CompensationPreview,
  PlannedCompensation,
  PreviewOptions,
} from "./preview-compensation.ts";
export { defaultRetryPolicy, nextAttemptDelayMs, resolveRetryPolicy, spread } from "./retry.ts";
export type { RetryPolicy } from "./retry.ts";
export { scenarioProblems, startOfScenario } from "./simulate/scenario.ts";
export { simulate } from "./simulate/simulate.ts";
export type { SimulationResult } from "./simulate/result.ts";
export { checkConsistency, checkingConsistency } from "./consistency/check.ts";
export type * from "./consistency/evidence.ts";
export { sameStored } from "./consistency/same.ts";
export { startListeners, triggeredStart } from "./start-triggers.ts";
export type { StartListener, TriggeredStart } from "./start-triggers.ts";
export { engineRev } from "./rev.ts";
export { applyChanges, blankSnapshot, changesBetween } from "./state/changes.ts";
export { decodeSnapshot, encodeFrontier } from "./state/codec.ts";
export { mapValues } from "./state/json-object.ts";
export { restoredSignal, signalsToKeep, storedSignal } from "./state/stored-signal.ts";
export type { Changes, Identity } from "./state/changes.ts";
export type { StoredSignal } from "./state/stored-signal.ts";
export type { StoredSnapshot } from "./state/codec.ts";
export type * from "./state/decision.ts";
export { anywhereKey, latestById, latestOf, mergeReads, noReads } from "./state/reads.ts";
export type { ExecutionRead, Needs, ReadRequest, Reads } from "./state/reads.ts";
export { taskError } from "./state/signal.ts";
export type {
  ChildEnd,
  ChildRef,
  ChildRefusal,
  EventFact,
  ExecutionRef,
  HeldSignal,
  Signal,
  SignalKind,
  TaskFailure,
  WorkingTime,
} from "./state/signal.ts";
export { executionKey, isSettled } from "./state/snapshot.ts";
export type {
  Cancellation,
  Compensation,
  JsonObject,
  Pause,
  LiveExecution,
  ParentLink,
  Snapshot,
  TimerKind,
  WorkflowError,
} from "./state/snapshot.ts";
export { instanceChanges, isStepSettled, isTerminal, stepChanges } from "./state/status.ts";
export type {
  CompensationStatus,
  InstanceStatus,
  StepStatus,
  TerminalStatus,
} from "./state/status.ts";
export {
  durationMs,
  durationToMs,
  formatDuration,
  isRefusal,
  parseDuration,
} from "./definition/duration.ts";
export type { Duration } from "./definition/duration.ts";
export { executionOfWait, isInItem, pathOfStep, stepIdOf } from "./definition/paths.ts";
export { inStoredOrder } from "./state/stored-order.ts";
export { childInputProblems } from "./definition/check-start-input.ts";
export { childWorkflowsOf } from "./definition/child-workflows.ts";
export type { ChildWorkflow } from "./definition/child-workflows.ts";
export { compileDefinition } from "./definition/compile.ts";
export {
  candidatePatterns,
  eventNameProblem,
  isReservedName,
  lifecycleEvents,
  patternMatches,
} from "./definition/pattern.ts";
export { definitionCodes, definitionWarningCodes } from "./definition/problem.ts";
export { below } from "./definition/outline.ts";
export { besides, valueAt } from "./definition/problem.ts";
export { exampleInputs } from "./definition/example-inputs.ts";
export { costsOfSchema } from "./definition/schema/costs.ts";
export { everyMember } from "./definition/schema/every-member.ts";
export type { SchemaMember } from "./definition/schema/every-member.ts";
export type { FormatRule, Formats, TextPattern } from "./definition/schema/keywords.ts";
export { validateDefinition } from "./definition/validate.ts";
export type { Validation } from "./definition/validate.ts";
