import type {
  CompensationStepView,
  CompensationView,
  DefinitionSummary,
  DefinitionView,
  InstanceView,
  JsonObject,
  JsonValue,
  ParentView,
  PublishEventAnswer,
  StepExecutionView,
  StepView,
  WaitView,
} from "@millrace/contract";
import type { Published } from "@millrace/runtime";
import { attemptsOf, latestSteps } from "@millrace/store";
import type {
  InstanceRead,
  ListedStep,
  StepRead,
  StoredDefinition,
  WaitRead,
} from "@millrace/store";

/** What an instance's definition adds to its view. */
export interface DefinitionFacts {
  /** Steps, for progress. */
  readonly size: number;
  /** Source of a wait's condition, where it has one. */
  conditionOf(wait: WaitRead): string | undefined;
}

/** Rows as CONTRACT 3 shows them. Times are ISO 8601, what is absent is null. */
export function instanceView(read: InstanceRead, definition: DefinitionFacts): InstanceView {
  const { snapshot, metadata, deadline, updatedAt } = read;
  return {
    id: snapshot.id,
    workflowId: snapshot.workflowId,
    workflowVersion: snapshot.workflowVersion,
    status: snapshot.status,
    version: snapshot.version,
    input: json(snapshot.input),
    output: json(snapshot.output),
    error: snapshot.error && errorView(snapshot.error),
    state: {
      variables: snapshot.variables,
      steps: stepViews(read),
      waitingFor: waitViews(read, definition),
    },
    compensation: compensationView(read),
    cancellation: snapshot.cancellation,
    parent: snapshot.parent && parentView(snapshot.parent),
    pause: snapshot.pause,
    progress: progressView(snapshot, definition),
    correlationId: snapshot.correlationId,
    tenantId: snapshot.tenantId,
    userId: snapshot.userId,
    startEventId: snapshot.startEventId,
    priority: snapshot.priority,
    deadline: time(deadline),
    metadata: (metadata ?? {}) as JsonObject,
    createdAt: snapshot.createdAt.toISOString(),
    updatedAt: updatedAt.toISOString(),
    startedAt: time(snapshot.startedAt),
    completedAt: time(snapshot.completedAt),
  };
}

export function progressView(
  { completedSteps, begunItems }: InstanceRead["snapshot"],
  { size }: { readonly size: number },
): InstanceView["progress"] {
  return { completed: completedSteps, total: size + begunItems };
}

/** By step id the latest execution of each; those in items of a MAP also by their path. */
function stepViews({ steps, snapshot: { live } }: InstanceRead): Record<string, StepView> {
  const shown = steps.filter(({ compensates }) => compensates === null);
  const viewOf = (step: StepRead) => stepView(step, live[executionId(step)]?.items);
  const byId = [...latestSteps(shown)].map(([stepId, step]) => [stepId, viewOf(step)] as const);
  const items = shown.filter(isInItem).map((step) => [step.path, viewOf(step)] as const);
  return Object.fromEntries([...byId, ...items]);
}

function parentView(parent: NonNullable<InstanceRead["snapshot"]["parent"]>): ParentView {
  const { instanceId, path, awaited } = parent;
  return { instanceId, path, executionId: executionId(parent), detached: !awaited };
}

/** Ids are unique in a definition, so that only what runs once an item needs its path as a name. */
export function isInItem({ path }: Pick<StepRead, "path">): boolean {
  return path.includes("[");
}

/** @param open The items of a MAP that is open; its row has them only as they were at first. */
function stepView(
  step: StepRead,
  open?: InstanceRead["snapshot"]["live"][string]["items"],
): StepView {
  const { status, startedAt, createdAt, blocked, progress, workerId } = step;
  return {
    status,
    output: json(step.output),
    error: step.error && errorView(step.error),
    attempts: attemptsOf(step),
    // A wait has begun when it was entered; a task when a worker took it.
    startedAt: time(startedAt ?? (status === "WAITING" ? createdAt : null)),
    completedAt: time(step.completedAt),
    type: step.type,
    ...(step.path !== step.stepId && { path: step.path }),
    executionId: executionId(step),
    iteration: step.iteration,
    deliveries: step.deliveries,
    completionNumber: step.completion,
    ...(status === "RETRYING" && { nextAttemptAt: time(step.retryAt) }),
    ...(blocked !== null && { blocked }),
    ...(progress !== undefined && { progress: json(progress) }),
    ...(workerId !== null && { workerId }),
    ...(step.child !== undefined && { childId: step.child.childId }),
    ...(step.items !== undefined && { items: itemsView(open ?? step.items, open?.next) }),
  };
}

/** @param next Index of the item that begins next; absent where none does. */
function itemsView(
  { count, completed, failed }: NonNullable<StepRead["items"]>,
  next = completed + failed,
): NonNullable<StepView["items"]> {
  return { count, completed, failed, active: next - completed - failed };
}

export function stepExecutionView(step: ListedStep): StepExecutionView {
  const { stepId, path, input, compensates } = step;
  return { ...stepView(step), stepId, path, input: json(input), compensates };
}

function executionId({
  path,
  iteration,
}: {
  readonly path: string;
  readonly iteration: number;
}): string {
  return `${path}#${iteration}`;
}

/** Open event waits, then delays. A wait that has its event already is none any more. */
function waitViews(
  { steps, waits, timers }: InstanceRead,
  definition: DefinitionFacts,
): WaitView[] {
  const dueAt = new Map(timers.map((it) => [`${it.kind} ${it.path}#${it.iteration}`, it.dueAt]));
  // Whichever ends the wait first is the one that is set.
  const endOf = (kind: "wait" | "delay", key: string) =>
    dueAt.get(`${kind} ${key}`) ?? dueAt.get(`total ${key}`);

  const events = waits.flatMap((wait): WaitView[] => {
    const { stepId, purpose, matchedEventId, pattern, openedAt } = wait;
    if (purpose !== "STEP" || stepId === null || matchedEventId !== null) return [];
    const condition = definition.conditionOf(wait);
    const at = { path: wait.executionPath, iteration: wait.iteration };
    const until = endOf("wait", executionId(at));
    return [
      {
        stepId,
        ...(at.path !== stepId && { path: at.path }),
        executionId: executionId(at),
        kind: "EVENT",
        eventPattern: pattern,
        ...(condition !== undefined && { eventCondition: condition }),
        since: openedAt.toISOString(),
        ...(until && { until: until.toISOString() }),
      },
    ];
  });
  const delays = steps.flatMap((step): WaitView[] => {
    if (step.type !== "DELAY" || step.status !== "WAITING") return [];
    const until = endOf("delay", executionId(step));
    return [
      {
        stepId: step.stepId,
        ...(step.path !== step.stepId && { path: step.path }),
        executionId: executionId(step),
        kind: "DELAY",
        since: (step.startedAt ?? step.createdAt).toISOString(),
        ...(until && { until: until.toISOString() }),
      },
    ];
  });
  return [...events, ...delays];
}

function compensationView({ snapshot, steps }: InstanceRead): CompensationView | null {
  const { compensation } = snapshot;
  if (compensation === null) return null;
  return {
    status: compensation.status,
    plan: [...compensation.plan],
    completed: [...compensation.completed],
    failed: compensation.failed.map(({ stepId, error, timestamp }) => ({
      stepId,
      error: error.message,
      timestamp,
    })),
    steps: Object.fromEntries(
      steps.flatMap((step) =>
        step.compensates === null ? [] : [[step.stepId, compensationStepView(step)]],
      ),
    ),
    uncertain: [...compensation.uncertain],
    startedAt: compensation.startedAt,
    completedAt: compensation.completedAt,
  };
}

function compensationStepView(step: StepRead): CompensationStepView {
  return {
    status: step.status,
    attempts: attemptsOf(step),
    output: json(step.output),
    error: step.error && errorView(step.error),
    startedAt: time(step.startedAt),
    completedAt: time(step.completedAt),
    ...(step.compensates !== null && { compensationFor: stepOf(step.compensates) }),
    executionId: executionId(step),
    ...(step.status === "RETRYING" && { nextAttemptAt: time(step.retryAt) }),
  };
}

/** Step id of an execution key. */
export function stepOf(executionKey: string): string {
  return executionKey.replace(/#\d+$/, "").replace(/^.*[./]/, "");
}

type StoredError = NonNullable<StepRead["error"]>;

export function errorView(error: StoredError): NonNullable<InstanceView["error"]> {
  return { ...error, details: json(error.details) };
}

export function publishedView({ rejected, ...counts }: Published): PublishEventAnswer {
  if (rejected === undefined) return counts;
  return {
    ...counts,
    rejected: rejected.map(({ workflowId, errors }) => ({ workflowId, errors: [...errors] })),
  };
}

/** Of a definition version, as lists show it. */
export function definitionSummary(stored: StoredDefinition): DefinitionSummary {
  const { name, description, tags } = stored.document;
  return {
    id: stored.id,
    version: stored.version,
    contentHash: stored.contentHash,
    name: name ?? null,
    description: description ?? null,
    tags: tags ?? [],
    createdAt: stored.createdAt.toISOString(),
  };
}

export function definitionView(stored: StoredDefinition): DefinitionView {
  return { ...definitionSummary(stored), definition: stored.document };
}

export function time(value: Date | null): string | null {
  return value && value.toISOString();
}

/** What the store gives is JSON; that a step has no output is said with null. */
export function json(value: unknown): JsonValue {
  return (value ?? null) as JsonValue;
}
