import { expect, test } from "vitest";
import type { HeldSignal } from "../../src/state/signal.ts";
import { define } from "../support/definitions.ts";
import { simulate } from "../support/simulation.ts";
import type { Simulation } from "../support/simulation.ts";

const who = { actor: "user:ada", reason: "to look at it" };

function pause(simulation: Simulation, until: string | null = null) {
  const intervention = simulation.snapshot.interventions + 1;
  return simulation.send({ kind: "pauseRequested", intervention, until, ...who });
}

function resume(simulation: Simulation, held: readonly HeldSignal[] = []) {
  const intervention = simulation.snapshot.interventions + 1;
  return simulation.send({ kind: "resumeRequested", intervention, held, ...who });
}

const mark = (stepId: string, name: string) => ({
  stepId,
  type: "SET",
  variables: { order: `\${ variables.order + '${name}' }` },
});

/** Three branches that a result, an event and a clock move on; each leaves its letter. */
const three = define({
  variables: { order: "" },
  steps: [
    {
      stepId: "all",
      type: "PARALLEL",
      branches: [
        { name: "t", steps: [{ stepId: "task", transitions: { default: "t" } }, mark("t", "t")] },
        {
          name: "e",
          steps: [
            {
              stepId: "wait",
              type: "EVENT_WAIT",
              eventPattern: "paid",
              transitions: { default: "e" },
            },
            mark("e", "e"),
          ],
        },
        {
          name: "d",
          steps: [
            {
              stepId: "delay",
              type: "DELAY",
              duration: "PT1H",
              transitions: { default: "d" },
            },
            mark("d", "d"),
          ],
        },
      ],
    },
  ],
});

const event = {
  id: "event-1",
  pattern: "paid",
  payload: null,
  occurredAt: "2026-03-01T12:00:00.000Z",
  receivedAt: "2026-03-01T12:00:00.000Z",
};
const held: Readonly<Record<string, HeldSignal["signal"]>> = {
  e: { kind: "eventMatched", path: "all.e.wait", iteration: 1, event },
  d: { kind: "timerFired", timer: "delay", path: "all.d.delay", iteration: 1, attempt: 1 },
};

test.each(["ted", "tde", "etd", "edt", "dte", "det"])(
  "what comes in the order %s while it is paused is applied in that order",
  (order) => {
    const simulation = simulate(three);
    simulation.start();
    simulation.claim("task");
    pause(simulation);
    const signals: HeldSignal[] = [];
    for (const letter of order) {
      simulation.elapse("PT1S");
      const signal = held[letter];
      if (signal === undefined) simulation.succeed("task");
      else signals.push({ at: simulation.now.toISOString(), signal });
    }
    const before = simulation.snapshot;
    resume(simulation, signals);

    expect([before.status, before.variables]).toEqual(["PAUSED", { order: "" }]);
    expect(simulation.row("task")?.status).toBe("COMPLETED");
    expect([simulation.snapshot.status, simulation.snapshot.variables]).toEqual([
      "COMPLETED",
      { order },
    ]);
  },
);

test("signals that a pause holds change nothing by themselves", () => {
  const simulation = simulate(three);
  simulation.start();
  pause(simulation);
  const { snapshot } = simulation;

  for (const signal of Object.values(held)) simulation.send(signal);

  expect(simulation.snapshot).toBe(snapshot);
});

test.each([
  ["an event before its timeout", "12:59:59.999", "COMPLETED"],
  ["an event in the moment of its timeout", "13:00:00.000", "COMPLETED"],
  ["its timeout before an event", "13:00:00.001", "FAILED"],
])("a wait has what came first: %s", (_what, receivedAt, status) => {
  const clocks = [
    [{ timeout: "PT1H" }, {}, { timer: "timeout", path: "", iteration: 0, attempt: 0 }],
    [{}, { totalTimeout: "PT1H" }, { timer: "total", path: "fork", iteration: 1, attempt: 1 }],
    [{}, {}, { timer: "wait", path: "fork.a.w", iteration: 1, attempt: 1 }],
  ] as const;
  const ends = clocks.map(([instance, composite, clock]) => {
    const simulation = simulate(waitInFork(instance, composite));
    simulation.start();
    pause(simulation);
    resume(simulation, [
      { at: "2026-03-01T13:00:00.000Z", signal: { kind: "timerFired", ...clock } },
      {
        at: `2026-03-01T${receivedAt}Z`,
        signal: { kind: "eventMatched", event, path: "fork.a.w|01", iteration: 1 },
      },
    ]);
    return simulation.snapshot.status;
  });

  expect(ends).toEqual(clocks.map(() => status));
});

function waitInFork(instance: object, composite: object) {
  const wait = {
    stepId: "w",
    type: "EVENT_WAIT",
    events: [{ eventPattern: "paid" }, { eventPattern: "refused" }],
    eventTimeout: { duration: "PT1H" },
  };
  const branches = [{ name: "a", steps: [wait] }];
  const fork = { stepId: "fork", type: "PARALLEL", ...composite, branches };
  return define({ ...instance, steps: [fork] });
}

test("a step that fails for good while it is paused fails the instance when that ends", () => {
  const simulation = simulate(
    define({
      retry: { maxAttempts: 1 },
      steps: [{ stepId: "a", transitions: { default: "b" } }, { stepId: "b" }],
      compensationSteps: [{ stepId: "undoA", compensationFor: "a" }],
    }),
  );
  simulation.start();
  simulation.succeed("a");
  simulation.claim("b");
  pause(simulation);

  simulation.fail("b");
  const paused = simulation.statuses();
  resume(simulation);

  expect(paused).toEqual({ a: "COMPLETED", b: "FAILED" });
  expect(simulation.snapshot).toMatchObject({
    status: "FAILED",
    error: { stepId: "b" },
    compensation: { plan: ["undoA"] },
  });
});

test("a cancel works at once, and undoes what was completed while it was paused", () => {
  const simulation = simulate(
    define({
      steps: [{ stepId: "a", transitions: { default: "b" } }, { stepId: "b" }],
      compensationSteps: [{ stepId: "undoA", compensationFor: "a" }],
    }),
  );
  simulation.start();
  simulation.claim("a");
  pause(simulation);
  simulation.succeed("a");

  simulation.cancel();

  expect(simulation.snapshot).toMatchObject({ status: "CANCELLED", pause: null, live: {} });
  expect(simulation.snapshot.compensation?.plan).toEqual(["undoA"]);
});

test("pause and resume count once each, and in their order", () => {
  const simulation = simulate(three);
  simulation.start();
  const first = { kind: "pauseRequested", intervention: 1, until: null, ...who } as const;
  const second = { kind: "resumeRequested", intervention: 2, held: [], ...who } as const;

  simulation.send(second);
  const early = simulation.snapshot.status;
  simulation.send(first);
  simulation.send(second);
  simulation.send(first);

  expect([early, simulation.snapshot.status]).toEqual(["RUNNING", "RUNNING"]);
  expect(simulation.snapshot.interventions).toBe(2);
});

test("a step that is poisoned while it is paused is held, and has its dead letter when it resumes", () => {
  const simulation = simulate(define({ steps: [{ stepId: "a" }] }));
  simulation.start();
  simulation.claim("a");
  pause(simulation);

  const poisoned = {
    kind: "poisoned",
    path: "a",
    iteration: 1,
    attempt: 1,
    deliveries: 5,
  } as const;
  const before = simulation.send(poisoned);
  const { status } = simulation.snapshot;
  const after = resume(simulation);

  const letter = expect.objectContaining({ kind: "openDeadLetter", path: "a" });
  expect([status, before.commands]).toEqual(["PAUSED", expect.not.arrayContaining([letter])]);
  expect(after.commands).toContainEqual(letter);
  expect(simulation.snapshot).toMatchObject({ status: "FAILED", error: { kind: "POISONED" } });
});

test("what follows a held event runs, though all that the instance did was to wait", () => {
  const wait = { stepId: "wait", type: "EVENT_WAIT", eventPattern: "paid" };
  const then = { stepId: "then", type: "SET", condition: "workflow.instance.status === 'RUNNING'" };
  const simulation = simulate(
    define({
      steps: [
        {
          stepId: "all",
          type: "PARALLEL",
          branches: [
            { name: "t", steps: [{ stepId: "task" }] },
            {
              name: "e",
              steps: [
                { ...wait, transitions: { default: "then" } },
                { ...then, variables: { seen: true } },
              ],
            },
          ],
        },
      ],
    }),
  );
  simulation.start();
  simulation.claim("task");
  pause(simulation);
  simulation.elapse("PT1S");
  simulation.succeed("task");
  simulation.elapse("PT1S");
  const signal = { kind: "eventMatched", path: "all.e.wait", iteration: 1, event } as const;
  resume(simulation, [{ at: simulation.now.toISOString(), signal }]);

  // The task had ended, so that nothing could run when the event came.
  expect(simulation.row("then")?.status).toBe("COMPLETED");
});
