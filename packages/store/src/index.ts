export { beatThread, openBeat, signOf, staleBeatMs } from "./beat.ts";
export type { BeatConnection, BeatThreadData, StepRun } from "./beat.ts";
export {
  blockStep,
  isolatedMark,
  lostHolds,
  recordProgress,
  releaseSteps,
  setAside,
  unblockSteps,
} from "./holds.ts";
export type { HeldStep, StepAttempt } from "./holds.ts";
export { childrenOf, placeName } from "./child-links.ts";
export { deleteChildSignals, loadChildSignals, takeChildSignals } from "./child-signals.ts";
export { refuseChild, takeUnstarted, unstartedChildren } from "./unstarted-children.ts";
export type { ChildLink, StepPlace } from "./child-links.ts";
export type { ChildPlace, UnstartedChild } from "./unstarted-children.ts";
export type { ChildSignal, Receiver } from "./child-signals.ts";
export {
  deleteCalendar,
  getCalendar,
  listCalendars,
  loadCalendars,
  saveCalendar,
} from "./calendars.ts";
export type { CalendarNow, CalendarSaved, NewCalendar, StoredCalendar } from "./calendars.ts";
export { checkPlace, lastPlace, progressOf, readChanges, readChangesOf } from "./changes.ts";
export type {
  Change,
  ChangePage,
  ChangePlace,
  ChangesOfInstance,
  PlacedChange,
  Progress,
} from "./changes.ts";
export { claimSteps } from "./claim.ts";
export type { ClaimRequest, Claimed, ClaimedStep } from "./claim.ts";
export { commitBatch, commitLocked, createBatch, createWithin, startedUnder } from "./commit.ts";
export type { Carry, Commit, CommitOutcome, Hold, Key, Locked, ReceivedSignal } from "./commit.ts";
export { listDeadLetters, readDeadLetter } from "./dead-letters.ts";
export { failedRun } from "./dead-letters.ts";
export type { DeadLetter, DeadLetterFilter, LapsedDelivery } from "./dead-letters.ts";
export { openDatabase } from "./database.ts";
export type { DatabaseHandle, DatabaseOptions, PoolStats, StoreLog } from "./database.ts";
export {
  definitionVersions,
  getDefinition,
  latestVersion,
  listDefinitions,
  registerDefinition,
  versionAt,
} from "./definitions.ts";
export type {
  DefinitionDocument,
  DefinitionList,
  NewDefinition,
  RegisteredVersion,
  StoredDefinition,
} from "./definitions.ts";
export { driverUrl, stricterMode } from "./driver-url.ts";
export { disownSteps, heldSteps, holdsAnything, lookAtOnce } from "./disown.ts";
export {
  makeAllDue,
  makeMissedDue,
  overdueAttempts,
  takeDueSteps,
  takeLapsedSteps,
  unappliedMatches,
  unmatchedEvents,
  waitsNotLookedBack,
} from "./due.ts";
export type { LapseOptions, Lapsed, OverdueAttempt, UnappliedMatch } from "./due.ts";
export type { DueStep } from "./due-step.ts";
export { pauseQueue, pausedQueues, resumeQueue } from "./paused-queues.ts";
export type { PausedQueue } from "./paused-queues.ts";
export { orphansAmong } from "./orphans.ts";
export type { JobOfStep } from "./orphans.ts";
export type { Placed, RowPlace } from "./parts.ts";
export {
  BadCursorError,
  DatabaseFaultError,
  DatabaseTlsError,
  DatabaseUnavailableError,
  DataRefusedError,
  HistoryAheadError,
  isTransient,
  StatementTimeoutError,
  StoreError,
  TransactionConflictError,
} from "./errors.ts";
export { contentHashOf } from "./content-hash.ts";
export {
  countKeysWithoutInstance,
  deleteLeftovers,
  findFaultyDefinitions,
  findLeftovers,
} from "./leftovers.ts";
export type { FaultyDefinition, Leftover } from "./leftovers.ts";
export { readEvidence } from "./evidence.ts";
export type { EvidenceLimits, StoredEvidence } from "./evidence.ts";
export {
  deleteForeignSlots,
  deleteStraySlots,
  grantSlots,
  isGlobal,
  limitName,
  lockLimits,
  takeUntoldGrants,
  uncounted,
  wantedSets,
} from "./limit-slots.ts";
export type {
  Grant,
  Granted,
  GrantScope,
  LimitRef,
  LimitSetRef,
  LimitsSet,
  LimitToGrant,
} from "./limit-slots.ts";
export { queuePlace, roomToQueue, setsInUse } from "./limit-use.ts";
export type { LimitSetUse, QueuePlace } from "./limit-use.ts";
export {
  limitKeyOf,
  limitSetOf,
  limitsOfSet,
  shownLimit,
  typeLimitKey,
  userLimitKey,
  userOfLimit,
  widthOf,
  workflowOfLimit,
} from "./limit-key.ts";
export { deleteLimit, getLimit, listLimits, loadLimits, mostLimits, saveLimit } from "./limits.ts";
export type { LimitSaved, ListedLimit, NewLimit, StoredLimit } from "./limits.ts";
export {
  adoptChild,
  listenAgain,
  lookForSteps,
  mendTold,
  rebuildInstance,
  releaseLostStep,
  reportChildEnd,
  restartClock,
  removeChild,
  removeStep,
  restoreChild,
  restoreFence,
  restoreActors,
  restoreHistory,
  restorePatched,
  restoreStep,
  restoreTimes,
} from "./mend.ts";
export type { SeenStep } from "./mend.ts";
export {
  deliverTogether,
  findWaitsTogether,
  markMatchedTogether,
  settleEvents,
} from "./events-together.ts";
export type { Delivered, Delivery, EventSearch, Match } from "./events-together.ts";
export { forgetDeliveries, insertEvents, unmatchedAmong } from "./events.ts";
export type { EventCounts, EventKey, EventSummary, NewEvent, StoredEvent } from "./events.ts";
export { dueStepsOf, dueTimersOf, restoreDeliveries } from "./held.ts";
export { readHistory } from "./history.ts";
export type { HistoryRow } from "./history.ts";
export { instanceReadOf } from "./first-read.ts";
export { readInstance, readInstances } from "./instances.ts";
export { tenantOf, tenantsOfInstances } from "./tenant-of.ts";
export type { InstanceRead, TimerRead, WaitRead } from "./instances.ts";
export { attemptsOf, latestSteps } from "./step-read.ts";
export type { StepRead } from "./step-read.ts";
export { canonicalJson, checkJson, keyHashOf, maxJsonDepth } from "./json.ts";
export type { Json, JsonFault } from "./json.ts";
export { listSteps } from "./list-steps.ts";
export type { ListedStep } from "./list-steps.ts";
export { forgetEvents, forgetKeys, forgetSettled } from "./retention.ts";
export type { Place, RetentionLook, Swept } from "./retention.ts";
export { forgetRuns } from "./retention-runs.ts";
export { forgetRelease, releasesLeft, releasesOf, takeBack } from "./releases.ts";
export type { Release } from "./releases.ts";
export { countByStatus, findInstances, listInstances } from "./list-instances.ts";
export type {
  InstanceFilter,
  InstanceList,
  InstanceOrder,
  InstanceQuery,
} from "./list-instances.ts";
export { keyName, loadInstance, loadInstances } from "./load.ts";
export { loadInbox, loadInboxes } from "./inbox.ts";
export { loadReads } from "./load-reads.ts";
export type { MatchedWait } from "./inbox.ts";
export {
  freeLifecycleCursor,
  heardAmong,
  lifecycleShapes,
  oldestUnreadMs,
  readLifecycleCursor,
  skipUnheard,
  storeLifecycleEvents,
} from "./lifecycle.ts";
export type {
  LifecycleCursor,
  LifecycleProbe,
  LifecycleShape,
  NewDelivery,
  NewLifecycleEvent,
} from "./lifecycle.ts";
export { findPastEvents, markLookedBack, openLookbacks } from "./lookbacks.ts";
export type { LookbackWait, PastEvent, PastSearch } from "./lookbacks.ts";
export { migrateToLatest, pendingMigrations } from "./migrate.ts";
export { sharedTenant } from "./tenants.ts";
export { patchColumns } from "./patch.ts";
export type { ColumnPatch } from "./patch.ts";
export { recentEvents } from "./recent-events.ts";
export { sampleInstances } from "./sample-instances.ts";
export { readSetting, writeSetting } from "./settings.ts";
export { findStartTriggers } from "./start-triggers.ts";
export type { StartCandidate, StartSearch } from "./start-triggers.ts";
export { blockedTasks, heldCounts, instanceFigures, queueFigures } from "./stats.ts";
export type { QueueFigures, StatsWindow, StatusFigures } from "./stats.ts";
export type { Db } from "./statement.ts";
export type { Database } from "./tables.ts";
export {
  deleteTimer,
  nextTimerDue,
  putOffTimers,
  takeDueTimers,
  takeDueTimersOf,
} from "./timers.ts";
export type { DueTimer } from "./timers.ts";
export { findWaits, listenerShapes, markMatched, matchPast, takeOne } from "./waits.ts";
export type {
  ListenerShape,
  ListenerShapes,
  WaitCandidate,
  WaitProbe,
  WaitRef,
  WaitSearch,
} from "./waits.ts";
export {
  beat,
  forgetDeadWorkers,
  knownQueues,
  forgetWorker,
  noteWentOn,
  liveWorkers,
  noteDeath,
  noteWorkerExit,
  registerWorker,
  runningSuspects,
  workersLost,
} from "./workers.ts";
export type {
  LiveWorker,
  SilentWorker,
  Suspect,
  WorkerDeath,
  WorkerEntry,
  WorkerExit,
} from "./workers.ts";
export {
  changeSchedule,
  deleteSchedule,
  dueSchedules,
  insertSchedule,
  listSchedules,
  noteTicks,
  putOffSchedule,
  readSchedule,
  scheduleOutlook,
  withSchedule,
} from "./schedules.ts";
export type {
  LockedSchedule,
  NextTick,
  ScheduleCounts,
  ScheduleFilter,
  ScheduleKey,
  StoredOverlapPolicy,
  StoredSchedule,
  StoredScheduleDocument,
  StoredScheduleStatus,
} from "./schedules.ts";
export {
  giveUpWaiting,
  insertRuns,
  listScheduleRuns,
  nextWaiting,
  runOfInstance,
  runsOfTicks,
  settleWaiting,
  standingOf,
  waitingSchedules,
} from "./schedule-runs.ts";
export type {
  NewScheduleRun,
  ScheduleRun,
  ScheduleRunKind,
  ScheduleRunState,
  Standing,
  WaitingSchedule,
} from "./schedule-runs.ts";
export {
  createWebhook,
  deleteWebhook,
  dueWebhooks,
  getWebhook,
  listWebhooks,
  noteDelivered,
  noteUndelivered,
  takeDeliveries,
  updateWebhook,
  webhooksOf,
} from "./webhooks.ts";
export type {
  StoredWebhook,
  WebhookDelivery,
  WebhookFilter,
  WebhookKey,
  WebhookSettings,
  WebhookTarget,
} from "./webhooks.ts";
