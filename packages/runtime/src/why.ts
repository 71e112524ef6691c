import { explainWait, hasOpenDeadLetter, isSettled, matcherOf } from "@millrace/engine";
import type {
  Definition,
  EventFact,
  InstanceStatus,
  Pause,
  Snapshot,
  WaitRef,
  WorkflowError,
} from "@millrace/engine";
import {
  listDeadLetters,
  liveWorkers,
  loadReads,
  readInstance,
  recentEvents,
} from "@millrace/store";
import type { InstanceRead, LiveWorker, StepRead, TimerRead, WaitRead } from "@millrace/store";
import { answerLoading } from "./answer.ts";
import { InstanceNotFoundError } from "./errors.ts";
import { factOf } from "./satisfies.ts";
import type { Caller, Services } from "./services.ts";

/** Why an instance is not moving: one reason for each thing that it stands at. */
export interface Why {
  readonly snapshot: Snapshot;
  readonly at: Date;
  /** Empty: it is about to move. */
  readonly reasons: readonly Reason[];
}

interface AtStep {
  readonly stepId: string;
  readonly executionId: string;
  /** It undoes another one. */
  readonly isCompensation: boolean;
}

export type Reason =
  | { readonly kind: "ENDED"; readonly since: Date | null }
  | {
      /** It failed, and an operator is to say what becomes of it. */
      readonly kind: "DEAD_LETTER";
      readonly deadLetterId: string | null;
      readonly stepId: string;
      readonly since: Date | null;
      readonly error: WorkflowError | null;
    }
  | { readonly kind: "STARTS_LATER"; readonly until: Date }
  | {
      readonly kind: "PAUSED";
      readonly by: string;
      readonly reason: string | null;
      readonly since: string;
      readonly until: string | null;
      /** Of a step whose retries are spent. */
      readonly error: WorkflowError | null;
      /** What is applied when it resumes. */
      readonly held: {
        readonly steps: number;
        readonly results: number;
        readonly events: number;
        readonly timers: number;
      };
    }
  | ({
      readonly kind: "NO_WORKER_KNOWS_TASK" | "NO_WORKER_FOR_QUEUE" | "QUEUED";
      readonly taskId: string;
      readonly queue: string;
      readonly since: Date;
      /** Live workers that could take it. */
      readonly workers: readonly string[];
    } & AtStep)
  | ({
      readonly kind: "RUNNING" | "WORKER_LOST" | "AWAITED";
      readonly taskId: string;
      readonly workerId: string | null;
      readonly host: string | null;
      readonly attempt: number;
      readonly since: Date | null;
      /** AWAITED: the end of its grace. */
      readonly until: Date | null;
    } & AtStep)
  | ({
      readonly kind: "RETRYING";
      /** Null: another child is started. */
      readonly taskId: string | null;
      /** The next one. */
      readonly attempt: number;
      readonly until: Date | null;
      readonly error: WorkflowError | null;
    } & AtStep)
  | ({ readonly kind: "DELAY"; readonly since: Date; readonly until: Date | null } & AtStep)
  | ({
      /** It waits for a child to settle. */
      readonly kind: "CHILD_WORKFLOW";
      readonly childId: string;
      readonly childWorkflowId: string;
      /** Null: it is about to be started. */
      readonly childStatus: InstanceStatus | null;
      readonly since: Date;
      /** The end of its grace, where the step is only awaited. */
      readonly until: Date | null;
    } & AtStep)
  | ({
      /** EVENT_TAKEN: an event has satisfied the wait, and is about to be applied. */
      readonly kind: "EVENT_WAIT" | "EVENT_TAKEN";
      readonly pattern: string;
      readonly condition: string | null;
      readonly filledIn: string | null;
      readonly since: Date;
      readonly until: Date | null;
      readonly nearMisses: readonly NearMiss[];
    } & AtStep);

/** A past event of the wait's pattern that did not satisfy it. */
export interface NearMiss {
  readonly event: EventFact;
  /** CONDITION: some parts of it are false. BEFORE_WAIT: it came before the wait was open. */
  readonly because: "CONDITION" | "BEFORE_WAIT";
  readonly failed: readonly {
    readonly source: string;
    readonly filledIn: string;
    readonly problem?: string;
  }[];
}

/** Events that are held against a wait's condition, and those that are shown. */
const eventsLookedAt = 100;
const eventsShown = 5;

/** Waits that are explained in full. */
const waitsExplained = 20;

/** @throws InstanceNotFoundError */
export async function whyInstance(
  services: Services,
  { tenantId }: Caller,
  instanceId: string,
): Promise<Why> {
  const { db } = services.database;
  const read = await readInstance(db, { tenantId, instanceId });
  if (read === undefined) throw new InstanceNotFoundError(instanceId);
  const { snapshot } = read;
  const at = services.clock.now();
  if (hasOpenDeadLetter(snapshot)) {
    return { snapshot, at, reasons: [await deadLetterReason(services, snapshot)] };
  }
  if (isSettled(snapshot)) {
    return { snapshot, at, reasons: [{ kind: "ENDED", since: snapshot.completedAt }] };
  }
  const { workflowId, workflowVersion } = snapshot;
  const [workers, { definition }] = await Promise.all([
    liveWorkers(db),
    services.definitions.get(tenantId, workflowId, workflowVersion),
  ]);
  if (snapshot.pause !== null) {
    const running = read.steps.filter(({ status }) => status === "RUNNING");
    const reasons = running.flatMap((step) => stepReason(step, read, workers) ?? []);
    return { snapshot, at, reasons: [pausedReason(read, snapshot.pause, at), ...reasons] };
  }
  const waits = read.waits.filter(({ purpose }) => purpose === "STEP");
  const waiting = await Promise.all(
    waits.map((wait, index) =>
      waitReason(services, definition, read, wait, index < waitsExplained),
    ),
  );
  const steps = read.steps.flatMap((step) => stepReason(step, read, workers) ?? []);
  return { snapshot, at, reasons: [...startReason(read), ...steps, ...waiting] };
}

async function deadLetterReason(
  { database: { db } }: Services,
  { tenantId, id: instanceId, error, completedAt }: Snapshot,
): Promise<Reason> {
  const filter = { status: "OPEN", instanceId } as const;
  const { items } = await listDeadLetters(db, tenantId, filter, { limit: 1 });
  return {
    kind: "DEAD_LETTER",
    deadLetterId: items[0]?.id ?? null,
    stepId: error?.stepId ?? "",
    since: completedAt,
    error,
  };
}

function startReason({ snapshot, timers }: InstanceRead): readonly Reason[] {
  const start = timers.find(({ kind }) => kind === "start");
  if (snapshot.status !== "CREATED" || start === undefined) return [];
  return [{ kind: "STARTS_LATER", until: start.dueAt }];
}

function pausedReason(
  { snapshot, steps, waits, timers }: InstanceRead,
  { by, reason, at: since, until }: Pause,
  at: Date,
): Reason {
  const { error } = snapshot;
  const held = {
    steps: steps.filter(({ status }) => status === "PENDING" || status === "RETRYING").length,
    results: Object.values(snapshot.live).filter(({ phase }) => phase === "HELD").length,
    events: waits.filter(({ matchedEventId }) => matchedEventId !== null).length,
    timers: timers.filter(({ kind, dueAt: due }) => !runsOn.has(kind) && due <= at).length,
  };
  return { kind: "PAUSED", by, reason, since, until, error, held };
}

/** Timers that a pause does not hold. */
const runsOn: ReadonlySet<TimerRead["kind"]> = new Set(["grace", "resume"]);

/** Of a step that is not an event wait; undefined where it has ended. */
function stepReason(
  step: StepRead,
  read: InstanceRead,
  workers: readonly LiveWorker[],
): Reason | undefined {
  const { taskId, type, status } = step;
  if (type === "DELAY" && status === "WAITING") {
    const until = dueAt(read, step, "delay") ?? dueAt(read, step, "total");
    return { ...placeOf(step), kind: "DELAY", since: step.createdAt, until };
  }
  if (status === "RETRYING") {
    const { attempt, retryAt: until, error } = step;
    return { ...placeOf(step), kind: "RETRYING", taskId, attempt, until, error };
  }
  if (type === "SUB_WORKFLOW" && status === "WAITING") return childReason(step, read);
  if (taskId === null) return undefined;
  if (status === "RUNNING") return runningReason(step, taskId, read, workers);
  return status === "PENDING" ? pendingReason(step, taskId, workers) : undefined;
}

function childReason(step: StepRead, read: InstanceRead): Reason | undefined {
  const { child } = step;
  if (child === undefined) return undefined;
  const { childId, workflowId: childWorkflowId, status, requestedAt: since } = child;
  const until = step.awaited ? dueAt(read, step, "grace") : null;
  return {
    ...placeOf(step),
    kind: "CHILD_WORKFLOW",
    childId,
    childWorkflowId,
    childStatus: status,
    since,
    until,
  };
}

function runningReason(
  step: StepRead,
  taskId: string,
  read: InstanceRead,
  workers: readonly LiveWorker[],
): Reason {
  const { workerId, awaited, attempt, startedAt: since } = step;
  const worker = workers.find(({ id }) => id === workerId);
  const held = worker === undefined ? "WORKER_LOST" : "RUNNING";
  return {
    ...placeOf(step),
    kind: awaited ? "AWAITED" : held,
    taskId,
    workerId,
    host: worker?.host ?? null,
    attempt,
    since,
    until: awaited ? dueAt(read, step, "grace") : null,
  };
}

function pendingReason(step: StepRead, taskId: string, workers: readonly LiveWorker[]): Reason {
  const queue = step.queue ?? "default";
  const serving = workers.filter(({ queues }) => queues.includes(queue));
  const able = serving.filter(({ tasks }) => tasks.includes(taskId)).map(({ id }) => id);
  const none = serving.length === 0 ? "NO_WORKER_FOR_QUEUE" : "NO_WORKER_KNOWS_TASK";
  const kind = able.length > 0 ? "QUEUED" : none;
  return { ...placeOf(step), kind, taskId, queue, since: step.createdAt, workers: able };
}

async function waitReason(
  services: Services,
  definition: Definition,
  read: InstanceRead,
  wait: WaitRead,
  isExplained: boolean,
): Promise<Reason> {
  const { pattern, openedAt: since, matchedEventId } = wait;
  const place = { path: wait.executionPath, iteration: wait.iteration };
  const explain = (event?: EventFact) => explained(services, definition, read, wait, event);
  const taken = matchedEventId !== null;
  const misses = isExplained && !taken ? await nearMisses(services, read, wait, explain) : [];
  const condition = waitCondition(definition, wait);
  return {
    stepId: wait.stepId ?? "",
    executionId: `${wait.executionPath}#${wait.iteration}`,
    isCompensation: false,
    kind: taken ? "EVENT_TAKEN" : "EVENT_WAIT",
    pattern,
    condition: condition ?? null,
    filledIn: (isExplained ? (await explain())?.filledIn : undefined) ?? null,
    since,
    until: dueAt(read, place, "wait") ?? dueAt(read, place, "total"),
    nearMisses: misses,
  };
}

/** The source of a wait's condition, where it has one. */
export function waitCondition(definition: Definition, wait: WaitRef): string | undefined {
  return matcherOf(definition, wait)?.eventCondition?.source;
}

type Explain = (event?: EventFact) => ReturnType<typeof explained>;

/** Of the last events those that missed by the least, the latest first. */
async function nearMisses(
  { database: { db } }: Services,
  { snapshot }: InstanceRead,
  { pattern, openedAt }: WaitRead,
  explain: Explain,
): Promise<readonly NearMiss[]> {
  const events = await recentEvents(db, snapshot.tenantId, pattern, eventsLookedAt);
  const misses: NearMiss[] = [];
  for (const stored of events) {
    const event = factOf(stored);
    const failed = ((await explain(event))?.conjuncts ?? []).filter(({ holds }) => holds === false);
    const isEarly = stored.receivedAt < openedAt;
    // One that satisfies it in all and came in time is on its way.
    if (failed.length === 0 && !isEarly) continue;
    misses.push({
      event,
      because: failed.length > 0 ? "CONDITION" : "BEFORE_WAIT",
      failed: failed.map(({ source, filledIn, problem }) => ({
        source,
        filledIn,
        ...(problem !== undefined && { problem }),
      })),
    });
  }
  return misses
    .toSorted((one, other) => one.failed.length - other.failed.length)
    .slice(0, eventsShown);
}

async function explained(
  { database: { db }, clock }: Services,
  definition: Definition,
  { snapshot }: InstanceRead,
  wait: WaitRef,
  event: EventFact | undefined,
) {
  const key = { tenantId: snapshot.tenantId, instanceId: snapshot.id };
  const { answer } = await answerLoading(
    `instance ${snapshot.id}, why`,
    (reads) => explainWait(definition, snapshot, wait, event, reads, clock.now()),
    (requests) => loadReads(db, key, requests),
  );
  return answer;
}

interface Place {
  readonly path: string;
  readonly iteration: number;
}

function dueAt({ timers }: InstanceRead, { path, iteration }: Place, kind: string): Date | null {
  const timer = timers.find(
    (each) => each.kind === kind && each.path === path && each.iteration === iteration,
  );
  return timer?.dueAt ?? null;
}

function placeOf({ stepId, path, iteration, compensates }: StepRead): AtStep {
  return {
    stepId,
    executionId: `${path}#${iteration}`,
    isCompensation: compensates !== null,
  };
}
