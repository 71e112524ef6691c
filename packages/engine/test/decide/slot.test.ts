import fc from "fast-check";
import { expect, test } from "vitest";
import type { HeldSignal } from "../../src/state/signal.ts";
import { define } from "../support/definitions.ts";
import { simulate } from "../support/simulation.ts";
import type { Simulation } from "../support/simulation.ts";

const concurrency = { limit: 1 };

function admit(simulation: Simulation, request = simulation.snapshot.slotRequests) {
  return simulation.send({ kind: "admitted", request });
}

const who = { actor: "user:ada", reason: null };

function pause(simulation: Simulation) {
  const intervention = simulation.snapshot.interventions + 1;
  return simulation.send({ kind: "pauseRequested", intervention, until: null, ...who });
}

function resume(simulation: Simulation, held: readonly HeldSignal[] = []) {
  const intervention = simulation.snapshot.interventions + 1;
  return simulation.send({ kind: "resumeRequested", intervention, held, ...who });
}

const two = define({
  concurrency,
  steps: [{ stepId: "a", transitions: { default: "b" } }, { stepId: "b" }],
});

/** A task, a wait, and a task. */
const around = define({
  concurrency,
  steps: [
    { stepId: "a", transitions: { default: "wait" } },
    { stepId: "wait", type: "EVENT_WAIT", eventPattern: "paid", transitions: { default: "note" } },
    { stepId: "note", type: "SET", variables: { paid: true }, transitions: { default: "b" } },
    { stepId: "b", totalTimeout: "PT1M" },
  ],
});

const unlimited = define({
  steps: [
    { stepId: "a", transitions: { default: "wait" } },
    { stepId: "wait", type: "EVENT_WAIT", eventPattern: "paid", transitions: { default: "b" } },
    { stepId: "b" },
  ],
});

function note(simulation: Simulation, limits: string | null) {
  return simulation.send({ kind: "limitsNoted", limits });
}

test("an instance is CREATED until it is admitted, and gives its slot up when it ends", () => {
  const simulation = simulate(two);

  simulation.start();
  expect(simulation.snapshot).toMatchObject({ status: "CREATED", slot: "WANTED", startedAt: null });
  expect(simulation.statuses()).toEqual({});

  admit(simulation);
  expect(simulation.snapshot).toMatchObject({ status: "RUNNING", slot: "HELD" });
  simulation.succeed("a");
  expect(simulation.snapshot.slot).toBe("HELD");
  simulation.succeed("b");
  expect(simulation.snapshot).toMatchObject({ status: "COMPLETED", slot: null });
});

test("one that starts later asks for a slot when its time has come", () => {
  const simulation = simulate(two);
  simulation.send({ kind: "scheduled", startAt: new Date("2026-03-01T13:00:00Z") });
  expect(simulation.snapshot.slot).toBeNull();

  simulation.elapse("PT1H");

  expect(simulation.snapshot).toMatchObject({ status: "CREATED", slot: "WANTED" });
  admit(simulation);
  expect(simulation.statuses()).toEqual({ a: "PENDING" });
});

test("an admission of an earlier request, or a second one, changes nothing", () => {
  const simulation = simulate(around);
  simulation.start();
  admit(simulation);
  simulation.succeed("a");
  simulation.publish("paid");

  expect(admit(simulation, 1).entries).toEqual([]);
  expect(admit(simulation, 2).entries).not.toEqual([]);
  expect(admit(simulation, 2).entries).toEqual([]);
});

test("a promotion counts once, as long as it waits for a slot, through a pause, and no longer", () => {
  const simulation = simulate(around);
  const promote = () => {
    const intervention = simulation.snapshot.interventions + 1;
    return simulation.send({ kind: "promoteRequested", intervention, ...who, reason: "late" });
  };
  simulation.start();

  const { entries } = promote();
  const { slotPromotedAt, interventions } = simulation.snapshot;
  simulation.send({ kind: "promoteRequested", intervention: interventions, ...who });
  pause(simulation);
  expect(promote().entries).toEqual([]);
  resume(simulation);

  const data = { reason: "late" };
  expect(entries).toEqual([{ type: "workflow.promoted", actor: "user:ada", data }]);
  expect(slotPromotedAt).not.toBeNull();
  expect(simulation.snapshot.slotPromotedAt).toBe(slotPromotedAt);
  admit(simulation);
  expect(simulation.snapshot.slotPromotedAt).toBeNull();
  expect(promote().entries).toEqual([]);
});

test("limits that are set before it starts make it wait for a slot, without a line of their own", () => {
  const simulation = simulate(unlimited);

  const { entries } = simulation.send(
    { kind: "limitsNoted", limits: "tenant user:ada" },
    { kind: "started" },
  );

  expect(simulation.snapshot).toMatchObject({
    status: "CREATED",
    slot: "WANTED",
    limits: "tenant user:ada",
  });
  expect(entries.map(({ type }) => type)).toEqual(["workflow.created", "workflow.queued"]);
  admit(simulation);
  expect(simulation.snapshot).toMatchObject({ status: "RUNNING", slot: "HELD" });
});

test("one that runs when limits are set is counted and goes on; one that waits needs a slot to go on", () => {
  const simulation = simulate(unlimited);
  simulation.start();

  const { entries } = note(simulation, "tenant");
  expect(entries).toEqual([{ type: "workflow.limited", data: { limits: ["tenant"] } }]);
  expect(simulation.snapshot).toMatchObject({ status: "RUNNING", slot: "HELD", slotRequests: 1 });
  expect(note(simulation, "tenant").entries).toEqual([]);
  simulation.succeed("a");
  expect(simulation.snapshot).toMatchObject({ status: "WAITING_FOR_EVENT", slot: null });
  simulation.publish("paid");
  expect(simulation.snapshot).toMatchObject({ status: "WAITING_FOR_EVENT", slot: "WANTED" });
});

test("one that is queued when limits are set keeps its place, and an admission under those before is void", () => {
  const simulation = simulate(around);
  simulation.start();
  const { slotWantedAt } = simulation.snapshot;

  simulation.elapse("PT1M");
  note(simulation, "tenant type:w");
  expect(admit(simulation, 1).entries).toEqual([]);

  expect(simulation.snapshot).toMatchObject({ slot: "WANTED", slotRequests: 2, slotWantedAt });
  admit(simulation);
  // It has its slot: under those that are left, too.
  note(simulation, null);
  expect(simulation.snapshot).toMatchObject({ slot: "HELD", slotRequests: 3, limits: null });
});

test("one that has failed and is retried needs a slot under limits that were set meanwhile", () => {
  const simulation = simulate(unlimited);
  simulation.start();
  simulation.fail("a", { retryable: false });
  const intervention = simulation.snapshot.interventions + 1;

  simulation.send(
    { kind: "limitsNoted", limits: "tenant" },
    { kind: "retryRequested", intervention, fromStepId: null, ...who },
  );

  expect(simulation.snapshot).toMatchObject({ status: "WAITING_FOR_EVENT", slot: "WANTED" });
  simulation.cancel();
  expect(note(simulation, null).entries).toEqual([]);
});

test("whoever stands at a task without a slot, or may once its pause ends, stays limited when all limits go", () => {
  const simulation = simulate(unlimited);
  simulation.send({ kind: "limitsNoted", limits: "tenant" }, { kind: "started" });

  expect(note(simulation, null).entries).toEqual([]);
  pause(simulation);
  expect(note(simulation, null).entries).toEqual([]);
  resume(simulation);
  admit(simulation);
  simulation.succeed("a");
  note(simulation, null);

  expect(simulation.snapshot).toMatchObject({ status: "WAITING_FOR_EVENT", limits: null });
  simulation.publish("paid");
  expect(simulation.snapshot).toMatchObject({ status: "RUNNING", slot: null });
});

test("limits that come and go at any time leave nobody standing", () => {
  const sets = fc.constantFrom(null, "tenant", "tenant type:w", "global user:a");
  const acts = fc.array(
    fc.oneof(
      sets.map((limits) => (each: Simulation) => void note(each, limits)),
      fc.constantFrom<(each: Simulation) => void>(
        (each) => void admit(each),
        (each) => void each.publish("paid"),
        (each) => void pause(each),
        (each) => void resume(each),
        goOn,
      ),
    ),
    { maxLength: 12 },
  );
  fc.assert(
    fc.property(acts, fc.boolean(), (all, isDefined) => {
      const simulation = simulate(isDefined ? around : unlimited);
      simulation.start();
      for (const act of all) act(simulation);

      for (let round = 0; round < 6; round++) {
        resume(simulation);
        admit(simulation);
        goOn(simulation);
        simulation.publish("paid");
      }

      expect(simulation.snapshot).toMatchObject({ status: "COMPLETED", slot: null });
    }),
    { numRuns: 60 },
  );
});

/** Steps that run, or are to, succeed. */
function goOn(simulation: Simulation): void {
  for (const { stepId, phase } of Object.values(simulation.snapshot.live)) {
    const isHeld = simulation.snapshot.slot === "WANTED" || simulation.snapshot.status === "PAUSED";
    if (phase === "ACTIVE" && !isHeld) simulation.succeed(stepId);
  }
}

test("while it waits it has no slot; its event is applied at once, and the task after it needs one", () => {
  const simulation = simulate(around);
  simulation.start();
  admit(simulation);
  simulation.succeed("a");
  expect(simulation.snapshot).toMatchObject({ status: "WAITING_FOR_EVENT", slot: null });

  simulation.publish("paid");
  expect(simulation.snapshot).toMatchObject({
    status: "WAITING_FOR_EVENT",
    slot: "WANTED",
    variables: { paid: true },
  });
  expect(simulation.statuses()).toEqual({ a: "COMPLETED", wait: "COMPLETED", note: "COMPLETED" });

  // The clocks of the task begin with it.
  simulation.elapse("PT1H");
  admit(simulation);
  expect(simulation.snapshot).toMatchObject({ status: "RUNNING", slot: "HELD" });
  expect(simulation.statuses()["b"]).toBe("PENDING");
});

test("what ends without another task needs no slot again", () => {
  const simulation = simulate(
    define({
      concurrency,
      steps: [
        {
          stepId: "wait",
          type: "EVENT_WAIT",
          eventPattern: "paid",
          transitions: { default: "end" },
        },
        { stepId: "end", type: "END", outcome: "COMPLETED", output: "done" },
      ],
    }),
  );
  simulation.start();
  admit(simulation);

  simulation.publish("paid");

  expect(simulation.snapshot).toMatchObject({ status: "COMPLETED", slotRequests: 1 });
});

test("a branch that runs keeps the slot, whatever waits beside it", () => {
  const simulation = simulate(
    define({
      concurrency,
      steps: [
        {
          stepId: "all",
          type: "PARALLEL",
          branches: [
            { name: "t", steps: [{ stepId: "task" }] },
            { name: "w", steps: [{ stepId: "wait", type: "EVENT_WAIT", eventPattern: "paid" }] },
          ],
        },
      ],
    }),
  );
  simulation.start();
  admit(simulation);
  expect(simulation.snapshot).toMatchObject({ status: "RUNNING", slot: "HELD" });

  simulation.succeed("task");

  expect(simulation.snapshot).toMatchObject({ status: "WAITING_FOR_EVENT", slot: null });
});

test("a pause gives the slot up; what was scheduled is held until it is admitted again", () => {
  const simulation = simulate(two);
  simulation.start();
  admit(simulation);
  pause(simulation);
  expect(simulation.snapshot).toMatchObject({ status: "PAUSED", slot: null });

  const resumed = resume(simulation);
  expect(simulation.snapshot).toMatchObject({ status: "WAITING_FOR_EVENT", slot: "WANTED" });
  expect(resumed.commands).toContainEqual({
    kind: "letGo",
    executions: [],
    timers: [],
    waits: [],
  });

  const admitted = admit(simulation);
  expect(admitted.commands).toEqual([
    { kind: "letGo", executions: [{ path: "a", iteration: 1 }], timers: [], waits: [] },
  ]);
  simulation.succeed("a");
  simulation.succeed("b");
  expect(simulation.snapshot.status).toBe("COMPLETED");
});

test("what ran on through a pause may end before it is admitted: its result is kept, and no other task begins", () => {
  const simulation = simulate(two);
  simulation.start();
  admit(simulation);
  simulation.claim("a");
  pause(simulation);
  resume(simulation);

  const { commands } = simulation.succeed("a");

  expect(commands).toEqual([]);
  expect(simulation.statuses()).toEqual({ a: "COMPLETED" });
  expect(simulation.snapshot).toMatchObject({ status: "WAITING_FOR_EVENT", slot: "WANTED" });
  admit(simulation);
  expect(simulation.statuses()).toEqual({ a: "COMPLETED", b: "PENDING" });
});

test("one that is paused before it is admitted is queued again when it resumes", () => {
  const simulation = simulate(two);
  simulation.start();
  pause(simulation);
  expect(simulation.snapshot).toMatchObject({ status: "PAUSED", slot: null });
  expect(admit(simulation).entries).toEqual([]);

  resume(simulation);

  expect(simulation.snapshot).toMatchObject({ status: "CREATED", slot: "WANTED", slotRequests: 2 });
});

test.each([
  ["before it is admitted", () => {}],
  ["while it runs", (simulation: Simulation) => admit(simulation)],
  [
    "while it waits for a slot again",
    (simulation: Simulation) => {
      admit(simulation);
      simulation.succeed("a");
      simulation.publish("paid");
    },
  ],
])("a cancel %s takes its slot or its place, and works at once", (_when, lead) => {
  const simulation = simulate(around);
  simulation.start();
  lead(simulation);

  simulation.cancel();

  expect(simulation.snapshot).toMatchObject({ status: "CANCELLED", slot: null, live: {} });
});

test("a retry of a failed instance asks for a slot, and what undoes it needs none", () => {
  const simulation = simulate(
    define({
      concurrency,
      retry: { maxAttempts: 1 },
      compensateOnFailure: false,
      steps: [{ stepId: "a", transitions: { default: "b" } }, { stepId: "b" }],
      compensationSteps: [{ stepId: "undo", compensationFor: "a" }],
    }),
  );
  simulation.start();
  admit(simulation);
  simulation.succeed("a");
  simulation.fail("b");
  expect(simulation.snapshot).toMatchObject({ status: "FAILED", slot: null });

  const intervention = simulation.snapshot.interventions + 1;
  simulation.send({ kind: "retryRequested", intervention, fromStepId: null, ...who });
  expect(simulation.snapshot).toMatchObject({ status: "WAITING_FOR_EVENT", slot: "WANTED" });
  admit(simulation);
  expect(simulation.statuses()["b"]).toBe("PENDING");

  simulation.cancel();
  expect(simulation.snapshot).toMatchObject({ status: "CANCELLED", slot: null });
  expect(simulation.statuses()["undo"]).toBe("PENDING");
});

test("a parent gives its slot up while it waits for its child", () => {
  const simulation = simulate(
    define({
      concurrency,
      steps: [
        {
          stepId: "child",
          type: "SUB_WORKFLOW",
          workflowId: "other",
          transitions: { default: "b" },
        },
        { stepId: "b" },
      ],
    }),
  );
  simulation.start();
  admit(simulation);
  expect(simulation.snapshot).toMatchObject({ status: "WAITING_FOR_EVENT", slot: null });

  simulation.endChild("child");

  expect(simulation.snapshot).toMatchObject({ slot: "WANTED", slotRequests: 2 });
});

test("the instance's timeout ends one that is queued", () => {
  const simulation = simulate(define({ concurrency, timeout: "PT1H", steps: [{ stepId: "a" }] }));
  simulation.start();

  simulation.elapse("PT1H");

  expect(simulation.snapshot).toMatchObject({
    status: "FAILED",
    error: { kind: "TIMEOUT" },
    slot: null,
    startedAt: null,
  });
});

test("a pause keeps the place in the queue of one that waits for a slot, before it begins and after", () => {
  const simulation = simulate(around);
  simulation.start();
  const first = simulation.snapshot.slotWantedAt;
  const pauseAnHour = () => {
    pause(simulation);
    simulation.elapse("PT1H");
    resume(simulation);
    return simulation.snapshot;
  };

  expect(pauseAnHour()).toMatchObject({ status: "CREATED", slot: "WANTED", slotWantedAt: first });
  admit(simulation);
  simulation.succeed("a");
  simulation.publish("paid");
  const then = simulation.now.toISOString();
  simulation.elapse("PT1H");
  expect(pauseAnHour()).toMatchObject({ slot: "WANTED", slotWantedAt: then });
  admit(simulation);
  expect(pauseAnHour().slotWantedAt).toBe(simulation.now.toISOString());
});

test("what came while it was paused makes it wait for a slot from then on, and not from before", () => {
  const simulation = simulate(two);
  simulation.send({ kind: "scheduled", startAt: new Date("2026-03-01T13:00:00Z") });
  pause(simulation);
  simulation.elapse("PT3H");
  const signal = {
    kind: "timerFired",
    timer: "start",
    path: "",
    iteration: 0,
    attempt: 0,
  } as const;
  resume(simulation, [{ at: "2026-03-01T13:00:00.000Z", signal }]);
  expect(simulation.snapshot.slotWantedAt).toBe("2026-03-01T13:00:00.000Z");

  const waiting = simulate(around);
  waiting.start();
  admit(waiting);
  waiting.succeed("a");
  waiting.elapse("PT1H");
  pause(waiting);
  const pausedAt = waiting.now.toISOString();
  waiting.elapse("PT1H");
  const at = "2026-02-01T12:00:00.000Z";
  const event = { id: "e", pattern: "paid", payload: null, occurredAt: at, receivedAt: at };
  resume(waiting, [{ at, signal: { kind: "eventMatched", path: "wait", iteration: 1, event } }]);
  expect(waiting.snapshot).toMatchObject({ slot: "WANTED", slotWantedAt: pausedAt });
});
