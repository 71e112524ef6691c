import fc from "fast-check";
import type { WorkflowDefinition } from "@millrace/contract";

/**
 * Random definitions of the supported language. They are hostile on purpose: graphs with any cycles,
 * handlers that throw, conditions that cannot be evaluated, guards of one pass. Only what registration
 * would refuse for its shape is kept out, so that they compile.
 */

const stepCount = 6;
const stepIds = Array.from({ length: stepCount }, (_, index) => `s${index}`);

/** Steps further on are likelier than steps back. */
const target = fc.constantFrom(...stepIds, ...stepIds.slice(stepCount / 2));

const condition = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom("true", "false") },
  {
    weight: 6,
    arbitrary: fc.constantFrom(
      "variables.n > 1",
      "input.flag",
      "steps.s1.status === 'COMPLETED'",
      "steps.s2.output.ok === true",
      "steps.s0.attempts > 1",
      "workflow.instance.status === 'RUNNING'",
      "workflow.instance.cancellation.reason === 'stop'",
    ),
  },
  { weight: 1, arbitrary: fc.constant("parseJson('oops') === 1") },
);

const value = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.constantFrom(
      { n: "${ variables.n }" },
      "workflow.input",
      { from: "${ steps.s1.output }" },
      { all: "${ workflow.instance.state }" },
      { at: "${ now() }" },
    ),
  },
  { weight: 1, arbitrary: fc.constant({ bad: "${ parseJson('oops') }" }) },
);

const duration = fc.oneof(
  { weight: 15, arbitrary: fc.constantFrom("PT0S", "PT1S", "PT1M", "P1D") },
  { weight: 1, arbitrary: fc.constant("${ variables.missing }") },
);

const retry = fc.record(
  {
    maxAttempts: fc.integer({ min: 1, max: 3 }),
    initialInterval: fc.constantFrom("PT0S", "PT1S", "PT10S"),
    jitter: fc.constantFrom("FULL" as const, "NONE" as const),
    nonRetryableErrors: fc.constantFrom([], ["A"]),
  },
  { requiredKeys: [] },
);

const transitions = fc.record(
  {
    default: target,
    conditions: fc.array(fc.record({ when: condition, to: target }), { maxLength: 2 }),
  },
  { requiredKeys: [] },
);

const onError = fc.array(
  fc.record({ errors: fc.constantFrom(["A"], ["TIMEOUT"], ["*"], ["MAX_ITERATIONS"]), to: target }),
  { maxLength: 2 },
);

/** There in one of `of` cases. */
const oneIn = <T>(of: number, arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> =>
  fc.oneof({ weight: of - 1, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary });

const common = {
  condition: oneIn(4, condition),
  onError: oneIn(3, onError),
  maxIterations: fc.integer({ min: 1, max: 3 }),
};

const task = fc.record({
  ...common,
  type: fc.constant("TASK" as const),
  taskId: fc.constant("work"),
  input: oneIn(3, value),
  retry: oneIn(2, retry),
  timeout: oneIn(5, duration),
  totalTimeout: oneIn(5, duration),
  scheduleTimeout: oneIn(5, duration),
  heartbeatTimeout: oneIn(8, duration),
  transitions,
});

const eventWait = fc.record({
  ...common,
  type: fc.constant("EVENT_WAIT" as const),
  eventPattern: fc.constantFrom("go", "go.*", "${ input.pattern }"),
  eventCondition: oneIn(
    2,
    fc.constantFrom(
      "event.payload.n === variables.n",
      "event.payload.id === input.id",
      "event.payload.s === steps.s1.output.id && event.payload.n > 0",
    ),
  ),
  eventTimeout: oneIn(
    2,
    fc.record({ duration, timeoutHandlerStepId: target }, { requiredKeys: ["duration"] }),
  ),
  eventPayloadMapping: oneIn(2, fc.constant({ n: "n", other: "deep.missing" })),
  lookback: oneIn(3, fc.constantFrom("instance", "PT1H")),
  transitions,
});

const choice = fc.record({
  ...common,
  type: fc.constant("CHOICE" as const),
  choices: fc.array(fc.record({ when: condition, to: target }), { minLength: 1, maxLength: 2 }),
  default: target,
});

const delay = fc.record({
  ...common,
  type: fc.constant("DELAY" as const),
  duration,
  transitions,
});

const set = fc.record({
  ...common,
  type: fc.constant("SET" as const),
  variables: fc.constantFrom(
    { n: "${ variables.n + 1 }" },
    { n: "${ steps.s1.output.n ?? 0 }" },
    { n: "${ parseJson('oops') }" },
  ),
  transitions,
});

const end = fc.record({
  ...common,
  type: fc.constant("END" as const),
  outcome: fc.constantFrom("COMPLETED" as const, "FAILED" as const, "CANCELLED" as const),
  output: oneIn(2, value),
  error: oneIn(2, fc.constantFrom<Json>({ type: "A", message: "ended" }, "ended")),
  reason: oneIn(2, fc.constantFrom("enough", "${ variables.n }")),
  transitions,
});

type Json = WorkflowDefinition["output"];

const step = fc.oneof(
  { weight: 5, arbitrary: task },
  { weight: 3, arbitrary: eventWait },
  { weight: 2, arbitrary: choice },
  { weight: 2, arbitrary: delay },
  { weight: 2, arbitrary: set },
  { weight: 1, arbitrary: end },
);

const compensation = fc.record({
  type: fc.constant("TASK" as const),
  taskId: fc.constant("undo"),
  input: oneIn(2, value),
  condition: oneIn(2, condition),
  retry: oneIn(2, retry),
  timeout: oneIn(4, duration),
});

const trigger = fc.record({
  eventPattern: fc.constant("stop"),
  eventCondition: oneIn(2, fc.constant("event.payload.n === variables.n")),
  reason: fc.constantFrom("stop", "${ event.payload.why }"),
  shouldCompensate: fc.boolean(),
});

/** A whole document. Absent fields are left out, as JSON would. */
export const document: fc.Arbitrary<WorkflowDefinition> = fc
  .record({
    steps: fc.tuple(...stepIds.map(() => step)),
    compensations: fc.array(oneIn(2, compensation), {
      minLength: stepCount,
      maxLength: stepCount,
    }),
    cancellationTriggers: oneIn(2, fc.array(trigger, { maxLength: 2 })),
    timeout: oneIn(6, duration),
    output: oneIn(5, value),
    compensateOnFailure: oneIn(4, fc.boolean()),
  })
  .map(({ steps, compensations, ...rest }) =>
    withoutAbsent({
      id: "random",
      ...rest,
      variables: { n: 0 },
      steps: steps.map((each, index) => ({ stepId: stepIds[index], ...each })),
      compensationSteps: compensations.flatMap((each, index) =>
        each && steps[index]?.type === "TASK"
          ? [{ stepId: `undo_s${index}`, compensationFor: `s${index}`, ...each }]
          : [],
      ),
    }),
  );

function withoutAbsent(document_: unknown): WorkflowDefinition {
  return JSON.parse(JSON.stringify(document_)) as WorkflowDefinition;
}

/**
 * What happens to an instance, as numbers: each picks one of the things that can happen when its turn
 * comes, so that shrinking keeps the sequence meaningful.
 */
export const happenings = fc.array(fc.nat({ max: 999 }), { maxLength: 40 });
