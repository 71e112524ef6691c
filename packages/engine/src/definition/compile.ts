import type {
  CancellationTrigger as CancellationTriggerDocument,
  CompensationStep as CompensationStepDocument,
  EventWaitStep as EventWaitStepDocument,
  RetryDocument,
  StepDocument,
  WorkflowDefinition,
} from "@millrace/contract";
import type { EqualityConjunct } from "@millrace/expressions";
import { equalityConjuncts } from "@millrace/expressions";
import { DefinitionError } from "../errors.ts";
import type { RetryPolicy } from "../retry.ts";
import type {
  CancellationTrigger,
  CompensationStep,
  Definition,
  DurationValue,
  ErrorRoute,
  EventMatcher,
  Step,
  TaskCall,
  Transitions,
} from "./definition.ts";
import { cyclicComponents } from "./graph.ts";
import type { Draft } from "./reads-of-steps.ts";
import { readsOfCompensation, readsOfSteps, successorsOf } from "./reads-of-steps.ts";
import type { Reading } from "./values.ts";
import {
  notYet,
  readCondition,
  readDuration,
  readEventCondition,
  readEventPattern,
  readInput,
  readInterval,
  readPayloadPath,
  readReason,
  readUntil,
  readValue,
} from "./values.ts";

const defaultQueue = "default";
const defaultMaxIterations = 10_000;

/**
 * Brings a document into the form that decisions work on.
 *
 * @throws DefinitionError for a document that `validateDefinition` would not have passed.
 */
export function compileDefinition(document: WorkflowDefinition, version: number): Definition {
  const drafts = document.steps.map(compileStep);
  const [start] = drafts;
  if (start === undefined) throw new DefinitionError("the definition has no steps");
  const output = optional(document.output, readValue);
  const repeating = stepsOnCycles(drafts);
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
  const compensations = (document.compensationSteps ?? []).map(compileCompensation);
  return {
    id: document.id,
    version,
    start: start.stepId,
    steps,
    compensationSteps: new Map(compensations.map((step) => [step.stepId, step])),
    compensationFor: new Map(compensations.map((step) => [step.compensationFor, step])),
    compensateOnFailure: document.compensateOnFailure ?? compensations.length > 0,
    cancellationTriggers: (document.cancellationTriggers ?? []).map(compileTrigger),
    variables: document.variables ?? {},
    output,
    timeout: optional(document.timeout, readDuration),
    retry: compileRetry(document.retry),
    priority: document.priority ?? 0,
    size: steps.size,
  };
}

function compileStep(document: StepDocument): Draft {
  const base = {
    stepId: document.stepId,
    condition: optional(document.condition, readCondition),
    transitions: compileTransitions(document),
    onError: (document.onError ?? []) satisfies readonly ErrorRoute[],
    maxIterations: document.maxIterations ?? defaultMaxIterations,
  };
  switch (document.type) {
    case "TASK":
      return {
        ...base,
        ...compileTaskCall(document),
        type: document.type,
        queue: document.queue ?? defaultQueue,
        priority: document.priority,
      };
    case "EVENT_WAIT":
      return {
        ...base,
        ...compileMatcher(document),
        type: document.type,
        eventTimeout: document.eventTimeout && {
          duration: sound(readDuration(document.eventTimeout.duration)),
          timeoutHandlerStepId: document.eventTimeout.timeoutHandlerStepId,
        },
        eventPayloadMapping: Object.entries(document.eventPayloadMapping ?? {}).map(
          ([name, path]) => [name, sound(readPayloadPath(path))] as const,
        ),
        lookback: compileLookback(document),
        deliver: document.deliver ?? "ALL",
      };
    case "DELAY":
      return {
        ...base,
        type: document.type,
        duration: optional(document.duration, readDuration),
        until: optional(document.until, readUntil),
      };
    case "CHOICE":
      return { ...base, type: document.type };
    case "SET":
      return {
        ...base,
        type: document.type,
        variables: Object.entries(document.variables).map(
          ([name, value]) => [name, sound(readValue(value))] as const,
        ),
      };
    case "END":
      return {
        ...base,
        type: document.type,
        outcome: document.outcome,
        output: optional(document.output, readValue),
        error: optional(document.error, readValue),
        reason: optional(document.reason, readValue),
      };
    case "PARALLEL":
    case "MAP":
    case "SUB_WORKFLOW":
    case "EMIT_EVENT":
      throw new DefinitionError(notYet(`the step type ${document.type}`));
  }
}

/** A CHOICE names its ways in its own fields, and is like any other step from then on. */
function compileTransitions(document: StepDocument): Transitions {
  const ways =
    document.type === "CHOICE"
      ? { conditions: document.choices, default: document.default }
      : (document.transitions ?? {});
  return {
    conditions: (ways.conditions ?? []).map(({ when, to }) => ({
      when: sound(readCondition(when)),
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

function compileTaskCall(document: TaskCallDocument): TaskCall {
  return {
    taskId: document.taskId,
    input: optional(document.input, readInput),
    queue: defaultQueue,
    priority: undefined,
    retry: compileRetry(document.retry),
    timeout: optional(document.timeout, readDuration),
    totalTimeout: optional(document.totalTimeout, readDuration),
    scheduleTimeout: optional(document.scheduleTimeout, readDuration),
    heartbeatTimeout: optional(document.heartbeatTimeout, readDuration),
  };
}

function compileLookback({
  lookback,
}: EventWaitStepDocument): DurationValue | "instance" | undefined {
  return lookback === "instance" ? lookback : optional(lookback, readDuration);
}

function compileMatcher(
  document: Pick<EventWaitStepDocument, "eventPattern" | "eventCondition">,
): EventMatcher {
  const eventCondition = optional(document.eventCondition, readEventCondition);
  const conjuncts = eventCondition === undefined ? [] : equalityConjuncts(eventCondition);
  return {
    eventPattern: sound(readEventPattern(document.eventPattern)),
    eventCondition,
    conjuncts,
    keyIsFixed: conjuncts.every(isFixed),
  };
}

/** What an instance is from its creation on. `state` counts by what is read of it. */
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
    !reads.item &&
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

function compileCompensation(document: CompensationStepDocument): CompensationStep {
  const call = compileTaskCall(document);
  const condition = optional(document.condition, readCondition);
  return {
    ...call,
    stepId: document.stepId,
    compensationFor: document.compensationFor,
    condition,
    reads: readsOfCompensation(call, condition),
  };
}

/** Only the fields that are given, so that they merge with those of other layers. */
function compileRetry(document: RetryDocument | undefined): Partial<RetryPolicy> {
  if (document === undefined) return {};
  const { initialInterval, maxInterval, ...same } = document;
  const policy = {
    ...same,
    initialIntervalMs: optional(initialInterval, readInterval),
    maxIntervalMs: optional(maxInterval, readInterval),
  };
  return Object.fromEntries(
    Object.entries(policy).filter(([, value]) => value !== undefined),
  ) as Partial<RetryPolicy>;
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

function sound<T>({ value, problems }: Reading<T>): T {
  if (value !== undefined) return value;
  throw new DefinitionError(problems.map(({ message }) => message).join("; "));
}
