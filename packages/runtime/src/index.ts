export { checkInstance } from "./consistency/check-instance.ts";
export type { ConsistencyReport } from "./consistency/check-instance.ts";
export { repairInstance } from "./consistency/repair-instance.ts";
export type { Repaired } from "./consistency/repair-instance.ts";
export { cancelInstance } from "./cancel-instance.ts";
export type { CancelBody } from "./cancel-instance.ts";
export { pauseInstance, resumeInstance } from "./pause-instance.ts";
export type { PauseBody, ResumeBody } from "./pause-instance.ts";
export { patchInstance } from "./patch-instance.ts";
export type { PatchBody } from "./patch-instance.ts";
export { retryInstance } from "./retry-instance.ts";
export type { RetryBody } from "./retry-instance.ts";
export { planCompensation } from "./plan-compensation.ts";
export type { CompensationPlan } from "./plan-compensation.ts";
export { checkDefinition, previewDefinition, registerDefinition } from "./register-definition.ts";
export type { Registered } from "./register-definition.ts";
export { discardDeadLetter, retryDeadLetter } from "./resolve-dead-letter.ts";
export {
  BusyError,
  DeadLetterNotFoundError,
  DeadLetterResolvedError,
  IdempotencyConflictError,
  InstanceNotFoundError,
  InvalidDefinitionError,
  InvalidInputError,
  InvalidScenarioError,
  InvalidPatchError,
  MillraceError,
  PreconditionFailedError,
  ReservedPatternError,
  RetryRefusedError,
  StatusConflictError,
  UnknownStepError,
  VersionNotFoundError,
  WorkflowNotFoundError,
} from "./errors.ts";
export type { Problem } from "./errors.ts";
export { publishEvent, publishEvents } from "./publish-event.ts";
export type { Published, PublishRequest } from "./publish-event.ts";
export { runScheduler } from "./scheduler/run-scheduler.ts";
export type { RunningScheduler } from "./scheduler/run-scheduler.ts";
export { sampleInstallation, samplePool, sampleWaitingCalls } from "./samplers.ts";
export { closeServices, openServices } from "./services.ts";
export type { Caller, Services, ServicesSettings } from "./services.ts";
export { startInstance, startInstances } from "./start-instance.ts";
export type { Started, StartRequest } from "./start-instance.ts";
export { simulateDefinition } from "./simulate-definition.ts";
export type { SimulationRequest } from "./simulate-definition.ts";
export { stateAt } from "./state-at.ts";
export type { ExecutionAt, StateAt } from "./state-at.ts";
export { waitCondition } from "./why/wait-reason.ts";
export { whyInstance } from "./why/why-instance.ts";
export type { NearMiss, Reason } from "./why/reason.ts";
export type { Why } from "./why/why-instance.ts";
export { waitUntilSettled } from "./wait-until-settled.ts";
export { runWorker } from "./worker/run-worker.ts";
export type { RunningWorker, WorkerOptions } from "./worker/run-worker.ts";
export { runProcess } from "./run-process.ts";
export type { RunningProgram } from "./run-process.ts";
export { parseSettings, PROGRAMS, SETTINGS, SettingsError } from "./settings.ts";
export type { Program, SettingName, Settings } from "./settings.ts";
export { openMetricsOf, watchServices } from "./readiness.ts";
export type { Readiness } from "./readiness.ts";
