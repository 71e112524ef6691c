import type { StepDocument, WorkflowDefinition } from "@millrace/contract";
import { ticking } from "./schedules.ts";

// What the load runs. Every task is `chaos.step`; each says what it saw of the step before it, so that
// a result that was stored, but should not have been, shows in the ledger.

interface TaskOptions {
  readonly next?: string;
  /** An expression: what it tells the ledger that it saw. */
  readonly saw?: string;
  readonly input?: Readonly<Record<string, string | number | boolean>>;
  readonly queue?: string;
}

/** Paused now and then. */
export const sideQueue = "side";

function task(stepId: string, { next, saw, input = {}, queue }: TaskOptions = {}): StepDocument {
  return {
    stepId,
    type: "TASK",
    taskId: "chaos.step",
    input: {
      ms: "${ input.ms }",
      stubborn: "${ input.stubborn }",
      ...(saw === undefined ? {} : { saw: `\${ ${saw} }` }),
      ...input,
    },
    ...(queue === undefined ? {} : { queue }),
    ...to(next),
  };
}

function to(next: string | undefined) {
  return next === undefined ? {} : { transitions: { default: next } };
}

function outputOf(stepId: string): string {
  return `steps.${stepId}.output.record`;
}

const retry = { maxAttempts: 3, initialInterval: "PT0.3S", jitter: "NONE" } as const;

/** Registered again during the load, each time as another version: `marker` says which. */
export function chain(marker: number): WorkflowDefinition {
  const input = { marker };
  return {
    id: "chain",
    retry,
    steps: [
      task("one", { next: "two", input }),
      task("two", { next: "three", saw: outputOf("one"), input }),
      task("three", { saw: outputOf("two"), input }),
    ],
  };
}

function waiting(id: string, wait: object, more: readonly StepDocument[] = []): WorkflowDefinition {
  return {
    id,
    retry,
    steps: [
      task("before", { next: "wait" }),
      {
        stepId: "wait",
        type: "EVENT_WAIT",
        eventPattern: "chaos.paid",
        eventCondition: "event.payload.key === input.key",
        transitions: { default: "met" },
        ...wait,
      },
      task("met", { saw: "steps.wait.output.id" }),
      ...more,
    ],
  };
}

const timedOut = {
  eventTimeout: { duration: "${ input.delay }", timeoutHandlerStepId: "late" },
};

const delay: WorkflowDefinition = {
  id: "delay",
  retry,
  steps: [
    task("before", { next: "rest" }),
    { stepId: "rest", type: "DELAY", duration: "${ input.delay }", ...to("after") },
    task("after", { saw: outputOf("before") }),
  ],
};

/** Of the three that begin about the same time one has its turn later; a slot is given back for the rest. */
const limited: WorkflowDefinition = {
  id: "limited",
  retry,
  concurrency: { limit: 2 },
  steps: [
    task("one", { next: "rest" }),
    { stepId: "rest", type: "DELAY", duration: "${ input.delay }", ...to("two") },
    task("two", { saw: outputOf("one") }),
  ],
};

function undo(step: string, input: TaskOptions["input"] = {}) {
  const { stepId, ...rest } = task(`undo_${step}`, { saw: outputOf(step), input });
  return { ...rest, stepId, type: "TASK" as const, taskId: "chaos.step", compensationFor: step };
}

const retried: WorkflowDefinition = {
  id: "retried",
  retry,
  steps: [
    task("before", { next: "flaky" }),
    task("flaky", { next: "after", input: { failures: "${ input.failures }" } }),
    task("after", { saw: outputOf("flaky"), queue: sideQueue }),
  ],
  compensationSteps: [undo("before"), undo("after")],
};

/** Its operator has another round of attempts made. */
const parked: WorkflowDefinition = {
  ...retried,
  id: "parked",
  retry: { ...retry, onExhausted: "PAUSE" },
};

/** Fails, whoever retries it, until a variable says that it is mended. Nothing is undone by itself. */
const fragile: WorkflowDefinition = {
  id: "fragile",
  retry,
  variables: { mended: false },
  compensateOnFailure: false,
  steps: [
    task("before", { next: "breaks" }),
    task("breaks", {
      next: "after",
      saw: outputOf("before"),
      input: { failures: "${ variables.mended ? 0 : 9 }" },
    }),
    task("after", { saw: outputOf("breaks") }),
  ],
  compensationSteps: [undo("before")],
};

const triggered: WorkflowDefinition = {
  id: "triggered",
  retry,
  startTriggers: [{ eventPattern: "chaos.begin", correlationId: "${ event.payload.key }" }],
  steps: [task("one", { next: "two" }), task("two", { saw: outputOf("one") })],
};

/** Nobody ever publishes it. */
const hold: StepDocument = {
  stepId: "hold",
  type: "EVENT_WAIT",
  eventPattern: "chaos.never",
  eventCondition: "event.payload.key === input.key",
};

const undoFails = { failures: "${ input.undoFailures }" };

const saga: WorkflowDefinition = {
  id: "saga",
  retry,
  steps: [
    task("a", { next: "b" }),
    task("b", { next: "c", saw: outputOf("a") }),
    task("c", { next: "hold", saw: outputOf("b") }),
    hold,
  ],
  compensationSteps: [undo("a"), undo("b", undoFails), undo("c")],
};

/** Cancelled by an event, and not by a call. */
const sagaTriggered: WorkflowDefinition = {
  ...saga,
  id: "saga_triggered",
  cancellationTriggers: [
    {
      eventPattern: "chaos.stop",
      eventCondition: "event.payload.key === input.key",
      reason: "as it was told",
    },
  ],
};

const sagaOfBranches: WorkflowDefinition = {
  id: "saga_of_branches",
  retry,
  steps: [
    {
      stepId: "fork",
      type: "PARALLEL",
      branches: [
        { name: "x", steps: [task("x1")] },
        { name: "y", steps: [task("y1", { next: "y2" }), task("y2", { saw: outputOf("y1") })] },
      ],
      ...to("hold"),
    },
    hold,
  ],
  compensationSteps: [undo("x1"), undo("y1", undoFails), undo("y2")],
};

const cancelled: WorkflowDefinition = {
  id: "cancelled",
  retry,
  steps: [
    task("before", { next: "long" }),
    task("long", { next: "after", input: { ms: "${ input.longMs }" } }),
    task("after", { saw: outputOf("long") }),
  ],
};

export const BRANCHES = ["p", "q", "r"] as const;

function parallel(id: string, join: "ALL" | "ANY" | { count: number }): WorkflowDefinition {
  return {
    id,
    retry,
    steps: [
      {
        stepId: "fork",
        type: "PARALLEL",
        join,
        branches: BRANCHES.map((name) => {
          const input = { ms: `\${ input.branchMs.${name} }` };
          return {
            name,
            steps: [
              task(`${name}1`, { next: `${name}2`, input }),
              task(`${name}2`, { saw: outputOf(`${name}1`), input }),
            ],
          };
        }),
        ...to("after"),
      },
      task("after"),
    ],
  };
}

const map: WorkflowDefinition = {
  id: "map",
  retry,
  steps: [
    {
      stepId: "items",
      type: "MAP",
      items: "input.items",
      maxConcurrency: 3,
      steps: [task("item", { input: { ms: "${ item }", branch: "${ string(index) }" } })],
      ...to("after"),
    },
    task("after"),
  ],
};

const child: WorkflowDefinition = {
  id: "child",
  retry,
  steps: [task("first", { next: "second" }), task("second", { saw: outputOf("first") })],
};

const parent: WorkflowDefinition = {
  id: "parent",
  retry,
  steps: [
    task("before", { next: "sub" }),
    { stepId: "sub", type: "SUB_WORKFLOW", workflowId: "child", ...to("after") },
    task("after", { saw: outputOf("sub") }),
  ],
};

/** One branch tells the other one to go on. */
const emitting: WorkflowDefinition = {
  id: "emitting",
  retry,
  steps: [
    {
      stepId: "fork",
      type: "PARALLEL",
      branches: [
        {
          name: "x",
          steps: [
            {
              stepId: "hear",
              type: "EVENT_WAIT",
              eventPattern: "chaos.told",
              eventCondition: "event.payload.key === input.key",
            },
          ],
        },
        {
          name: "y",
          steps: [
            task("before", { next: "tell" }),
            {
              stepId: "tell",
              type: "EMIT_EVENT",
              eventPattern: "chaos.told",
              payload: { key: "${ input.key }" },
            },
          ],
        },
      ],
      ...to("after"),
    },
    task("after"),
  ],
};

/** Started by the end of each `map`, which history alone tells of. */
const follower: WorkflowDefinition = {
  id: "follower",
  retry,
  startTriggers: [
    {
      eventPattern: "workflow.completed",
      eventCondition: "event.payload.workflowId === 'map'",
      input: { ms: 5, stubborn: false },
      correlationId: `\${ '${followedBy("")}' + event.payload.correlationId }`,
    },
  ],
  steps: [task("followed")],
};

/** The correlation id of whoever follows the case of that key. */
export function followedBy(key: string): string {
  return `followed-${key}`;
}

/** In the order in which they are registered: a child before its parent. */
export const DEFINITIONS: readonly WorkflowDefinition[] = [
  chain(1),
  waiting("wait", {}),
  waiting("wait_instance", { lookback: "instance" }),
  waiting("wait_lookback", { lookback: "PT10M" }),
  waiting("race", timedOut, [task("late")]),
  waiting("rival", {
    eventPattern: "chaos.one",
    eventCondition: "event.payload.round === input.round",
    deliver: "ONE",
  }),
  delay,
  limited,
  retried,
  parked,
  fragile,
  triggered,
  saga,
  sagaTriggered,
  sagaOfBranches,
  cancelled,
  child,
  parent,
  emitting,
  parallel("parallel_all", "ALL"),
  parallel("parallel_any", "ANY"),
  parallel("parallel_two", { count: 2 }),
  map,
  follower,
  ticking,
];
