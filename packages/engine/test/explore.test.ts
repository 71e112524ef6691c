import { expect, test } from "vitest";
import { defaultRetryPolicy } from "../src/retry.ts";
import type { ChildEnd, EventFact, Signal } from "../src/state/signal.ts";
import { define } from "./support/definitions.ts";
import { explore } from "./support/explore.ts";
import type { Stored } from "./support/laws.ts";
import { commit, created, noon } from "./support/simulation.ts";

/**
 * Small workflows in which every signal is tried in every state that can be reached, however late,
 * early or repeated. `commit` checks the laws of each decision; here it is who may win, and where all
 * of it may end.
 */

const event: EventFact = {
  id: "event-1",
  pattern: "paid",
  payload: null,
  occurredAt: noon.toISOString(),
  receivedAt: noon.toISOString(),
};

const paid: Signal = { kind: "eventMatched", path: "wait", iteration: 1, event };
const timeout = timer("wait", "wait");
const cancel: Signal = {
  kind: "cancelRequested",
  reason: null,
  actor: "user:ada",
  shouldCompensate: true,
};
const trigger: Signal = { kind: "cancelTriggered", trigger: 1, event };

function timer(kind: "wait" | "grace" | "total" | "schedule", path: string, attempt = 1): Signal {
  return { kind: "timerFired", timer: kind, path, iteration: 1, attempt };
}

function resultsOf(path: string, attempts = 1): readonly Signal[] {
  const retry = { ...defaultRetryPolicy, maxAttempts: attempts };
  return Array.from({ length: attempts }, (_, index) => index + 1).flatMap((attempt): Signal[] => {
    const execution = { path, iteration: 1, attempt };
    const failure = { type: "Broken", message: "it broke", details: null, retryable: true };
    return [
      successOf(path, attempt),
      { kind: "stepFailed", ...execution, failure, retry },
      { kind: "attemptTimedOut", ...execution, clock: "timeout", retry },
    ];
  });
}

function successOf(path: string, attempt = 1): Signal {
  return { kind: "stepSucceeded", path, iteration: 1, attempt, output: null };
}

/** `CANCELLED: reserve COMPLETED, wait CANCELLED; undone: release` */
function endOf({ instance }: Stored): string {
  const { status, compensation } = instance.snapshot;
  const undoing = new Set(compensation?.plan);
  const steps = [...instance.executions.values()]
    .filter(({ stepId }) => !undoing.has(stepId))
    .map((row) => `${row.stepId} ${row.status}${row.attempt > 1 ? ` ${row.attempt}` : ""}`);
  const lists = [
    ["undone", compensation?.completed],
    ["not undone", compensation?.failed.map(({ stepId }) => stepId)],
    ["uncertain", compensation?.uncertain],
  ] as const;
  const told = lists.flatMap(([what, ids]) =>
    ids?.length ? [`; ${what}: ${ids.join(", ")}`] : [],
  );
  return `${status}: ${steps.join(", ")}${told.join("")}`;
}

function endsOf(settled: readonly Stored[]): readonly string[] {
  return [...new Set(settled.map(endOf))].toSorted();
}

test("of an event, a timeout and a cancel, exactly one wins a wait", () => {
  const definition = define({
    cancellationTriggers: [{ eventPattern: "stop", reason: "stop" }],
    steps: [
      {
        stepId: "wait",
        type: "EVENT_WAIT",
        eventPattern: "paid",
        eventTimeout: { duration: "PT1H", timeoutHandlerStepId: "remind" },
        transitions: { default: "done" },
      },
      { stepId: "remind", type: "SET", variables: { late: true } },
      { stepId: "done", type: "SET", variables: { late: false } },
    ],
  });

  const { settled, moves } = explore(definition, [
    { kind: "started" },
    paid,
    timeout,
    cancel,
    trigger,
  ]);

  expect(endsOf(settled)).toEqual([
    "CANCELLED: wait CANCELLED",
    "COMPLETED: wait COMPLETED, done COMPLETED",
    "COMPLETED: wait FAILED, remind COMPLETED",
  ]);
  const open = moves.filter(({ from }) => from.waits.has("wait#1"));
  expect(open.map(({ signal }) => signal.kind).toSorted()).toEqual([
    "cancelRequested",
    "cancelTriggered",
    "eventMatched",
    "timerFired",
  ]);
  expect(open.every(({ to }) => !to.waits.has("wait#1"))).toBe(true);
});

test("a race of an event and a timer is joined once, whatever comes in whichever order", () => {
  const definition = define({
    steps: [
      {
        stepId: "race",
        type: "PARALLEL",
        join: "ANY",
        branches: [
          { name: "event", steps: [{ stepId: "wait", type: "EVENT_WAIT", eventPattern: "paid" }] },
          { name: "clock", steps: [{ stepId: "pause", type: "DELAY", duration: "PT1S" }] },
        ],
        transitions: { default: "after" },
      },
      { stepId: "after" },
    ],
  });
  const { settled } = explore(definition, [
    { kind: "started" },
    { kind: "eventMatched", path: "race.event.wait", iteration: 1, event },
    { kind: "timerFired", timer: "delay", path: "race.clock.pause", iteration: 1, attempt: 1 },
    ...resultsOf("after"),
  ]);

  expect(endsOf(settled).filter((end) => end.startsWith("COMPLETED"))).toEqual([
    "COMPLETED: race COMPLETED, wait CANCELLED, pause COMPLETED, after COMPLETED",
    "COMPLETED: race COMPLETED, wait COMPLETED, pause CANCELLED, after COMPLETED",
  ]);
});

test("a saga ends in one of a few ways, whatever comes in whichever order", () => {
  const definition = define({
    cancellationTriggers: [{ eventPattern: "stop", reason: "stop" }],
    retry: { maxAttempts: 1 },
    steps: [
      { stepId: "reserve", transitions: { default: "wait" } },
      {
        stepId: "wait",
        type: "EVENT_WAIT",
        eventPattern: "paid",
        eventTimeout: { duration: "PT1H", timeoutHandlerStepId: "remind" },
        transitions: { default: "ship" },
      },
      { stepId: "ship" },
      { stepId: "remind" },
    ],
    compensationSteps: [
      { stepId: "release", compensationFor: "reserve" },
      { stepId: "return", compensationFor: "ship" },
    ],
  });

  const { settled } = explore(definition, [
    { kind: "started" },
    ...["reserve", "ship", "remind"].flatMap((path) => resultsOf(path)),
    ...["release", "return"].map((path) => successOf(path)),
    paid,
    timeout,
    cancel,
    trigger,
    timer("grace", "reserve"),
    timer("grace", "ship"),
    timer("grace", "remind"),
  ]);

  expect(endsOf(settled)).toEqual([
    "CANCELLED: reserve CANCELLED",
    "CANCELLED: reserve CANCELLED; uncertain: reserve",
    "CANCELLED: reserve COMPLETED, wait CANCELLED; undone: release",
    "CANCELLED: reserve COMPLETED, wait COMPLETED, ship CANCELLED; undone: release",
    "CANCELLED: reserve COMPLETED, wait COMPLETED, ship CANCELLED; undone: release; uncertain: ship",
    "CANCELLED: reserve COMPLETED, wait COMPLETED, ship COMPLETED; undone: return, release",
    "CANCELLED: reserve COMPLETED, wait COMPLETED, ship FAILED; undone: release",
    // One of which nobody knows what it had done when its time was over.
    "CANCELLED: reserve COMPLETED, wait COMPLETED, ship FAILED; undone: release; uncertain: ship",
    "CANCELLED: reserve COMPLETED, wait FAILED, remind CANCELLED; undone: release",
    "CANCELLED: reserve COMPLETED, wait FAILED, remind FAILED; undone: release",
    "CANCELLED: reserve COMPLETED; undone: release",
    "CANCELLED: reserve FAILED",
    "CANCELLED: reserve FAILED; uncertain: reserve",
    "COMPLETED: reserve COMPLETED, wait COMPLETED, ship COMPLETED",
    "COMPLETED: reserve COMPLETED, wait FAILED, remind COMPLETED",
    "FAILED: reserve COMPLETED, wait COMPLETED, ship FAILED; undone: release",
    "FAILED: reserve COMPLETED, wait COMPLETED, ship FAILED; undone: release; uncertain: ship",
    "FAILED: reserve COMPLETED, wait FAILED, remind FAILED; undone: release",
    "FAILED: reserve FAILED",
    "FAILED: reserve FAILED; uncertain: reserve",
  ]);
});

test("a cancel or a clock finds a step in whichever of its attempts, and no other begins", () => {
  const definition = define({
    steps: [{ stepId: "ship", totalTimeout: "PT1H", scheduleTimeout: "PT1M" }],
    compensationSteps: [{ stepId: "return", compensationFor: "ship" }],
  });

  const { settled } = explore(definition, [
    { kind: "started" },
    ...resultsOf("ship", 2),
    successOf("return"),
    cancel,
    timer("total", "ship"),
    timer("schedule", "ship", 1),
    timer("schedule", "ship", 2),
    timer("grace", "ship"),
  ]);

  // A number tells that a second attempt had begun.
  expect(endsOf(settled)).toEqual([
    "CANCELLED: ship CANCELLED",
    "CANCELLED: ship CANCELLED 2",
    "CANCELLED: ship CANCELLED 2; uncertain: ship",
    "CANCELLED: ship CANCELLED; uncertain: ship",
    "CANCELLED: ship COMPLETED 2; undone: return",
    "CANCELLED: ship COMPLETED; undone: return",
    // One that has failed is abandoned by a cancel.
    "CANCELLED: ship FAILED",
    "CANCELLED: ship FAILED 2",
    "CANCELLED: ship FAILED 2; uncertain: ship",
    "CANCELLED: ship FAILED; uncertain: ship",
    "COMPLETED: ship COMPLETED",
    "COMPLETED: ship COMPLETED 2",
    "FAILED: ship FAILED",
    "FAILED: ship FAILED 2",
    "FAILED: ship FAILED 2; uncertain: ship",
    "FAILED: ship FAILED; uncertain: ship",
  ]);
});

test("of its branches and its clock, whichever comes first settles a PARALLEL, once", () => {
  const definition = define({
    steps: [
      {
        stepId: "fork",
        type: "PARALLEL",
        timeout: "PT1H",
        onError: [{ errors: ["TIMEOUT"], to: "late" }],
        branches: [
          { name: "task", steps: [{ stepId: "work", retry: { maxAttempts: 1 } }] },
          {
            name: "event",
            steps: [{ stepId: "wait", type: "EVENT_WAIT", eventPattern: "paid", timeout: "PT1M" }],
          },
        ],
      },
      { stepId: "late", type: "SET", variables: { late: true } },
    ],
    compensationSteps: [{ stepId: "undo", compensationFor: "work" }],
    compensateOnFailure: false,
  });

  const { settled } = explore(definition, [
    { kind: "started" },
    successOf("fork.task.work"),
    { kind: "eventMatched", path: "fork.event.wait", iteration: 1, event },
    timer("total", "fork.event.wait"),
    timer("total", "fork"),
    timer("grace", "fork.task.work"),
  ]);

  expect(endsOf(settled)).toEqual([
    "COMPLETED: fork COMPLETED, work COMPLETED, wait COMPLETED",
    "COMPLETED: fork FAILED, work CANCELLED, wait CANCELLED, late COMPLETED",
    "COMPLETED: fork FAILED, work CANCELLED, wait COMPLETED, late COMPLETED",
    "COMPLETED: fork FAILED, work CANCELLED, wait FAILED, late COMPLETED",
    "COMPLETED: fork FAILED, work COMPLETED, wait CANCELLED, late COMPLETED",
    "COMPLETED: fork FAILED, work COMPLETED, wait FAILED, late COMPLETED",
  ]);
});

test("of a child's end and a cancel one wins, and a child that completed in spite of it is undone", () => {
  const definition = define({
    steps: [
      {
        stepId: "pay",
        type: "SUB_WORKFLOW",
        workflowId: "payment",
        transitions: { default: "ship" },
      },
      { stepId: "ship", type: "EVENT_WAIT", eventPattern: "shipped" },
    ],
    compensationSteps: [{ stepId: "refund", compensationFor: "pay" }],
  });
  const began = commit(definition, created(definition), [{ kind: "started" }], noon);
  const childId = began.stored.instance.snapshot.live["pay#1"]?.child ?? "";
  const ended = (end: Partial<ChildEnd>): Signal => ({
    kind: "childEnded",
    path: "pay",
    iteration: 1,
    attempt: 1,
    childId,
    status: "COMPLETED",
    output: null,
    error: null,
    reason: null,
    ...end,
  });
  const error = { kind: "TASK", type: "Broken", message: "it broke", details: null } as const;

  const { settled, moves } = explore(definition, [
    ended({}),
    ended({ status: "FAILED", error: { ...error, stepId: "charge", attempt: 1 } }),
    ended({ status: "CANCELLED" }),
    { kind: "eventMatched", path: "ship", iteration: 1, event },
    cancel,
    timer("grace", "pay"),
    successOf("refund"),
  ]);

  expect(endsOf(settled)).toEqual([
    "CANCELLED: pay CANCELLED",
    "CANCELLED: pay CANCELLED; uncertain: pay",
    "CANCELLED: pay COMPLETED, ship CANCELLED; undone: refund",
    "CANCELLED: pay COMPLETED; undone: refund",
    "CANCELLED: pay FAILED",
    "COMPLETED: pay COMPLETED, ship COMPLETED",
    "FAILED: pay FAILED",
  ]);
  // It is told to stop exactly where it may still run.
  const cancels = moves.filter(({ signal }) => signal === cancel);
  const told = cancels.filter(
    ({ from, to }) => from.children.has(childId) && !to.children.has(childId),
  );
  expect(told).toHaveLength(1);
});

test("of two events, the clock and a cancel, the first takes the wait; all of them are needed where both events are", () => {
  const ends = (mode: "ANY" | "ALL") => {
    const definition = define({
      steps: [
        {
          stepId: "wait",
          type: "EVENT_WAIT",
          mode,
          events: [{ eventPattern: "paid" }, { eventPattern: "packed" }],
          eventTimeout: { duration: "PT1H", timeoutHandlerStepId: "late" },
        },
        { stepId: "late", type: "SET", variables: { late: true } },
      ],
    });
    const matched = (path: string) =>
      ({ kind: "eventMatched", path, iteration: 1, event }) as const;
    const { settled, moves } = explore(definition, [
      { kind: "started" },
      matched("wait|00"),
      matched("wait|01"),
      timer("wait", "wait"),
      cancel,
    ]);
    expect(moves.every(({ to }) => to.waits.size <= 2)).toBe(true);
    return endsOf(settled);
  };

  expect(ends("ANY")).toEqual([
    "CANCELLED: wait CANCELLED",
    "COMPLETED: wait COMPLETED",
    "COMPLETED: wait FAILED, late COMPLETED",
  ]);
  expect(ends("ALL")).toEqual([
    "CANCELLED: wait CANCELLED",
    "COMPLETED: wait COMPLETED",
    "COMPLETED: wait FAILED, late COMPLETED",
  ]);
});

test("with a limit it comes to the ends that it would come to without, whenever it is admitted", () => {
  const sketch = {
    retry: { maxAttempts: 1 },
    steps: [
      { stepId: "a", transitions: { default: "wait" } },
      { stepId: "wait", type: "EVENT_WAIT", eventPattern: "paid", transitions: { default: "b" } },
      { stepId: "b" },
    ],
    compensationSteps: [{ stepId: "undo_a", compensationFor: "a" }],
  };
  const who = { actor: "user:ada", reason: null };
  const signals: readonly Signal[] = [
    { kind: "started" },
    ...[1, 2, 3, 4].map((request): Signal => ({ kind: "admitted", request })),
    paid,
    cancel,
    { kind: "pauseRequested", intervention: 1, until: null, ...who },
    { kind: "resumeRequested", intervention: 2, held: [], ...who },
    ...resultsOf("a"),
    ...resultsOf("b"),
    ...resultsOf("undo_a"),
  ];

  const limited = explore(define({ ...sketch, concurrency: { limit: 1 } }), signals);

  const free = explore(define(sketch), signals);
  const onlyWhileQueued = [
    "CANCELLED: ",
    "CANCELLED: a COMPLETED, wait COMPLETED; not undone: undo_a",
    "CANCELLED: a COMPLETED, wait COMPLETED; undone: undo_a",
  ];
  const ends = [...onlyWhileQueued, ...endsOf(free.settled)];
  expect(endsOf(limited.settled)).toEqual(ends.toSorted());
  const held = limited.moves.filter(({ to }) => to.instance.snapshot.slot === "HELD");
  const took = held.filter(({ from }) => from.instance.snapshot.slot !== "HELD");
  expect(new Set(took.map(({ signal }) => signal.kind))).toEqual(new Set(["admitted"]));
  expect(limited.settled.every(({ instance }) => instance.snapshot.slot === null)).toBe(true);
});
