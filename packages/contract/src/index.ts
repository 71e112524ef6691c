export {
  DEAD_LETTER_STATUSES,
  DeadLetterId,
  DeadLetterPage,
  DeadLetterView,
  ResolveDeadLetterRequest,
  LapsedDeliveryView,
  ListDeadLettersQuery,
} from "./dead-letters.ts";
export type { DeadLetterStatus } from "./dead-letters.ts";
export { BOUNDS } from "./bounds.ts";
export {
  BULK_ACTIONS,
  type BulkAction,
  BulkAnswer,
  BulkFilter,
  BulkRequest,
  DEFAULT_BULK_LIMIT,
} from "./bulk.ts";
export {
  CalendarDocument,
  CalendarPage,
  type CalendarSource,
  CalendarView,
  type Hours,
  ListCalendarsQuery,
  type PublicHolidays,
  WEEKDAYS,
  type Weekday,
} from "./calendars.ts";
export {
  LimitDocument,
  LimitId,
  LimitKind,
  LimitPage,
  type LimitSource,
  LimitView,
  ListLimitsQuery,
} from "./limits.ts";
export {
  CancellationTrigger,
  CompensationStep,
  parseDocument,
  type ParsedDocument,
  StartTrigger,
  WorkflowDefinition,
} from "./definition.ts";
export { fieldTexts } from "./definition-fields.ts";
export type { FieldText } from "./definition-fields.ts";
export { definitionJsonSchema } from "./definition-schema.ts";
export {
  isJsonArray,
  isJsonObject,
  Json,
  jsonFaults,
  type JsonObject,
  JsonRecord,
  type JsonValue,
  parseJson,
} from "./json.ts";
export { faultOfNumber, type Scan, scanJson } from "./json-scan.ts";
export {
  MAX_PROBLEMS,
  type Parsed,
  parseWith,
  pointer,
  Problem,
  PROBLEM_CODES,
  type ProblemCode,
  strict,
} from "./schema-problems.ts";
export { RetryDocument } from "./retry.ts";
export {
  CANCELLATION_SOURCES,
  type CancellationSource,
  COMPENSATION_STATUSES,
  PAUSE_CAUSES,
  type CompensationStatus,
  ERROR_KINDS,
  type ErrorKind,
  INSTANCE_STATUSES,
  type InstanceStatus,
  isTerminalStatus,
  STEP_STATUSES,
  type StepStatus,
  TERMINAL_STATUSES,
  type TerminalStatus,
  WAIT_KINDS,
  type WaitKind,
} from "./statuses.ts";
export { ChoiceStep } from "./steps/choice.ts";
export { ErrorHandler, type StepCommon, Transitions } from "./steps/common.ts";
export { DelayStep } from "./steps/delay.ts";
export { EmitEventStep } from "./steps/emit-event.ts";
export { END_OUTCOMES, EndStep } from "./steps/end.ts";
export { EventTimeout, EventWaitStep } from "./steps/event-wait.ts";
export { type Branch, Join } from "./steps/parallel.ts";
export { SetStep } from "./steps/set.ts";
export {
  MapStep,
  ParallelStep,
  STEP_TYPES,
  WAITING_STEP_TYPES,
  StepDocument,
  StepList,
  type StepType,
} from "./steps/step.ts";
export { SubWorkflowStep } from "./steps/sub-workflow.ts";
export { TaskStep } from "./steps/task.ts";
export {
  DEFINITION_ID_PATTERN,
  CalendarId,
  DefinitionId,
  InstanceId,
  STEP_ID_PATTERN,
  StepId,
  Timestamp,
  isStorable,
  WorkflowId,
} from "./text.ts";

export { BatchRequest, batchItemsOf } from "./batch.ts";
export {
  CompensationPlanQuery,
  CompensationPlanView,
  PlannedStepView,
} from "./compensation-plan.ts";
export {
  DefinitionPage,
  DefinitionSummary,
  DefinitionVersion,
  DefinitionView,
  ListDefinitionsQuery,
  RegisterAnswer,
  ValidateAnswer,
} from "./definitions.ts";
export {
  EVENT_PATTERN_PATTERN,
  EventPattern,
  EventView,
  isReservedPattern,
  LIFECYCLE_PATTERNS,
  type LifecyclePattern,
  PublishBatchAnswer,
  PublishEventAnswer,
  PublishEventRequest,
} from "./events.ts";
export { HistoryEntry, HistoryPage, HistoryQuery } from "./history.ts";
export { StreamEvent, StreamQuery } from "./stream.ts";
export {
  CancellationView,
  PauseView,
  CompensationStepView,
  CompensationView,
  ErrorView,
  InstanceState,
  InstanceView,
  isSettled,
  ParentView,
  StepExecutionView,
  StepView,
  WaitView,
} from "./instance-view.ts";
export {
  CancelRequest,
  GetInstanceQuery,
  INSTANCE_ORDERS,
  type InstanceOrder,
  InstancePage,
  ListInstancesQuery,
  ListStepsQuery,
  PatchRequest,
  PauseRequest,
  PromoteRequest,
  ResumeRequest,
  RetryRequest,
  StartBatchAnswer,
  StartInstanceRequest,
  StepPage,
  type VariableFilter,
  variableFiltersOf,
} from "./instances.ts";
export {
  HealthView,
  ControlQueueRequest,
  QueueList,
  QueueName,
  QueueView,
  ReadinessView,
  StatsQuery,
  StatsView,
  TaskList,
  TaskView,
  WorkerList,
  WorkerView,
} from "./operations.ts";
export { StateAtView, StateQuery, StepAtView } from "./state-at.ts";
export { ConsistencyFindingView, ConsistencyView, RepairView } from "./consistency.ts";
export {
  CONSISTENCY_CODES,
  consistencySpec,
  type ConsistencyCode,
  type ConsistencyCodeSpec,
} from "./consistency-codes.ts";
export { NearMissView, WHY_KINDS, type WhyKind, WhyReasonView, WhyView } from "./why.ts";
export {
  MockResult,
  Scenario,
  SimulateRequest,
  type SimulateSource,
  SimulationView,
} from "./simulation.ts";
export { DEFAULT_PAGE_SIZE, type Page, pageOf, PageQuery, pageQueryFields } from "./pagination.ts";
export {
  ERROR_CODES,
  type ErrorCode,
  isErrorCode,
  PROBLEM_MEDIA_TYPE,
  ProblemDetails,
  problemDetails,
  problemTypeOf,
} from "./problem.ts";
export {
  BackfillAnswer,
  BackfillRequest,
  ControlScheduleRequest,
  ListScheduleRunsQuery,
  ListSchedulesQuery,
  NextTicksAnswer,
  NextTicksQuery,
  OVERLAP_POLICIES,
  SCHEDULE_RUN_KINDS,
  SCHEDULE_RUN_STATUSES,
  SCHEDULE_STATUSES,
  SCHEDULE_TARGETS,
  SCHEDULE_TYPES,
  ScheduleDocument,
  ScheduleId,
  SchedulePage,
  SchedulePatch,
  ScheduleRunPage,
  ScheduleRunView,
  ScheduleView,
} from "./schedules.ts";
export type { OverlapPolicy, ScheduleRunStatus, ScheduleStatus } from "./schedules.ts";
export {
  CreatedWebhook,
  CreateWebhookRequest,
  ListWebhooksQuery,
  PutWebhookRequest,
  WebhookId,
  WebhookPage,
  type WebhookSource,
  WebhookView,
} from "./webhooks.ts";
