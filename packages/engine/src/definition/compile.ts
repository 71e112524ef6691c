import type {
  CancellationTrigger as CancellationTriggerDocument,
  CompensationStep as CompensationStepDocument,
  EventWaitStep as EventWaitStepDocument,
  RetryDocument,
  StartTrigger as StartTriggerDocument,
  StepDocument,
  WorkflowDefinition,
} from "@millrace/contract";
import type { EqualityConjunct, Expression } from "@millrace/expressions";
import { equalityConjuncts } from "@millrace/expressions";
import { DefinitionError } from "../errors.ts";
import type { RetryInterval, RetryPolicy } from "../retry.ts";
import type {
  CancellationTrigger,
  Clocks,
  CompensationStep,
  Definition,
  Enclosure,
  ErrorRoute,
  EventMatcher,
  EventWaitStep,
  StartTrigger,
  RetryTemplates,
  Step,
  TaskCall,
  Transitions,
} from "./definition.ts";
import type { JsonObject } from "../state/snapshot.ts";
import { inStoredOrder } from "../state/stored-order.ts";
import { cyclicComponents } from "./graph.ts";
import type { Draft } from "./reads-of-steps.ts";
import { readsOfCompensation, readsOfSteps, successorsOf } from "./reads-of-steps.ts";
import type { Reading } from "./readings.ts";
import type { Names } from "./values.ts";
import {
  defaultItemName,
  namesOfItem,
  readCondition,
  readDuration,
  readLookback,
  readEventCondition,
  readEventName,
  readEventPattern,
  readInput,
  readInterval,
  readPayloadPath,
  readQueue,
  readReason,
  readStartCondition,
  readStartPattern,
  readStartId,
  readStartValue,
  readTaskId,
  readUntil,
  readWorkflowId,
  readWorkingDuration,
  readValue,
} from "./values.ts";

const defaultQueue = "default";
const defaultMaxIterations = 10_000;

/** Items of a MAP at work at once, so that the instance's row stays small (DESIGN, The commit). */
const maxActiveItems = 500;

/**
 * Brings a document into the form that decisions work on.
 *
 * @throws DefinitionError for a document that `validateDefinition` would not have passed.
 */
export function compileDefinition(document: WorkflowDefinition, version: number): Definition {
  const lists = compileLists(document.steps);
  const drafts = lists.flat();
  const [start] = drafts;
  if (start === undefined) throw new DefinitionError("the definition has no steps");
  const output = optional(document.output, readValue);
  const repeating = new Set(lists.flatMap((list) => [...stepsOnCycles(list)]));
  const reads = readsOfSteps(drafts, output);
  const steps = new Map<string, Step>(
    drafts.map((draft) => [
      draft.stepId,
      {
        ...draft,
        repeats: repeating.has(draft.stepId),
        reads: reads.get(draft.stepId) ?? [],
      },
    ]),
  );
  const compensations = (document.compensationSteps ?? []).map((each) =>
    compileCompensation(each, namesAround(steps, each.compensationFor)),
  );
  return {
    id: document.id,
    version,
    start: start.stepId,
    steps,
    compensationSteps: new Map(compensations.map((step) => [step.stepId, step])),
    compensationFor: new Map(compensations.map((step) => [step.compensationFor, step])),
    compensateOnFailure: document.compensateOnFailure ?? compensations.length > 0,
    childrenCompensate: document.compensateOnFailure ?? true,
    cancellationTriggers: (document.cancellationTriggers ?? []).map(compileTrigger),
    startTriggers: (document.startTriggers ?? []).map(compileStartTrigger),
    variables: inStoredOrder(document.variables ?? {}) as JsonObject,
    output,
    timeout: optional(document.timeout, readDuration),
    ...compileRetry(document.retry, "DEFINITION"),
    priority: document.priority ?? 0,
    concurrency: document.concurrency && {
      limit: document.concurrency.limit,
      queue: document.concurrency.queue ?? "PRIORITY",
      maxQueued: document.concurrency.maxQueued,
    },
    size: drafts.filter(({ lineage }) => lineage.every(isBranch)).length,
  };
}

/** The roots of the items that a step is inside of. */
function namesAround(steps: ReadonlyMap<string, Step>, stepId: string): Names {
  const lineage = steps.get(stepId)?.lineage ?? [];
  return lineage.flatMap((outer) => {
    const around = steps.get(outer.stepId);
    return around?.type === "MAP" ? namesOfItem(around.itemName) : [];
  });
}

/** Where a list of steps stands, and the roots that its items add. */
interface Surroundings {
  readonly lineage: readonly Enclosure[];
  readonly names: Names;
}

/** The definition's own list first, then those inside its steps, each as a list of its own. */
function compileLists(
  documents: readonly StepDocument[],
  around: Surroundings = { lineage: [], names: [] },
): readonly (readonly Draft[])[] {
  const inner = documents.flatMap((document) => {
    const { stepId } = document;
    const { lineage } = around;
    if (document.type === "PARALLEL") {
      return document.branches.flatMap(({ name, steps }) =>
        compileLists(steps, { ...around, lineage: [...lineage, { stepId, branch: name }] }),
      );
    }
    if (document.type !== "MAP") return [];
    const names = [...around.names, ...namesOfItem(document.itemName)];
    return compileLists(document.steps, {
      lineage: [...lineage, { stepId, branch: undefined }],
      names,
    });
  });
  return [documents.map((document) => compileStep(document, around)), ...inner];
}

function isBranch({ branch }: Enclosure): boolean {
  return branch !== undefined;
}

function compileStep(document: StepDocument, { lineage, names }: Surroundings): Draft {
  const read = readerWith(names);
  const base = {
    stepId: document.stepId,
    lineage,
    condition: read(document.condition, readCondition),
    transitions: compileTransitions(document, names),
    onError: (document.onError ?? []) satisfies readonly ErrorRoute[],
    maxIterations: document.maxIterations ?? defaultMaxIterations,
  };
  switch (document.type) {
    case "TASK":
      return {
        ...base,
        ...compileTaskCall(document, names),
        type: document.type,
        queue: read(document.queue, readQueue) ?? defaultQueue,
        priority: document.priority,
      };
    case "EVENT_WAIT":
      return {
        ...base,
        ...compileAwaited(document, names),
        ...compileClocks(document, names),
        type: document.type,
        eventTimeout: document.eventTimeout && {
          duration: sound(readDuration(document.eventTimeout.duration, names)),
          timeoutHandlerStepId: document.eventTimeout.timeoutHandlerStepId,
        },
        eventPayloadMapping: Object.entries(document.eventPayloadMapping ?? {}).map(
          ([name, path]) => [name, sound(readPayloadPath(path))] as const,
        ),
        lookback: read(document.lookback, readLookback),
        deliver: document.deliver ?? "ALL",
      };
    case "DELAY": {
      const { duration, calendarId } = document;
      return {
        ...base,
        ...compileClocks(document, names),
        type: document.type,
        duration: calendarId === undefined ? read(duration, readDuration) : undefined,
        until: read(document.until, readUntil),
        calendar:
          calendarId === undefined
            ? undefined
            : { id: calendarId, duration: read(duration, readWorkingDuration) },
      };
    }
    case "CHOICE":
      return { ...base, type: document.type };
    case "SET":
      return {
        ...base,
        type: document.type,
        variables: Object.entries(document.variables).map(
          ([name, value]) => [name, sound(readValue(value, names))] as const,
        ),
      };
    case "PARALLEL":
      return {
        ...base,
        ...compileClocks(document, names),
        type: document.type,
        ...compileJoin(document),
      };
    case "MAP": {
      const { items, itemName, steps, maxConcurrency, tolerate } = document;
      return {
        ...base,
        ...compileClocks(document, names),
        type: document.type,
        items: sound(readInput(items, names)),
        itemName: itemName ?? defaultItemName,
        start: startOf(steps),
        maxConcurrency: Math.min(maxConcurrency ?? maxActiveItems, maxActiveItems),
        tolerate: tolerate ?? 0,
      };
    }
    case "END":
      return {
        ...base,
        type: document.type,
        outcome: document.outcome,
        output: read(document.output, readValue),
        error: read(document.error, readValue),
        reason: read(document.reason, readValue),
      };
    case "SUB_WORKFLOW":
      return {
        ...base,
        ...compileClocks(document, names),
        type: document.type,
        workflowId: sound(readWorkflowId(document.workflowId, names)),
        version: document.version,
        input: read(document.input, readValue),
        detached: document.detached ?? false,
        ...compileRetry(document.retry, "STEP", names),
        ...(document.retry === undefined && { retry: undefined }),
      };
    case "EMIT_EVENT":
      return {
        ...base,
        type: document.type,
        eventPattern: sound(readEventName(document.eventPattern, names)),
        payload: sound(readValue(document.payload, names)),
      };
  }
}

function compileJoin({
  branches,
  join = "ALL",
  onBranchError = "FAIL",
}: Extract<StepDocument, { type: "PARALLEL" }>) {
  const count = typeof join === "object" ? Math.min(join.count, branches.length) : join;
  return {
    branches: branches.map(({ name, steps }) => ({ name, start: startOf(steps) })),
    join: count === "ANY" ? 1 : count,
    failsWithBranch: onBranchError === "FAIL",
  };
}

function startOf([first]: readonly StepDocument[]): string {
  if (first === undefined) throw new DefinitionError("a branch or MAP has no steps");
  return first.stepId;
}

/** A CHOICE names its ways in its own fields, and is like any other step from then on. */
function compileTransitions(document: StepDocument, names: Names): Transitions {
  const ways =
    document.type === "CHOICE"
      ? { conditions: document.choices, default: document.default }
      : (document.transitions ?? {});
  return {
    conditions: (ways.conditions ?? []).map(({ when, to }) => ({
      when: sound(readCondition(when, names)),
      to,
    })),
    default: ways.default,
  };
}

type TaskCallDocument = Pick<
  CompensationStepDocument & Extract<StepDocument, { type: "TASK" }>,
  "taskId" | "input" | "retry" | "timeout"
> &
  Partial<
    Pick<
      Extract<StepDocument, { type: "TASK" }>,
      "totalTimeout" | "scheduleTimeout" | "heartbeatTimeout"
    >
  >;

function compileTaskCall(document: TaskCallDocument, names: Names = []): TaskCall {
  const read = readerWith(names);
  return {
    taskId: sound(readTaskId(document.taskId, names)),
    input: read(document.input, readInput),
    queue: defaultQueue,
    priority: undefined,
    ...compileRetry(document.retry, "STEP", names),
    ...compileClocks(document, names),
    scheduleTimeout: read(document.scheduleTimeout, readDuration),
    heartbeatTimeout: read(document.heartbeatTimeout, readDuration),
  };
}

function compileClocks(
  { timeout, totalTimeout }: Pick<TaskCallDocument, "timeout" | "totalTimeout">,
  names: Names,
): Clocks {
  const read = readerWith(names);
  return { timeout: read(timeout, readDuration), totalTimeout: read(totalTimeout, readDuration) };
}

function compileAwaited(
  { eventPattern, eventCondition, events, mode = "ANY" }: EventWaitStepDocument,
  names: Names,
): Pick<EventWaitStep, "events" | "mode"> {
  if (events !== undefined) {
    return {
      mode,
      events: events.map((each) => ({ ...compileMatcher(each, names), to: each.to })),
    };
  }
  if (eventPattern === undefined) throw new DefinitionError("an EVENT_WAIT has no event");
  const one = compileMatcher({ eventPattern, eventCondition }, names);
  return { mode: undefined, events: [{ ...one, to: undefined }] };
}

interface MatcherDocument {
  readonly eventPattern: string;
  readonly eventCondition?: string | undefined;
}

function compileMatcher(document: MatcherDocument, names: Names = []): EventMatcher {
  const eventCondition = optional(document.eventCondition, (text) =>
    readEventCondition(text, names),
  );
  const conjuncts = eventCondition === undefined ? [] : keysOf(eventCondition);
  return {
    eventPattern: sound(readEventPattern(document.eventPattern, names)),
    eventCondition,
    conjuncts,
    keyIsFixed: conjuncts.every(isFixed),
  };
}

/** Equalities that a wait is found by: no decision writes a key again when a worker begins a step. */
function keysOf(condition: Expression): readonly EqualityConjunct[] {
  return equalityConjuncts(condition).filter(({ value }) => !value.reads.stepProgress);
}

/** What an instance is from its creation on. `state` counts by what is read of it; an item never changes. */
const fixedInstanceFields: ReadonlySet<string> = new Set([
  "id",
  "input",
  "correlationId",
  "tenantId",
  "userId",
  "workflowId",
  "workflowVersion",
  "createdAt",
  "state",
]);

function isFixed({ value: { reads } }: EqualityConjunct): boolean {
  return (
    !reads.variables &&
    !reads.now &&
    reads.steps !== "ALL" &&
    reads.steps.length === 0 &&
    reads.instanceFields !== "ALL" &&
    reads.instanceFields.every((field) => fixedInstanceFields.has(field))
  );
}

function compileTrigger(document: CancellationTriggerDocument): CancellationTrigger {
  return {
    ...compileMatcher(document),
    reason: sound(readReason(document.reason)),
    shouldCompensate: document.shouldCompensate ?? true,
  };
}

/** As registration needs it too, which has no use for the rest of the definition. */
export function compileStartTrigger(document: StartTriggerDocument): StartTrigger {
  const eventCondition = optional(document.eventCondition, readStartCondition);
  return {
    eventPattern: sound(readStartPattern(document.eventPattern)),
    eventCondition,
    conjuncts: eventCondition === undefined ? [] : equalityConjuncts(eventCondition),
    input: optional(document.input, readStartValue),
    correlationId: optional(document.correlationId, readStartId),
  };
}

/** @param names Roots of the items that the step which it undoes is inside of. */
function compileCompensation(
  document: CompensationStepDocument,
  names: Names = [],
): CompensationStep {
  const call = compileTaskCall(document, names);
  const condition = readerWith(names)(document.condition, readCondition);
  return {
    ...call,
    stepId: document.stepId,
    compensationFor: document.compensationFor,
    condition,
    reads: readsOfCompensation(call, condition),
  };
}

/** Only the fields that are given, so that they merge with those of other layers. */
function compileRetry(
  document: RetryDocument | undefined,
  layer: Exclude<RetryInterval, number>,
  names: Names = [],
): { retry: Partial<RetryPolicy>; retryIntervals: RetryTemplates } {
  if (document === undefined) return { retry: {}, retryIntervals: {} };
  const { initialInterval, maxInterval, ...same } = document;
  const read = readerWith(names);
  const intervals = Object.entries({
    initialIntervalMs: read(initialInterval, readInterval),
    maxIntervalMs: read(maxInterval, readInterval),
  });
  const policy = Object.entries(same).concat(
    intervals.map(([key, value]) => [key, typeof value === "object" ? layer : value]) as never,
  );
  return {
    retry: Object.fromEntries(policy.filter(([, value]) => value !== undefined)),
    retryIntervals: Object.fromEntries(intervals.filter(([, value]) => typeof value === "object")),
  };
}

function stepsOnCycles(drafts: readonly Draft[]): ReadonlySet<string> {
  const indexOf = new Map(drafts.map(({ stepId }, index) => [stepId, index]));
  const graph = drafts.map((draft) =>
    successorsOf(draft).flatMap((stepId) => indexOf.get(stepId) ?? []),
  );
  const onCycles = cyclicComponents(graph).flat();
  return new Set(onCycles.flatMap((index) => drafts[index]?.stepId ?? []));
}

function optional<D, T>(document: D | undefined, read: (document: D) => Reading<T>): T | undefined {
  return document === undefined ? undefined : sound(read(document));
}

/** As `optional`, for a place inside items. */
function readerWith(names: Names) {
  return <D, T>(value: D | undefined, reader: (value: D, names: Names) => Reading<T>) =>
    value === undefined ? undefined : sound(reader(value, names));
}

function sound<T>({ value, problems }: Reading<T>): T {
  if (value !== undefined) return value;
  throw new DefinitionError(problems.map(({ message }) => message).join("; "));
}
