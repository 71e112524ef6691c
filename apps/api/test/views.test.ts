import { InstanceView } from "@millrace/contract";
import type { InstanceRead, StepRead } from "@millrace/store";
import { expect, test } from "vitest";
import { type DefinitionFacts, instanceView } from "../src/views.ts";
import { ID } from "./fake-runtime.ts";

const at = (second: number) => new Date(Date.UTC(2026, 0, 31, 12, 0, second));
const iso = (second: number) => at(second).toISOString();

const definition: DefinitionFacts = {
  size: 5,
  conditionOf: ({ stepId }) => (stepId === "pay" ? "event.payload.ok" : undefined),
};

function read({
  snapshot,
  ...more
}: Partial<Omit<InstanceRead, "snapshot">> & {
  snapshot?: Partial<InstanceRead["snapshot"]>;
} = {}): InstanceRead {
  return {
    snapshot: {
      id: ID,
      tenantId: "default",
      workflowId: "order",
      workflowVersion: 2,
      correlationId: null,
      userId: null,
      startEventId: null,
      parent: null,
      priority: 0,
      createdAt: at(0),
      version: 4,
      status: "RUNNING",
      startedAt: at(0),
      completedAt: null,
      input: null,
      variables: {},
      output: null,
      error: null,
      cancellation: null,
      compensation: null,
      live: {},
      iterations: {},
      completions: 1,
      entered: 0,
      countedSteps: [],
      begunItems: 0,
      completedSteps: 1,
      lastOutput: null,
      uncertain: [],
      timers: [],
      triggerKeys: {},
      pause: null,
      interventions: 0,
      reopened: 0,
      limits: null,
      slot: null,
      slotRequests: 0,
      slotWantedAt: null,
      slotPromotedAt: null,
      failedAt: null,
      ...snapshot,
    },
    metadata: null,
    deadline: null,
    updatedAt: at(9),
    steps: [],
    waits: [],
    timers: [],
    ...more,
  };
}

function step(more: Partial<StepRead>): StepRead {
  return {
    stepId: "reserve",
    path: "reserve",
    iteration: 1,
    type: "TASK",
    status: "COMPLETED",
    attempt: 1,
    deliveries: 1,
    lapses: 0,
    handOvers: 0,
    taskId: "t",
    queue: "default",
    compensates: null,
    output: undefined,
    error: null,
    completion: 1,
    entry: null,
    createdAt: at(1),
    startedAt: at(2),
    completedAt: at(3),
    retryAt: null,
    workerId: null,
    awaited: false,
    blocked: null,
    lookAt: null,
    dueAt: null,
    progress: undefined,
    items: undefined,
    ...more,
  };
}

const error = {
  kind: "TASK",
  type: "CardDeclined",
  message: "no money",
  stepId: "refund",
  attempt: 3,
  details: null,
} as const;

const instances: Readonly<Record<string, InstanceRead>> = {
  bare: read(),
  "with steps of every kind": read({
    steps: [
      step({ output: { id: 1 } }),
      step({ stepId: "pay", path: "pay", type: "EVENT_WAIT", status: "WAITING", startedAt: null }),
      step({
        stepId: "ship",
        path: "ship",
        status: "RETRYING",
        attempt: 2,
        error,
        retryAt: at(20),
      }),
      step({ stepId: "bill", path: "bill", status: "RUNNING", workerId: ID, progress: { at: 3 } }),
      step({
        stepId: "pack",
        path: "pack",
        status: "PENDING",
        blocked: "task:pack",
        startedAt: null,
      }),
    ],
  }),
  "that compensates": read({
    snapshot: {
      status: "CANCELLED",
      cancellation: {
        reason: null,
        requestedBy: "ann",
        requestedAt: iso(5),
        source: "API",
        shouldCompensate: true,
      },
      compensation: {
        status: "COMPLETED_WITH_ERRORS",
        frozen: true,
        plan: ["refund", "release"],
        undone: ["charge#1"],
        targets: ["pay#1", "reserve#1"],
        next: 2,
        completed: ["release"],
        failed: [{ stepId: "refund", error, timestamp: iso(6) }],
        uncertain: ["ship"],
        startedAt: iso(5),
        completedAt: iso(7),
      },
    },
    steps: [
      step({}),
      step({ stepId: "refund", path: "$refund", compensates: "pay#1", status: "FAILED", error }),
      step({ stepId: "release", path: "$release", compensates: "reserve#1", output: "done" }),
    ],
  }),
};

test.each(Object.entries(instances))("an instance %s has the contract's shape", (_, instance) => {
  const view = instanceView(instance, definition);

  expect(InstanceView.safeParse(view).error?.issues).toBeUndefined();
  expect(JSON.parse(JSON.stringify(view))).toEqual(view);
});

test("what is absent is null, never left out", () => {
  expect(instanceView(read(), definition)).toEqual({
    id: ID,
    startEventId: null,
    workflowId: "order",
    workflowVersion: 2,
    status: "RUNNING",
    version: 4,
    input: null,
    output: null,
    error: null,
    state: { variables: {}, steps: {}, waitingFor: [] },
    compensation: null,
    cancellation: null,
    parent: null,
    pause: null,
    progress: { completed: 1, total: 5 },
    correlationId: null,
    tenantId: "default",
    userId: null,
    priority: 0,
    deadline: null,
    metadata: {},
    createdAt: iso(0),
    updatedAt: iso(9),
    startedAt: iso(0),
    completedAt: null,
  });
});

test("steps that were reached have an entry, compensation steps have theirs elsewhere", () => {
  const { state, compensation } = viewOf("that compensates");

  expect(Object.keys(state.steps)).toEqual(["reserve"]);
  expect(compensation?.steps).toMatchObject({
    refund: { status: "FAILED", compensationFor: "pay", error: { type: "CardDeclined" } },
    release: { status: "COMPLETED", compensationFor: "reserve", output: "done", attempts: 1 },
  });
  expect(compensation).toMatchObject({
    plan: ["refund", "release"],
    completed: ["release"],
    failed: [{ stepId: "refund", error: "no money", timestamp: iso(6) }],
    uncertain: ["ship"],
  });
  expect(compensation).not.toHaveProperty("targets");
});

test("attempts are those that were made: one that is still to come does not count", () => {
  const { steps } = viewOf("with steps of every kind").state;

  expect(steps["ship"]).toMatchObject({ status: "RETRYING", attempts: 1, nextAttemptAt: iso(20) });
  expect(steps["bill"]).toMatchObject({ attempts: 1, workerId: ID, progress: { at: 3 } });
  expect(steps["pack"]).toMatchObject({
    blocked: "task:pack",
    startedAt: null,
    output: null,
    attempts: 0,
  });
});

test("a step that has run several times shows its latest execution", () => {
  const steps = [
    step({ output: "old" }),
    step({ path: "other/reserve", iteration: 2, output: "new" }),
  ];

  const { state } = instanceView(read({ steps }), definition);

  expect(state.steps).toMatchObject({ reserve: { output: "new", iteration: 2 } });
});

test("steps of branches are known by their id, those of items by their path as well", () => {
  const steps = [
    step({ stepId: "charge", path: "both.card.charge" }),
    step({ stepId: "label", path: "ship[0].label", output: "a", status: "FAILED" }),
    step({ stepId: "label", path: "ship[1].label", output: "b" }),
  ];

  const { state } = instanceView(read({ steps }), definition);

  expect(Object.keys(state.steps)).toEqual(["charge", "label", "ship[0].label", "ship[1].label"]);
  expect(state.steps).toMatchObject({
    charge: { path: "both.card.charge", executionId: "both.card.charge#1" },
    label: { path: "ship[1].label", output: "b" },
    "ship[0].label": { path: "ship[0].label", output: "a" },
  });
});

test("a MAP says what has come of its items, and how many are at work", () => {
  const row = { count: 9, completed: 0, failed: 0 };
  const counts = { ...row, completed: 3, failed: 1, next: 6, failedItems: "1", after: 0 };
  const open = {
    stepId: "ship",
    path: "ship",
    iteration: 1,
    phase: "OPEN",
    attempt: 1,
    timers: [],
    items: counts,
  } as const;
  const steps = [
    step({ stepId: "ship", path: "ship", type: "MAP", items: row }),
    step({ stepId: "done", path: "done", type: "MAP", items: { ...row, completed: 8, failed: 1 } }),
  ];

  const { state, progress } = instanceView(
    read({ steps, snapshot: { live: { "ship#1": open }, begunItems: 18, completedSteps: 13 } }),
    definition,
  );

  expect(state.steps).toMatchObject({
    ship: { items: { count: 9, completed: 3, failed: 1, active: 2 } },
    done: { items: { count: 9, completed: 8, failed: 1, active: 0 } },
  });
  expect(progress).toEqual({ completed: 13, total: 18 + definition.size });
});

test("waitingFor names open event waits and delays, with when they end", () => {
  const wait = {
    path: "pay",
    executionPath: "pay",
    iteration: 1,
    stepId: "pay",
    pattern: "paid",
    deliver: "ALL",
  } as const;
  const view = instanceView(
    read({
      steps: [
        step({ stepId: "nap", path: "nap", type: "DELAY", status: "WAITING", startedAt: at(4) }),
      ],
      waits: [
        { ...wait, purpose: "STEP", openedAt: at(2), matchedEventId: null },
        {
          ...wait,
          path: "got",
          stepId: "got",
          purpose: "STEP",
          openedAt: at(2),
          matchedEventId: "e",
        },
        {
          ...wait,
          path: "$cancel",
          stepId: null,
          purpose: "CANCEL",
          openedAt: at(0),
          matchedEventId: null,
        },
      ],
      timers: [
        { path: "pay", iteration: 1, kind: "wait", dueAt: at(30) },
        { path: "nap", iteration: 1, kind: "delay", dueAt: at(40) },
        { path: "$", iteration: 1, kind: "timeout", dueAt: at(50) },
      ],
    }),
    definition,
  );

  expect(view.state.waitingFor).toEqual([
    {
      stepId: "pay",
      executionId: "pay#1",
      kind: "EVENT",
      eventPattern: "paid",
      eventCondition: "event.payload.ok",
      since: iso(2),
      until: iso(30),
    },
    { stepId: "nap", executionId: "nap#1", kind: "DELAY", since: iso(4), until: iso(40) },
  ]);
});

function viewOf(name: keyof typeof instances): InstanceView {
  return instanceView(instances[name] as InstanceRead, definition);
}
