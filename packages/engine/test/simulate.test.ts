import { readFileSync } from "node:fs";
import { Scenario } from "@millrace/contract";
import fc from "fast-check";
import { expect, test } from "vitest";
import { compileDefinition } from "../src/definition/compile.ts";
import { validateDefinition } from "../src/definition/validate.ts";
import { scenarioProblems } from "../src/simulate/scenario.ts";
import { simulate } from "../src/simulate/simulate.ts";
import { document } from "./arbitraries.ts";
import { define } from "./support/definitions.ts";

const folder = new URL("../../../examples/order-processing/", import.meta.url);
const read = (name: string): unknown => JSON.parse(readFileSync(new URL(name, folder), "utf8"));

function runScenario(name: string) {
  const { document: order } = validateDefinition(read("order_processing.json"));
  if (order === undefined) throw new Error("the example does not compile");
  const definition = compileDefinition(order, 1);
  const scenario = Scenario.parse(read(`scenarios/${name}.json`));
  expect(scenarioProblems(definition, scenario)).toEqual([]);
  return simulate(definition, scenario);
}

test("an order that is paid goes its whole way, the retry and the fraud check included", () => {
  const { outcome, instance, path, coverage, events, unmocked } = runScenario("paid");

  expect([outcome, instance.status]).toEqual(["SETTLED", "COMPLETED"]);
  expect(instance.output).toEqual({ confirmed: true });
  expect(instance.steps["reserve_inventory"]).toMatchObject({ attempts: 2, status: "COMPLETED" });
  expect(path).toEqual([
    "reserve_inventory#1",
    "wait_for_payment#1",
    "process_payment#1",
    "fraud_check#1",
    "ship_order#1",
    "confirm_order#1",
  ]);
  expect(events.map(({ delivered }) => delivered)).toEqual([false, true]);
  expect(coverage.unreached).toEqual([
    "handle_payment_timeout",
    "notify_declined",
    "declined",
    "give_up",
  ]);
  expect(coverage.transitions).toContainEqual({
    from: "process_payment",
    to: "fraud_check",
    taken: 1,
  });
  expect([coverage.taken, coverage.total]).toEqual([5, 10]);
  expect(unmocked).toEqual([]);
});

test("an order that nobody pays is given up when the window closes, by the virtual clock", () => {
  const { instance, transcript } = runScenario("never-paid");

  expect(instance).toMatchObject({
    status: "CANCELLED",
    cancellation: { source: "END", reason: "no payment within the window" },
    compensation: { status: "COMPLETED", completed: ["release_inventory"] },
  });
  expect(transcript.find(({ what }) => what.startsWith("the wait timer"))?.at).toBe(
    "2026-01-03T00:00:01.000Z",
  );
});

test("a cancel awaits what is in flight and undoes all of it, retries included", () => {
  const { instance, transcript } = runScenario("cancelled-while-shipping");

  expect(instance.status).toBe("CANCELLED");
  expect(instance.compensation).toMatchObject({
    status: "COMPLETED",
    plan: ["cancel_shipment", "refund_payment", "release_inventory"],
    completed: ["cancel_shipment", "refund_payment", "release_inventory"],
  });
  const refunds = transcript.flatMap(({ changes }) =>
    changes.flatMap(({ executionId, status }) =>
      executionId === "refund_payment#1" ? [status] : [],
    ),
  );
  expect(refunds).toEqual(["PENDING", "RETRYING", "COMPLETED"]);
});

test("the same scenario gives the same result, and an event before the wait is looked back for", () => {
  const definition = define({
    steps: [
      { stepId: "work", transitions: { default: "wait" } },
      { stepId: "wait", type: "EVENT_WAIT", eventPattern: "go", lookback: "instance" },
    ],
  });
  const scenario: Scenario = {
    tasks: { work: { duration: "PT1M" } },
    events: [{ at: "PT1S", pattern: "go", payload: { n: 1 } }],
  };

  const first = simulate(definition, scenario);

  expect(first).toEqual(simulate(definition, scenario));
  expect(first.instance).toMatchObject({ status: "COMPLETED", output: { payload: { n: 1 } } });
});

test("what does not come leaves it stuck; time and work have their bounds", () => {
  const wait = define({ steps: [{ stepId: "wait", type: "EVENT_WAIT", eventPattern: "go" }] });
  const nap = define({ steps: [{ stepId: "nap", type: "DELAY", duration: "P2D" }] });
  const loop = define({
    steps: [
      { stepId: "a", maxIterations: 1_000_000, transitions: { default: "b" } },
      {
        stepId: "b",
        type: "DELAY",
        duration: "PT1S",
        maxIterations: 1_000_000,
        transitions: { default: "a" },
      },
    ],
  });

  const stuck = simulate(wait, {});

  expect(stuck.outcome).toBe("STUCK");
  expect(stuck.instance.waitingFor).toEqual([{ stepId: "wait", eventPattern: "go" }]);
  expect(simulate(nap, { until: "P1D" }).outcome).toBe("TIME_LIMIT");
  expect(simulate(loop, { until: "P1000Y" }).outcome).toBe("STEP_LIMIT");
});

test("a task that takes longer than its timeout times out", () => {
  const definition = define({
    steps: [{ stepId: "slow", timeout: "PT5S", retry: { maxAttempts: 1 } }],
  });

  const { instance } = simulate(definition, { tasks: { slow: { duration: "PT6S" } } });

  expect(instance).toMatchObject({ status: "FAILED", error: { type: "TIMEOUT" } });
});

test("bad durations and unknown steps of a scenario are all named", () => {
  const definition = define({ steps: [{ stepId: "pack" }] });
  const scenario: Scenario = {
    tasks: { pakc: {}, pack: [{ duration: "5s" }] },
    events: [{ at: "soon", pattern: "go" }],
  };

  expect(scenarioProblems(definition, scenario).map(({ path, code }) => [path, code])).toEqual([
    ["/events/0/at", "BAD_DURATION"],
    ["/tasks/pakc", "UNKNOWN_STEP"],
    ["/tasks/pack/0/duration", "BAD_DURATION"],
  ]);
});

test("what could not happen for real is refused in a scenario", () => {
  const definition = define({ steps: [{ stepId: "pack" }] });
  const scenario: Scenario = {
    tasks: { pack: { output: 1, error: { type: "Broken" } } },
    events: [
      { at: "PT1S", pattern: "workflow.approved" },
      { at: "PT1S", pattern: "order.*" },
    ],
  };

  expect(scenarioProblems(definition, scenario).map(({ path, code }) => [path, code])).toEqual([
    ["/events/0/pattern", "RESERVED_PATTERN"],
    ["/events/1/pattern", "BAD_PATTERN"],
    ["/tasks/pack", "BAD_VALUE"],
  ]);
});

test("an event whose id has come before is a duplicate that does nothing", () => {
  const wait = (stepId: string) => ({ stepId, type: "EVENT_WAIT" as const, eventPattern: "paid" });
  const definition = define({
    steps: [{ ...wait("first"), transitions: { default: "second" } }, wait("second")],
  });
  const paid = (at: string, id: string) => ({ at, id, pattern: "paid" });

  const twice = simulate(definition, { events: [paid("PT1S", "a"), paid("PT2S", "a")] });
  const both = simulate(definition, { events: [paid("PT1S", "a"), paid("PT2S", "b")] });

  expect(twice.instance.waitingFor).toMatchObject([{ stepId: "second" }]);
  expect(twice.events).toEqual([{ id: "a", pattern: "paid", delivered: true }]);
  expect(both.instance.status).toBe("COMPLETED");
});

const rest = { stepId: "rest", type: "DELAY", duration: "PT5S", transitions: { default: "fork" } };
const bothHad = {
  events: [
    { at: "PT1S", pattern: "b" },
    { at: "PT2S", pattern: "a" },
  ],
};

test("waits that open together look back each for itself, as for real", () => {
  const wait = (stepId: string, eventPattern: string, deliver: string) => ({
    name: stepId,
    steps: [
      { stepId, type: "EVENT_WAIT", eventPattern, deliver, lookback: "PT1H", timeout: "PT1H" },
    ],
  });
  const branches = [wait("x", "a", "ALL"), wait("y", "b", "ALL"), wait("z", "a", "ALL")];
  const alone = [wait("x", "a", "ONE"), wait("y", "a", "ONE")];
  const both = [{ eventPattern: "a" }, { eventPattern: "b" }];
  const fork = { stepId: "fork", type: "PARALLEL" };
  const all = {
    stepId: "fork",
    type: "EVENT_WAIT",
    mode: "ALL",
    lookback: "PT1H",
    timeout: "PT1H",
  };
  const statusOf = (step: object) =>
    simulate(define({ steps: [rest, step] }), bothHad).instance.status;

  expect(statusOf({ ...all, events: both })).toBe("COMPLETED");
  expect(statusOf({ ...fork, branches })).toBe("COMPLETED");
  expect(statusOf({ ...fork, branches: alone })).toBe("FAILED");
  expect(statusOf({ ...fork, branches: alone, join: "ANY" })).toBe("COMPLETED");
});

test("a wait has what comes for itself; of waits for all the first by path is served first", () => {
  const wait = (stepId: string, deliver: string) => ({
    stepId,
    type: "EVENT_WAIT",
    eventPattern: "a",
    deliver,
    timeout: "PT1H",
  });
  const outputOf = (deliver: string, join: string) => {
    const branches = [
      { name: "z", steps: [wait("early", deliver)] },
      {
        name: "a",
        steps: [
          { ...rest, duration: "PT1S", transitions: { default: "late" } },
          wait("late", deliver),
        ],
      },
    ];
    const definition = define({ steps: [{ stepId: "fork", type: "PARALLEL", join, branches }] });
    const { output } = simulate(definition, { events: [{ at: "PT2S", pattern: "a" }] }).instance;
    return output === null ? null : Object.keys(output);
  };

  expect(outputOf("ALL", "ANY")).toEqual(["a"]);
  expect(outputOf("ONE", "ANY")).toEqual(["z"]);
  expect(outputOf("ALL", "ALL")).toEqual(["z", "a"]);
  expect(outputOf("ONE", "ALL")).toBeNull();
});

test("any definition can be simulated to an end", () => {
  const ends = new Set<string>();

  fc.assert(
    fc.property(document, (random) => {
      ends.add(simulate(compileDefinition(random, 1), { input: { flag: true } }).outcome);
    }),
    { numRuns: 200 },
  );

  expect(ends).toContain("SETTLED");
  expect([...ends].filter((end) => end === "STEP_LIMIT")).toEqual([]);
});

test("a child is what the scenario says of its step, attempt by attempt", () => {
  const definition = define({
    steps: [
      {
        stepId: "audit",
        type: "SUB_WORKFLOW",
        workflowId: "audit",
        detached: true,
        transitions: { default: "pay" },
      },
      {
        stepId: "pay",
        type: "SUB_WORKFLOW",
        workflowId: "payment",
        timeout: "PT1H",
        retry: { maxAttempts: 3, initialInterval: "PT1M", jitter: "NONE" },
      },
    ],
  });
  const scenario = Scenario.parse({
    tasks: {
      pay: [
        { error: { type: "BankDown" } },
        { duration: "PT2H" },
        { output: { receipt: 1 }, duration: "PT10S" },
      ],
    },
  });
  expect(scenarioProblems(definition, scenario)).toEqual([]);
  expect(scenarioProblems(definition, { tasks: { audit: {} } })).toMatchObject([
    { path: "/tasks/audit", code: "UNKNOWN_STEP" },
  ]);

  const { instance, transcript, unmocked } = simulate(definition, scenario);

  expect(instance).toMatchObject({ status: "COMPLETED", output: { receipt: 1 } });
  expect(instance.steps["pay"]).toMatchObject({ attempts: 3 });
  expect(unmocked).toEqual([]);
  expect(transcript.map(({ at, what }) => `${at.slice(11, 19)} ${what}`)).toEqual([
    "00:00:00 the instance starts",
    "00:00:01 the child of pay fails with BankDown",
    "00:01:01 the retry timer of pay is due",
    "01:01:01 the attempt timer of pay is due",
    "01:02:01 the retry timer of pay is due",
    "01:02:11 the child of pay completes",
  ]);
});

test("coverage counts the transitions of every branch and item", () => {
  const either = (a: string, b: string) => ({
    transitions: { conditions: [{ when: "item === 1", to: a }], default: b },
  });
  const { coverage, instance } = simulate(
    define({
      steps: [
        {
          stepId: "both",
          type: "PARALLEL",
          branches: [
            {
              name: "card",
              steps: [{ stepId: "hold", transitions: { default: "charge" } }, { stepId: "charge" }],
            },
            {
              name: "goods",
              steps: [
                {
                  stepId: "lines",
                  type: "MAP",
                  items: "[1, 2, 3]",
                  steps: [
                    { stepId: "pick", ...either("wrap", "send") },
                    { stepId: "wrap", transitions: { default: "send" } },
                    { stepId: "send", onError: [{ errors: ["*"], to: "wrap" }], maxIterations: 2 },
                  ],
                },
              ],
            },
          ],
          transitions: { default: "after" },
        },
        { stepId: "after" },
      ],
    }),
    Scenario.parse({}),
  );

  expect(instance.status).toBe("COMPLETED");
  expect(coverage.transitions).toEqual([
    { from: "both", to: "after", taken: 1 },
    { from: "hold", to: "charge", taken: 1 },
    { from: "pick", to: "wrap", taken: 1 },
    { from: "pick", to: "send", taken: 2 },
    { from: "wrap", to: "send", taken: 1 },
    { from: "send", to: "wrap", taken: 0 },
  ]);
  expect(coverage.unreached).toEqual([]);
});

test("steps are shown as an instance shows them: items under their paths, and no compensation", () => {
  const definition = define({
    steps: [
      {
        stepId: "ship",
        type: "MAP",
        items: [1, 2],
        steps: [{ stepId: "label" }],
        transitions: { default: "pay" },
      },
      { stepId: "pay", retry: { maxAttempts: 1 } },
    ],
    compensationSteps: [{ stepId: "unlabel", compensationFor: "label", taskId: "unlabel" }],
  });

  const { instance, path } = simulate(definition, {
    tasks: {
      label: { output: "done" },
      pay: { error: { type: "Declined", message: "no" } },
    },
  });

  expect(path).toContain("unlabel#1");
  expect(Object.keys(instance.steps).toSorted()).toEqual([
    "label",
    "pay",
    "ship",
    "ship[0].label",
    "ship[1].label",
  ]);
  expect(instance.steps["label"]).toEqual(instance.steps["ship[1].label"]);
  expect(instance.steps["label"]).toMatchObject({ status: "COMPLETED", output: "done" });
});

test("what is due after it has settled happens too: one that FAILED can still be cancelled", () => {
  const definition = define({
    compensateOnFailure: false,
    steps: [{ stepId: "a", transitions: { default: "b" } }, { stepId: "b" }],
    compensationSteps: [{ stepId: "ua", compensationFor: "a", taskId: "undo" }],
  });
  const late: Scenario = {
    events: [{ at: "PT5S", pattern: "late" }],
    cancel: { at: "PT10S", reason: "abandoned" },
  };
  const tasks = { b: { error: { type: "Boom", retryable: false } } };

  const failed = simulate(definition, { ...late, tasks });
  const completed = simulate(definition, late);

  expect(failed.outcome).toBe("SETTLED");
  expect(failed.instance).toMatchObject({
    status: "CANCELLED",
    cancellation: { reason: "abandoned" },
    compensation: { status: "COMPLETED", plan: ["ua"] },
    completedAt: "2026-01-01T00:00:11.000Z",
  });
  expect(failed.events).toEqual([{ id: "event-1", pattern: "late", delivered: false }]);
  expect(completed.instance.status).toBe("COMPLETED");
  expect(completed.transcript.slice(-2).map(({ what }) => what)).toEqual([
    "event late arrives, and nothing waits for it",
    "a cancel is asked for, and it is COMPLETED already",
  ]);
  expect(simulate(definition, { ...late, tasks, until: "PT9S" }).instance.status).toBe("FAILED");
});

test("a cancel reaches a child, which settles by it instead of what the scenario says", () => {
  const definition = define({
    steps: [
      { stepId: "t", transitions: { default: "s" } },
      { stepId: "s", type: "SUB_WORKFLOW", workflowId: "child" },
    ],
    compensationSteps: [
      { stepId: "undo_t", compensationFor: "t", taskId: "undo" },
      { stepId: "undo_s", compensationFor: "s", taskId: "undo" },
    ],
  });
  const tasks = { t: { duration: "PT0.1S" }, s: { duration: "PT0.9S" } };

  const { instance, transcript } = simulate(definition, { tasks, cancel: { at: "PT0.4S" } });
  const later = simulate(definition, { tasks, cancel: { at: "PT2S" } });

  expect(instance).toMatchObject({
    status: "CANCELLED",
    steps: { s: { status: "CANCELLED" } },
    compensation: { plan: ["undo_t"] },
  });
  expect(transcript.map(({ what }) => what)).toContain("the child of s is cancelled");
  expect(later.instance.status).toBe("COMPLETED");
});

test("a task is silent unless its mock says otherwise, and a worker is always at hand", () => {
  const definition = define({
    retry: { maxAttempts: 1 },
    steps: [{ stepId: "a", heartbeatTimeout: "PT30S", timeout: "PT1H", scheduleTimeout: "PT0S" }],
  });
  const run = (mock: object) => simulate(definition, Scenario.parse({ tasks: { a: mock } }));

  const silent = run({ duration: "PT31S" });

  expect(silent.instance).toMatchObject({
    status: "FAILED",
    error: { type: "TIMEOUT", message: expect.stringContaining("heartbeatTimeout") },
    completedAt: "2026-01-01T00:00:30.000Z",
  });
  expect(run({ duration: "PT30S" }).instance.status).toBe("COMPLETED");
  expect(run({ duration: "PT31S", heartbeats: true }).instance.status).toBe("COMPLETED");
  expect(run({ duration: "PT2H", heartbeats: true }).instance).toMatchObject({
    completedAt: "2026-01-01T01:00:00.000Z",
  });
});
