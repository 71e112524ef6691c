import type {
  CreatedWebhook,
  CreateWebhookRequest,
  ListWebhooksQuery,
  PutWebhookRequest,
  WebhookPage,
  WebhookView,
  Problem,
  BackfillAnswer,
  BackfillRequest,
  BulkRequest,
  CalendarPage,
  CalendarView,
  CancelRequest,
  CompensationPlanView,
  ConsistencyView,
  ControlQueueRequest,
  ControlScheduleRequest,
  DeadLetterPage,
  DeadLetterView,
  DefinitionPage,
  DefinitionView,
  ResolveDeadLetterRequest,
  HistoryPage,
  HistoryQuery,
  InstancePage,
  InstanceView,
  JsonObject,
  LimitDocument,
  LimitPage,
  LimitView,
  ListCalendarsQuery,
  ListDeadLettersQuery,
  ListDefinitionsQuery,
  ListInstancesQuery,
  ListLimitsQuery,
  ListScheduleRunsQuery,
  ListSchedulesQuery,
  ListStepsQuery,
  NextTicksAnswer,
  NextTicksQuery,
  PatchRequest,
  PauseRequest,
  PromoteRequest,
  PublishEventAnswer,
  PublishEventRequest,
  QueueList,
  QueueView,
  ReadinessView,
  SimulateRequest,
  SimulationView,
  RegisterAnswer,
  RepairView,
  ResumeRequest,
  RetryRequest,
  SchedulePage,
  ScheduleRunPage,
  ScheduleRunView,
  ScheduleView,
  StartInstanceRequest,
  StateAtView,
  StatsView,
  StepPage,
  StreamEvent,
  TaskList,
  VariableFilter,
  WhyView,
  WorkerList,
} from "@millrace/contract";

/** On whose behalf a request is made. */
export interface Caller {
  readonly tenantId: string;
  /** No tenant was named: an instance of another one may be meant by its id. */
  readonly isAnyTenant?: boolean;
  readonly actor: string;
}

/** What a call says of the document in its body. */
export interface GivenBy {
  /** What keeps it from being stored, so that one answer lists all that is wrong. */
  readonly faults: readonly Problem[];
  /** The id that the path names. */
  readonly pathId?: string;
}

export type Outcome<T> = T | { readonly error: unknown };

/**
 * What the routes ask of everything behind HTTP, in the contract's own terms. `bind.ts` makes it of
 * the opened services.
 */
export interface Runtime extends ScheduleCalls {
  registerDefinition(
    caller: Caller,
    document: unknown,
    by: GivenBy,
  ): Promise<{ readonly answer: RegisterAnswer; readonly created: boolean }>;
  /** What a registration would answer now. */
  validateDefinition(caller: Caller, document: unknown, by: GivenBy): Promise<RegisterAnswer>;
  /** @param version Default: the latest. */
  readDefinition(caller: Caller, id: string, version?: number): Promise<DefinitionView | undefined>;
  /** Runs a scenario on a virtual clock; nothing is stored. */
  simulate(caller: Caller, id: string, request: SimulateRequest): Promise<SimulationView>;
  listDefinitions(caller: Caller, query: ListDefinitionsQuery): Promise<DefinitionPage>;

  startInstance(
    caller: Caller,
    request: StartInstanceRequest,
    idempotencyKey?: string,
  ): Promise<{ readonly instance: InstanceView; readonly replayed: boolean }>;
  /**
   * One outcome per request, in their order.
   *
   * @param idempotencyKeys One per request.
   */
  startInstances(
    caller: Caller,
    requests: readonly StartInstanceRequest[],
    idempotencyKeys: readonly (string | undefined)[],
  ): Promise<readonly Outcome<{ readonly instance: InstanceView; readonly replayed: boolean }>[]>;
  /** @param outputsOf Steps whose outputs are read; undefined: those of all. */
  readInstance(
    caller: Caller,
    id: string,
    outputsOf?: readonly string[],
  ): Promise<InstanceView | undefined>;
  /** The instance once it has settled, or as it is when the time is up or `signal` is aborted. */
  waitUntilSettled(
    caller: Caller,
    id: string,
    options: {
      readonly timeoutMs: number;
      readonly signal: AbortSignal;
      readonly outputsOf: readonly string[] | undefined;
    },
  ): Promise<InstanceView>;
  listInstances(
    caller: Caller,
    query: ListInstancesQuery,
    variables: readonly VariableFilter[],
  ): Promise<InstancePage>;
  /** Does the same to many instances, each for itself. */
  actOnMany(
    caller: Caller,
    request: BulkRequest,
  ): Promise<{
    readonly outcomes: readonly { readonly id: string; readonly error?: unknown }[];
    readonly nextCursor: string | null;
  }>;
  /** @param ifMatch The version that the caller has read. */
  cancelInstance(
    caller: Caller,
    id: string,
    request: CancelRequest,
    ifMatch?: number,
  ): Promise<InstanceView>;
  /** @param ifMatch The version that the caller has read. */
  pauseInstance(
    caller: Caller,
    id: string,
    request: PauseRequest,
    ifMatch?: number,
  ): Promise<InstanceView>;
  /** @param ifMatch The version that the caller has read. */
  patchInstance(
    caller: Caller,
    id: string,
    request: PatchRequest,
    ifMatch?: number,
  ): Promise<InstanceView>;
  /** @param ifMatch The version that the caller has read. */
  retryInstance(
    caller: Caller,
    id: string,
    request: RetryRequest,
    ifMatch?: number,
  ): Promise<InstanceView>;
  /** @param ifMatch The version that the caller has read. */
  promoteInstance(
    caller: Caller,
    id: string,
    request: PromoteRequest,
    ifMatch?: number,
  ): Promise<InstanceView>;
  /** @param ifMatch The version that the caller has read. */
  resumeInstance(
    caller: Caller,
    id: string,
    request: ResumeRequest,
    ifMatch?: number,
  ): Promise<InstanceView>;
  /**
   * What a cancel for this reason would do now.
   *
   * @throws InstanceNotFoundError
   */
  planCompensation(caller: Caller, id: string, reason?: string): Promise<CompensationPlanView>;
  /**
   * @param version Default: the latest.
   * @throws InstanceNotFoundError, VersionNotFoundError
   */
  readState(caller: Caller, id: string, version?: number): Promise<StateAtView>;
  /** @throws InstanceNotFoundError */
  checkConsistency(caller: Caller, id: string): Promise<ConsistencyView>;
  /**
   * Makes good what can be made good without an operator's judgement.
   *
   * @param ifMatch The version that the caller has read.
   * @throws InstanceNotFoundError, PreconditionFailedError
   */
  repairInstance(caller: Caller, id: string, ifMatch?: number): Promise<RepairView>;
  /** @throws InstanceNotFoundError */
  why(caller: Caller, id: string): Promise<WhyView>;
  /** @throws InstanceNotFoundError */
  listSteps(caller: Caller, id: string, query: ListStepsQuery): Promise<StepPage>;
  /** `undefined` where there is no such instance. */
  readHistory(caller: Caller, id: string, query: HistoryQuery): Promise<HistoryPage | undefined>;

  /**
   * From its beginning where `after` is absent; undefined where nothing more can come.
   *
   * @throws InstanceNotFoundError, BadCursorError
   */
  followInstance(caller: Caller, id: string, request: FollowRequest): Promise<Stream | undefined>;
  /**
   * Those of the tenant, from now on where `after` is absent.
   *
   * @throws BadCursorError
   */
  followAll(caller: Caller, request: FollowRequest): Promise<Stream>;

  publishEvent(caller: Caller, event: PublishEventRequest): Promise<PublishEventAnswer>;
  /** One outcome per event, in their order. */
  publishEvents(
    caller: Caller,
    events: readonly PublishEventRequest[],
  ): Promise<readonly Outcome<{ readonly event: PublishEventAnswer }>[]>;

  /** @throws InvalidCalendarError, CalendarExistsError */
  createCalendar(caller: Caller, document: unknown): Promise<CalendarView>;
  /**
   * @param ifMatch The version that the caller has read.
   * @throws InvalidCalendarError, CalendarChangedError
   */
  putCalendar(
    caller: Caller,
    id: string,
    document: unknown,
    ifMatch?: number,
  ): Promise<{ readonly calendar: CalendarView; readonly created: boolean }>;
  /** @throws CalendarNotFoundError */
  readCalendar(caller: Caller, id: string): Promise<CalendarView>;
  listCalendars(caller: Caller, query: ListCalendarsQuery): Promise<CalendarPage>;
  /**
   * @param ifMatch The version that the caller has read.
   * @throws CalendarNotFoundError, CalendarChangedError
   */
  deleteCalendar(caller: Caller, id: string, ifMatch?: number): Promise<void>;

  /**
   * @param ifMatch The version that the caller has read.
   * @throws GlobalLimitError, LimitChangedError, TooManyLimitsError
   */
  putLimit(
    caller: Caller,
    id: string,
    document: LimitDocument,
    ifMatch?: number,
  ): Promise<{ readonly limit: LimitView; readonly created: boolean }>;
  /** @throws GlobalLimitError, LimitNotFoundError */
  readLimit(caller: Caller, id: string): Promise<LimitView>;
  listLimits(caller: Caller, query: ListLimitsQuery): Promise<LimitPage>;
  /**
   * @param ifMatch The version that the caller has read.
   * @throws GlobalLimitError, LimitNotFoundError, LimitChangedError
   */
  deleteLimit(caller: Caller, id: string, ifMatch?: number): Promise<void>;

  createWebhook(caller: Caller, webhook: CreateWebhookRequest): Promise<CreatedWebhook>;
  /** @throws WebhookNotFoundError */
  putWebhook(caller: Caller, id: string, webhook: PutWebhookRequest): Promise<WebhookView>;
  /** @throws WebhookNotFoundError */
  readWebhook(caller: Caller, id: string): Promise<WebhookView>;
  listWebhooks(caller: Caller, query: ListWebhooksQuery): Promise<WebhookPage>;
  /** @throws WebhookNotFoundError */
  deleteWebhook(caller: Caller, id: string): Promise<void>;

  listDeadLetters(caller: Caller, query: ListDeadLettersQuery): Promise<DeadLetterPage>;
  /** @throws DeadLetterNotFoundError */
  readDeadLetter(caller: Caller, id: string): Promise<DeadLetterView>;
  /** @throws DeadLetterNotFoundError, DeadLetterResolvedError */
  retryDeadLetter(
    caller: Caller,
    id: string,
    request: ResolveDeadLetterRequest,
  ): Promise<DeadLetterView>;
  /** @throws DeadLetterNotFoundError, DeadLetterResolvedError */
  discardDeadLetter(
    caller: Caller,
    id: string,
    request: ResolveDeadLetterRequest,
  ): Promise<DeadLetterView>;

  /** Figures over the tenant's instances. */
  stats(caller: Caller, workflowId?: string): Promise<StatsView>;
  workers(): Promise<WorkerList>;
  tasks(caller: Caller): Promise<TaskList>;
  queues(caller: Caller): Promise<QueueList>;
  pauseQueue(caller: Caller, name: string, request: ControlQueueRequest): Promise<QueueView>;
  resumeQueue(caller: Caller, name: string): Promise<QueueView>;

  /** Never rejects: what does not answer is down. */
  readiness(): Promise<ReadinessView>;
  /** In the text format of Prometheus. */
  metrics(): Promise<{ readonly contentType: string; readonly text: string }>;
}

export interface FollowRequest {
  /** The id of the last event that was received. */
  readonly after: string | undefined;
  /** Patterns of the types that are asked for; none: all. */
  readonly types: readonly string[];
  /** Aborted when the caller has gone, or the process is asked to end. */
  readonly signal: AbortSignal;
}

/** Events as they come; none where a while has passed without. `cursor` is the place behind them. */
export type Stream = AsyncGenerator<{
  readonly events: readonly { readonly id: string; readonly event: StreamEvent }[];
  readonly cursor: string;
}>;

export interface ScheduleCalls {
  /** @throws InvalidScheduleError, ScheduleExistsError */
  createSchedule(caller: Caller, body: unknown): Promise<MadeSchedule>;
  /**
   * Makes it where there is none.
   *
   * @throws InvalidScheduleError, ScheduleChangedError; ScheduleNotFoundError where one is insisted on.
   */
  putSchedule(caller: Caller, id: string, body: unknown, ifMatch?: number): Promise<MadeSchedule>;
  /** @throws ScheduleNotFoundError, InvalidScheduleError, ScheduleChangedError */
  patchSchedule(
    caller: Caller,
    id: string,
    patch: JsonObject,
    ifMatch?: number,
  ): Promise<ScheduleView>;
  /** @throws ScheduleNotFoundError, as all below that name one. */
  readSchedule(caller: Caller, id: string): Promise<ScheduleView>;
  listSchedules(caller: Caller, query: ListSchedulesQuery): Promise<SchedulePage>;
  deleteSchedule(caller: Caller, id: string, ifMatch?: number): Promise<void>;
  pauseSchedule(
    caller: Caller,
    id: string,
    request: ControlScheduleRequest,
    ifMatch?: number,
  ): Promise<ScheduleView>;
  resumeSchedule(caller: Caller, id: string, ifMatch?: number): Promise<ScheduleView>;
  triggerSchedule(
    caller: Caller,
    id: string,
    idempotencyKey?: string,
  ): Promise<{ readonly run: ScheduleRunView; readonly replayed: boolean }>;
  /** @throws InvalidBackfillError */
  backfillSchedule(caller: Caller, id: string, request: BackfillRequest): Promise<BackfillAnswer>;
  listScheduleRuns(
    caller: Caller,
    id: string,
    query: ListScheduleRunsQuery,
  ): Promise<ScheduleRunPage>;
  nextTicks(caller: Caller, id: string, query: NextTicksQuery): Promise<NextTicksAnswer>;
}

interface MadeSchedule {
  readonly schedule: ScheduleView;
  /** False where it was there. */
  readonly created: boolean;
}

/** What every group of routes gets. */
export interface ApiContext {
  readonly runtime: Runtime;
  /** Aborted when the process is asked to end: whoever waits answers at once. */
  readonly stopping: AbortSignal;
}
