export { createCalendar, deleteCalendar, putCalendar } from "./calendars/save-calendar.ts";
export type { SavedCalendar } from "./calendars/save-calendar.ts";
export { checkInstance } from "./consistency/check-instance.ts";
export type { ConsistencyReport } from "./consistency/check-instance.ts";
export { repairInstance } from "./consistency/repair-instance.ts";
export type { Repaired } from "./consistency/repair-instance.ts";
export { actOnMany } from "./instances/bulk.ts";
export { cancelInstance } from "./instances/cancel-instance.ts";
export type { CancelBody } from "./instances/cancel-instance.ts";
export { pauseQueue, resumeQueue } from "./queues/pause-queue.ts";
export { pauseInstance, resumeInstance } from "./instances/pause-instance.ts";
export { definedLimit, limitOf, limitUses } from "./limits/limit-in-force.ts";
export type { LimitInForce, LimitUse } from "./limits/limit-in-force.ts";
export { globalLimit } from "./limits/limit-cache.ts";
export { deleteLimit, limitRefOf, putLimit } from "./limits/save-limit.ts";
export { promoteInstance } from "./instances/promote-instance.ts";
export type { PauseBody, ResumeBody } from "./instances/pause-instance.ts";
export { patchInstance } from "./instances/patch-instance.ts";
export type { PatchBody } from "./instances/patch-instance.ts";
export { retryInstance } from "./instances/retry-instance.ts";
export type { RetryBody } from "./instances/retry-instance.ts";
export { planCompensation } from "./instances/plan-compensation.ts";
export type { CompensationPlan } from "./instances/plan-compensation.ts";
export {
  checkDefinition,
  previewDefinition,
  registerDefinition,
} from "./definitions/register-definition.ts";
export type { Registered } from "./definitions/register-definition.ts";
export { discardDeadLetter, retryDeadLetter } from "./instances/resolve-dead-letter.ts";
export {
  BusyError,
  CalendarChangedError,
  CalendarExistsError,
  CalendarNotFoundError,
  DeadLetterNotFoundError,
  DeadLetterResolvedError,
  IdempotencyConflictError,
  LimitNotFoundError,
  InstanceNotFoundError,
  InvalidCalendarError,
  InvalidDefinitionError,
  InvalidInputError,
  InvalidBackfillError,
  InvalidScenarioError,
  InvalidScheduleError,
  InvalidPatchError,
  MillraceError,
  PreconditionFailedError,
  ReservedPatternError,
  RetryRefusedError,
  ScheduleChangedError,
  ScheduleExistsError,
  ScheduleNotFoundError,
  ScheduleStatusError,
  StatusConflictError,
  UnknownStepError,
  VersionNotFoundError,
  WorkflowNotFoundError,
} from "./errors.ts";
export type { Problem } from "./errors.ts";
export { publishEvent, publishEvents } from "./events/publish-event.ts";
export type { Published, PublishRequest } from "./events/publish-event.ts";
export { createSchedule, deleteSchedule, replaceSchedule } from "./schedules/put-schedule.ts";
export {
  backfillSchedule,
  pauseSchedule,
  resumeSchedule,
  triggerSchedule,
} from "./schedules/control-schedule.ts";
export type { Backfill, Backfilled } from "./schedules/control-schedule.ts";
export { calendarOf } from "./schedules/scheduled-start.ts";
export { scheduleProblems } from "./schedules/check-schedule.ts";
export { defaultCatchup, defaultJitter, defaultTimezone, ruleOf } from "./schedules/plan.ts";
export { nextTicks } from "./schedules/ticks.ts";
export { runScheduler } from "./scheduler/run-scheduler.ts";
export type { RunningScheduler } from "./scheduler/run-scheduler.ts";
export { sampleInstallation, samplePool, sampleWaitingCalls } from "./samplers.ts";
export { closeServices, openServices } from "./services.ts";
export type { Caller, Services, ServicesSettings } from "./services.ts";
export { startInstance, startInstances } from "./instances/start-instance.ts";
export type { Started, StartRequest } from "./instances/start-instance.ts";
export { simulateDefinition } from "./definitions/simulate-definition.ts";
export type { SimulationRequest } from "./definitions/simulate-definition.ts";
export type { Batch, FollowOptions, Told } from "./streams/batch.ts";
export { followAll } from "./streams/follow-all.ts";
export { followInstance } from "./streams/follow-instance.ts";
export type { InstancePlace } from "./streams/follow-instance.ts";
export { isOfTypes } from "./streams/stream-event.ts";
export type { StreamEvent } from "./streams/stream-event.ts";
export { stateAt } from "./instances/state-at.ts";
export type { ExecutionAt, StateAt } from "./instances/state-at.ts";
export { leastOfSuspects } from "./perform.ts";
export { waitCondition } from "./why/wait-reason.ts";
export { whyInstance } from "./why/why-instance.ts";
export type { NearMiss, Reason } from "./why/reason.ts";
export type { Why } from "./why/why-instance.ts";
export { waitUntilSettled } from "./instances/wait-until-settled.ts";
export { openBeatThread, orphanMsOf } from "./worker/beat.ts";
export { isCell, meetKeeper } from "./worker/cell.ts";
export type { Keeper } from "./worker/cell.ts";
export { runWorker } from "./worker/run-worker.ts";
export type { RunningWorker, WorkerOptions } from "./worker/run-worker.ts";
export { runProcess } from "./run-process.ts";
export type { RunningProgram } from "./run-process.ts";
export { parseSettings, PROGRAMS, SETTINGS, SettingsError } from "./settings.ts";
export type { Environment, Program, SettingName, Settings } from "./settings.ts";
export { openMetricsOf, watchServices } from "./readiness.ts";
export type { Readiness } from "./readiness.ts";
export { createWebhook, deleteWebhook, putWebhook, readWebhook } from "./webhooks/save-webhook.ts";
