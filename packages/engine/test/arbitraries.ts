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
const outerTarget = fc.constantFrom(...stepIds, ...stepIds.slice(stepCount / 2));

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
      "steps.s0_a_x0.status === 'COMPLETED'",
      "steps.s1_m_x0.output.ok === true",
      "steps.s2_b_x0_m_x0.output.ok === true",
      "workflow.instance.status === 'RUNNING'",
      "workflow.instance.cancellation.reason === 'stop'",
    ),
  },
  { weight: 1, arbitrary: fc.constant("parseJson('oops') === 1") },
);

/** Steps that have completed and cannot be left are to be seen often, some of them in one pass of many. */
const wayOut = fc.oneof(
  { weight: 6, arbitrary: condition },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      "variables.n > 0 && parseJson('oops')",
      "workflow.instance.status === 'RUNNING' && parseJson('oops')",
    ),
  },
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

/** A task, queue or workflow, by its id or by an expression, of which some give none. */
const called = (name: string) =>
  fc.oneof(
    { weight: 12, arbitrary: fc.constant(name) },
    { weight: 3, arbitrary: fc.constant(`${name}_\${ variables.n ?? 0 }`) },
    { weight: 1, arbitrary: fc.constant("${ variables.missing }") },
  );

type Json = WorkflowDefinition["output"];

/** There in one of `of` cases. */
const oneIn = <T>(of: number, arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> =>
  fc.oneof({ weight: of - 1, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary });

const itemOfUndone = { item: "${ item }", at: "${ index }" };

const ofItem = fc.constantFrom({ item: "${ item }", at: "${ index }" }, "${ item + 1 }");

/** Steps that lead to one another by `target`, and are inside of a MAP or not. */
function stepsOf(
  target: fc.Arbitrary<string>,
  inItem: boolean,
  depth: number,
): fc.Arbitrary<object> {
  const transitions = fc.record(
    {
      default: target,
      conditions: fc.array(fc.record({ when: wayOut, to: target }), { maxLength: 2 }),
    },
    { requiredKeys: [] },
  );

  const onError = fc.array(
    fc.record({
      errors: fc.constantFrom(["A"], ["TIMEOUT"], ["*"], ["MAX_ITERATIONS"]),
      to: target,
    }),
    { maxLength: 2 },
  );

  const common = {
    condition: oneIn(4, condition),
    onError: oneIn(3, onError),
    maxIterations: fc.integer({ min: 1, max: 3 }),
  };

  const clocks = { timeout: oneIn(6, duration), totalTimeout: oneIn(6, duration) };

  const task = fc.record({
    ...common,
    type: fc.constant("TASK" as const),
    taskId: called("work"),
    queue: oneIn(8, called("queue")),
    input: oneIn(3, inItem ? fc.oneof(value, ofItem) : value),
    retry: oneIn(2, retry),
    timeout: oneIn(5, duration),
    totalTimeout: oneIn(5, duration),
    scheduleTimeout: oneIn(5, duration),
    heartbeatTimeout: oneIn(8, duration),
    transitions,
  });

  const child = fc.record({
    ...common,
    type: fc.constant("SUB_WORKFLOW" as const),
    workflowId: called("other"),
    timeout: oneIn(5, duration),
    totalTimeout: oneIn(5, duration),
    input: oneIn(3, inItem ? fc.oneof(value, ofItem) : value),
    detached: oneIn(4, fc.boolean()),
    retry: oneIn(2, retry),
    transitions,
  });

  const matcher = {
    eventPattern: fc.constantFrom("go", "go.*", "${ input.pattern }"),
    eventCondition: oneIn(
      2,
      fc.constantFrom(
        "event.payload.n === variables.n",
        "event.payload.id === input.id",
        ...(inItem ? ["event.payload.n === item"] : []),
        "event.payload.s === steps.s1.output.id && event.payload.n > 0",
      ),
    ),
  };

  const waitFields = {
    ...common,
    type: fc.constant("EVENT_WAIT" as const),
    eventTimeout: oneIn(
      2,
      fc.record({ duration, timeoutHandlerStepId: target }, { requiredKeys: ["duration"] }),
    ),
    eventPayloadMapping: oneIn(2, fc.constant({ n: "n", other: "deep.missing" })),
    lookback: oneIn(3, fc.constantFrom("instance", "PT1H")),
    ...clocks,
    transitions,
  };

  const eventWait = fc.record({ ...matcher, ...waitFields });

  const eventsWait = fc.oneof(
    fc.record({
      ...waitFields,
      mode: oneIn(2, fc.constant("ANY" as const)),
      events: fc.array(fc.record({ ...matcher, to: oneIn(2, target) }), {
        minLength: 1,
        maxLength: 3,
      }),
    }),
    fc.record({
      ...waitFields,
      mode: fc.constant("ALL" as const),
      events: fc.array(fc.record(matcher), { minLength: 1, maxLength: 3 }),
    }),
  );

  const choice = fc.record({
    ...common,
    type: fc.constant("CHOICE" as const),
    choices: fc.array(fc.record({ when: wayOut, to: target }), { minLength: 1, maxLength: 2 }),
    default: target,
  });

  const delay = fc.record({
    ...common,
    type: fc.constant("DELAY" as const),
    duration,
    calendarId: oneIn(3, fc.constantFrom("office", "office", "nowhere")),
    ...clocks,
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

  const emit = fc.record({
    ...common,
    type: fc.constant("EMIT_EVENT" as const),
    eventPattern: fc.constantFrom("told", "told.${ variables.n }", "${ input.flag }"),
    payload: value,
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

  const inner =
    depth === 0
      ? []
      : [
          {
            weight: 2,
            arbitrary: parallelOf({ ...common, ...clocks }, transitions, inItem, depth - 1),
          },
          { weight: 1, arbitrary: mapOf({ ...common, ...clocks }, transitions, depth - 1) },
        ];

  return fc.oneof(
    { weight: 5, arbitrary: task },
    { weight: 3, arbitrary: eventWait },
    { weight: 2, arbitrary: eventsWait },
    { weight: 2, arbitrary: child },
    { weight: 2, arbitrary: choice },
    { weight: 2, arbitrary: delay },
    { weight: 2, arbitrary: set },
    { weight: 1, arbitrary: end },
    { weight: 1, arbitrary: emit },
    ...inner,
  );
}

/** Ids of the steps of an inner list, before they are made unique. */
const innerIds = ["x0", "x1", "x2"];

/** One to three steps; a target beyond them is the last one. */
function listOf(inItem: boolean, depth: number): fc.Arbitrary<object[]> {
  const steps = fc.array(stepsOf(fc.constantFrom(...innerIds, "x2"), inItem, depth), {
    minLength: 1,
    maxLength: innerIds.length,
  });
  return steps.map((list) =>
    list.map((each, index) => {
      const last = `x${list.length - 1}`;
      const known = (id: string) => (Number(id.slice(1)) < list.length ? id : last);
      return renamed({ stepId: innerIds[index], ...each }, known);
    }),
  );
}

function parallelOf(common: object, transitions: unknown, inItem: boolean, depth: number) {
  return fc.record({
    ...common,
    type: fc.constant("PARALLEL" as const),
    branches: fc.array(listOf(inItem, depth), { minLength: 1, maxLength: 3 }).map((lists) =>
      lists.map((steps, index) => {
        const name = "abc"[index] ?? "d";
        return { name, steps: steps.map((each) => renamed(each, (id) => `${name}_${id}`)) };
      }),
    ),
    join: oneIn(2, fc.constantFrom("ALL" as const, "ANY" as const, { count: 1 }, { count: 2 })),
    onBranchError: oneIn(2, fc.constantFrom("FAIL" as const, "CONTINUE" as const)),
    transitions: transitions as fc.Arbitrary<object>,
  });
}

function mapOf(common: object, transitions: unknown, depth: number) {
  return fc.record({
    ...common,
    type: fc.constant("MAP" as const),
    items: fc.oneof(
      { weight: 8, arbitrary: fc.array(fc.integer({ min: 0, max: 2 }), { maxLength: 4 }) },
      { weight: 1, arbitrary: fc.constantFrom("input.id", "[1, variables.n]") },
    ),
    itemName: oneIn(2, fc.constant("row")),
    steps: listOf(true, depth).map((steps) =>
      steps.map((each) => renamed(each, (id) => `m_${id}`)),
    ),
    maxConcurrency: oneIn(2, fc.integer({ min: 1, max: 3 })),
    tolerate: oneIn(2, fc.integer({ min: 0, max: 2 })),
    transitions: transitions as fc.Arbitrary<object>,
  });
}

interface AnyStep {
  readonly stepId?: string;
  readonly type?: string;
  readonly transitions?: Ways;
  readonly choices?: readonly { readonly to: string }[];
  readonly default?: string;
  readonly onError?: readonly { readonly to: string }[];
  readonly eventTimeout?: { readonly timeoutHandlerStepId?: string };
  readonly events?: readonly { readonly to?: string }[];
  readonly branches?: readonly { readonly name: string; readonly steps: readonly object[] }[];
  readonly steps?: readonly object[];
}

interface Ways {
  readonly default?: string;
  readonly conditions?: readonly { readonly to: string }[];
}

/** A step and all inside it under other ids. */
function renamed(given: object, name: (id: string) => string): object {
  const each: AnyStep = given;
  const to = <T extends { readonly to: string }>(list: readonly T[] | undefined) =>
    list?.map((way) => ({ ...way, to: name(way.to) }));
  const { transitions, eventTimeout } = each;
  const handler = eventTimeout?.timeoutHandlerStepId;
  return {
    ...each,
    stepId: each.stepId && name(each.stepId),
    transitions: transitions && {
      ...transitions,
      default: transitions.default && name(transitions.default),
      conditions: to(transitions.conditions),
    },
    choices: to(each.choices),
    events: each.events?.map((event) => ({ ...event, to: event.to && name(event.to) })),
    default: each.default && name(each.default),
    onError: to(each.onError),
    eventTimeout: eventTimeout && {
      ...eventTimeout,
      timeoutHandlerStepId: handler && name(handler),
    },
  };
}

/** Makes the ids inside of a step unique: each begins with that of the step around it. */
function withUniqueIds(given: object): object {
  const each: AnyStep = given;
  const unique = (steps: readonly object[]) =>
    steps.map((one) => withUniqueIds(renamed(one, (id) => `${each.stepId}_${id}`)));
  return {
    ...each,
    ...(each.branches && {
      branches: each.branches.map(({ name, steps }) => ({ name, steps: unique(steps) })),
    }),
    ...(each.type === "MAP" && each.steps && { steps: unique(each.steps) }),
  };
}

/** The steps of a list and of what is inside it that do something outside. */
function tasksOf(steps: readonly object[]): readonly string[] {
  return steps.flatMap((given) => {
    const each: AnyStep = given;
    if (each.type === "TASK" || each.type === "SUB_WORKFLOW") return each.stepId ?? [];
    return [
      ...(each.branches ?? []).flatMap((branch) => tasksOf(branch.steps)),
      ...tasksOf(each.steps ?? []),
    ];
  });
}

const step = stepsOf(outerTarget, false, 2);

const compensation = fc.record({
  type: fc.constant("TASK" as const),
  taskId: called("undo"),
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
      maxLength: 2 * stepCount,
    }),
    cancellationTriggers: oneIn(2, fc.array(trigger, { maxLength: 2 })),
    timeout: oneIn(6, duration),
    output: oneIn(5, value),
    compensateOnFailure: oneIn(4, fc.boolean()),
    concurrency: oneIn(3, fc.constant({ limit: 1 })),
  })
  .map(({ steps: given, compensations, ...rest }) => {
    const steps = given.map((each, index) => withUniqueIds({ stepId: stepIds[index], ...each }));
    const tasks = tasksOf(steps);
    return withoutAbsent({
      id: "random",
      ...rest,
      variables: { n: 0 },
      steps,
      compensationSteps: compensations.flatMap((each, index) => {
        const task = tasks[index];
        if (each === undefined || task === undefined) return [];
        // Those of steps in items may read the item (the ids of such steps say where they are).
        const input = index % 2 === 0 && task.includes("_m_") ? itemOfUndone : each.input;
        return [{ stepId: `undo_${task}`, compensationFor: task, ...each, input }];
      }),
    });
  });

function withoutAbsent(document_: unknown): WorkflowDefinition {
  return JSON.parse(JSON.stringify(document_)) as WorkflowDefinition;
}

/**
 * What happens to an instance, as numbers: each picks one of the things that can happen when its turn
 * comes, so that shrinking keeps the sequence meaningful.
 */
export const happenings = fc.array(fc.nat({ max: 999 }), { maxLength: 40 });
