import type {
  DeadLetterView,
  InstanceView,
  LimitView,
  QueueView,
  ScheduleRunView,
  ScheduleView,
  SimulationView,
} from "@millrace/contract";
import { createLog } from "@millrace/telemetry";
import { type App, createApp } from "../src/app.ts";
import type { Caller, Runtime, Stream } from "../src/runtime.ts";

export interface Called {
  readonly verb: string;
  readonly caller: Caller;
  readonly args: readonly unknown[];
}

export interface FakeApp extends App {
  /** What has reached the runtime. */
  readonly calls: readonly Called[];
  /** The log's lines. */
  readonly lines: readonly Record<string, unknown>[];
}

const schedule = { id: "nightly", version: 3 } as ScheduleView;
const noBackfill = { ticks: 0, started: 0, waiting: 0, failed: 0, alreadyRan: 0 };

/** The whole HTTP side over a runtime that notes its calls and answers the least that will do. */
export async function createFakeApp(overrides: Partial<Runtime> = {}): Promise<FakeApp> {
  const calls: Called[] = [];
  const lines: Record<string, unknown>[] = [];
  const note =
    <Args extends readonly unknown[], Answer>(verb: string, answer: (...args: Args) => Answer) =>
    async (caller: Caller, ...args: Args) => {
      calls.push({ verb, caller, args });
      return answer(...args);
    };
  const answer = { id: "order", version: 1, contentHash: "c0ffee", warnings: [] };
  const published = { id: "e-1", duplicate: false, delivered: 1, cancelled: 0, started: 0 };
  const fake: Runtime = {
    registerDefinition: note("registerDefinition", () => ({ answer, created: true })),
    validateDefinition: note("validateDefinition", () => answer),
    readDefinition: note("readDefinition", () => undefined),
    listDefinitions: note("listDefinitions", () => ({ items: [], nextCursor: null })),
    simulate: note("simulate", () => ({}) as SimulationView),
    startInstance: note("startInstance", () => ({ instance: view(), replayed: false })),
    startInstances: note("startInstances", (requests: readonly unknown[]) =>
      requests.map(() => ({ instance: view(), replayed: false })),
    ),
    readInstance: note("readInstance", () => view()),
    waitUntilSettled: note("waitUntilSettled", () => view()),
    listInstances: note("listInstances", () => ({ items: [view()], nextCursor: null })),
    actOnMany: note("actOnMany", () => ({ outcomes: [], nextCursor: null })),
    cancelInstance: note("cancelInstance", () => view({ status: "CANCELLED", version: 8 })),
    pauseInstance: note("pauseInstance", () => view({ status: "PAUSED", version: 8 })),
    patchInstance: note("patchInstance", () => view({ version: 8 })),
    retryInstance: note("retryInstance", () => view({ version: 9 })),
    promoteInstance: note("promoteInstance", () => view({ version: 9 })),
    resumeInstance: note("resumeInstance", () => view({ version: 9 })),
    planCompensation: note("planCompensation", () => plan),
    readState: note("readState", () => stateAt),
    checkConsistency: note("checkConsistency", () => CONSISTENT),
    repairInstance: note("repairInstance", () => ({
      before: CONSISTENT,
      repaired: [],
      after: CONSISTENT,
    })),
    why: note("why", () => ({ ...NOWHERE, at: NOON, summary: "", reasons: [] })),
    listSteps: note("listSteps", () => ({ items: [], nextCursor: null })),
    readHistory: note("readHistory", () => ({ items: [], nextCursor: null })),
    followInstance: note("followInstance", () => emptyStream()),
    followAll: note("followAll", () => emptyStream()),
    publishEvent: note("publishEvent", () => published),
    publishEvents: note("publishEvents", (events: readonly unknown[]) =>
      events.map(() => ({ event: published })),
    ),
    createCalendar: note("createCalendar", () => calendar),
    putCalendar: note("putCalendar", () => ({ calendar, created: false })),
    readCalendar: note("readCalendar", () => calendar),
    listCalendars: note("listCalendars", () => ({ items: [calendar], nextCursor: null })),
    deleteCalendar: note("deleteCalendar", () => undefined),
    putLimit: note("putLimit", () => ({ limit, created: false })),
    readLimit: note("readLimit", () => limit),
    listLimits: note("listLimits", () => ({ items: [limit], nextCursor: null })),
    deleteLimit: note("deleteLimit", () => undefined),
    createWebhook: note("createWebhook", () => ({ ...webhook, secret: "whsec_" })),
    putWebhook: note("putWebhook", () => webhook),
    readWebhook: note("readWebhook", () => webhook),
    listWebhooks: note("listWebhooks", () => ({ items: [webhook], nextCursor: null })),
    deleteWebhook: note("deleteWebhook", () => undefined),
    listDeadLetters: note("listDeadLetters", () => ({ items: [], nextCursor: null })),
    readDeadLetter: note("readDeadLetter", () => ({}) as DeadLetterView),
    retryDeadLetter: note("retryDeadLetter", () => ({}) as DeadLetterView),
    discardDeadLetter: note("discardDeadLetter", () => ({}) as DeadLetterView),
    createSchedule: note("createSchedule", () => ({ schedule, created: true })),
    putSchedule: note("putSchedule", () => ({ schedule, created: false })),
    patchSchedule: note("patchSchedule", () => schedule),
    readSchedule: note("readSchedule", () => schedule),
    listSchedules: note("listSchedules", () => ({ items: [], nextCursor: null })),
    deleteSchedule: note("deleteSchedule", () => undefined),
    pauseSchedule: note("pauseSchedule", () => schedule),
    resumeSchedule: note("resumeSchedule", () => schedule),
    triggerSchedule: note("triggerSchedule", () => ({
      run: {} as ScheduleRunView,
      replayed: false,
    })),
    backfillSchedule: note("backfillSchedule", () => noBackfill),
    listScheduleRuns: note("listScheduleRuns", () => ({ items: [], nextCursor: null })),
    nextTicks: note("nextTicks", () => ({ items: [] })),
    stats: note("stats", () => ({ ...noFigures, at: NOON, isComplete: true, workflows: [] })),
    workers: async () => ({ items: [] }),
    tasks: note("tasks", () => ({ items: [] })),
    queues: note("queues", () => ({ items: [] })),
    pauseQueue: note("pauseQueue", () => ({ name: "default" }) as QueueView),
    resumeQueue: note("resumeQueue", () => ({ name: "default" }) as QueueView),
    readiness: async () => ({ status: "ok", checks: { postgres: { status: "ok" } } }),
    metrics: async () => ({ contentType: "text/plain; version=0.0.4", text: "up 1\n" }),
    ...overrides,
  };
  const log = createLog({
    level: "debug",
    name: "api",
    destination: { write: (line) => lines.push(JSON.parse(line) as Record<string, unknown>) },
  });
  return { ...(await createApp({ runtime: fake, log })), calls, lines };
}

async function* emptyStream(): Stream {}

const plan = {
  instanceId: "01890a5d-ac96-774b-bcce-b302099a8057",
  workflowId: "order",
  workflowVersion: 1,
  version: 7,
  status: "RUNNING" as const,
  cancellable: true,
  plan: [],
  steps: [],
  awaited: [],
  stopped: [],
  skipped: [],
  failed: [],
};

const NOON = "2026-01-31T12:00:00.000Z";
const webhook = {
  id: "01890a5d-ac96-774b-bcce-b302099a8057",
  url: "https://example.com/hook",
  types: ["workflow.**"],
  workflowIds: null,
  description: null,
  status: "ENABLED" as const,
  disabledReason: null,
  pending: 0,
  failingSince: null,
  lastSuccessAt: null,
  lastFailureAt: null,
  lastFailure: null,
  createdAt: NOON,
  updatedAt: NOON,
};

const calendar = {
  id: "office",
  timeZone: "UTC",
  workingHours: {},
  version: 3,
  holidaysUntil: null,
  createdAt: NOON,
  updatedAt: NOON,
};
const limit: LimitView = {
  id: "type:order",
  kind: "TYPE",
  workflowId: "order",
  userId: null,
  source: "SET",
  limit: 5,
  queue: "FIFO",
  maxQueued: null,
  usage: { held: 5, queued: 2 },
  version: 3,
  createdAt: NOON,
  updatedAt: NOON,
};
const CONSISTENT = {
  instanceId: "01890a5d-ac96-774b-bcce-b302099a8057",
  version: 7,
  checkedAt: NOON,
  ok: true,
  findings: [],
  skipped: [],
};

const NOWHERE = {
  instanceId: "01890a5d-ac96-774b-bcce-b302099a8057",
  version: 7,
  status: "RUNNING" as const,
};
const noFigures = {
  total: 0,
  instances: {},
  successRate: null,
  executionTimeMs: null,
  retries: 0,
};

const stateAt = {
  id: "01890a5d-ac96-774b-bcce-b302099a8057",
  workflowId: "order",
  workflowVersion: 1,
  version: 7,
  latestVersion: 7,
  at: "2026-01-31T12:00:00.000Z",
  status: "RUNNING" as const,
  input: null,
  output: null,
  error: null,
  state: { variables: {}, steps: {}, waitingFor: [] },
  compensation: null,
  cancellation: null,
  progress: { completed: 0, total: 2 },
  createdAt: "2026-01-31T12:00:00.000Z",
  startedAt: null,
  completedAt: null,
};

export const ID = "01890a5d-ac96-774b-bcce-b302099a8057";

export function view(more: Partial<InstanceView> = {}): InstanceView {
  return {
    id: ID,
    workflowId: "order",
    workflowVersion: 1,
    status: "RUNNING",
    version: 7,
    input: { amount: 10 },
    output: null,
    error: null,
    state: { variables: { total: 3, name: "a" }, steps: {}, waitingFor: [] },
    compensation: null,
    cancellation: null,
    parent: null,
    pause: null,
    progress: { completed: 0, total: 2 },
    correlationId: null,
    tenantId: "default",
    userId: null,
    startEventId: null,
    priority: 0,
    deadline: null,
    metadata: {},
    createdAt: "2026-01-31T12:00:00.000Z",
    updatedAt: "2026-01-31T12:00:00.000Z",
    startedAt: null,
    completedAt: null,
    ...more,
  };
}
