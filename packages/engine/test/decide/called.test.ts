import { expect, test } from "vitest";
import { checkConsistency } from "../../src/consistency/check.ts";
import { previewCompensation } from "../../src/preview-compensation.ts";
import { readsOf } from "../../src/fold.ts";
import { child, failed, leadingTo } from "../support/children.ts";
import { define } from "../support/definitions.ts";
import { evidenceOf } from "../support/evidence.ts";
import { simulate } from "../support/simulation.ts";
import type { Simulation } from "../support/simulation.ts";

// Tasks, queues and workflows that a step names by expressions.

const dispatched = { kind: "dispatch", taskId: "charge_card", queue: "eu" };
const twice = { maxAttempts: 2, initialInterval: "PT0S", jitter: "NONE" };

test("a task and its queue are those that the expressions come to when the step is entered, retries included", () => {
  const simulation = simulate(
    define({
      variables: { provider: "card" },
      steps: [
        {
          stepId: "fork",
          type: "PARALLEL",
          branches: [
            {
              name: "pay",
              steps: [
                {
                  stepId: "charge",
                  taskId: "charge_${ variables.provider }",
                  queue: "${ input.region }",
                  retry: twice,
                },
              ],
            },
            {
              name: "change",
              steps: [
                { stepId: "wait", ...leadingTo("other") },
                { stepId: "other", type: "SET", variables: { provider: "wire" } },
              ],
            },
          ],
        },
      ],
    }),
    { region: "eu" },
  );

  const { inserts, commands } = simulation.start();
  simulation.succeed("wait");
  const again = simulation.fail("charge");

  expect(inserts).toContainEqual(
    expect.objectContaining({ stepId: "charge", taskId: "charge_card", queue: "eu" }),
  );
  expect(commands).toContainEqual(expect.objectContaining(dispatched));
  expect(simulation.snapshot.variables).toEqual({ provider: "wire" });
  expect(again.commands).toContainEqual(expect.objectContaining({ ...dispatched, attempt: 2 }));
  expectConsistent(simulation);
});

test("each pass of a loop, and each item of a MAP, calls its own", () => {
  const simulation = simulate(
    define({
      steps: [
        {
          stepId: "each",
          type: "MAP",
          items: "${ input.regions }",
          itemName: "region",
          steps: [{ stepId: "ship", taskId: "ship_${ region }_${ index }" }],
        },
      ],
    }),
    { regions: ["eu", "us"] },
  );

  const { inserts } = simulation.start();

  const tasks = inserts.flatMap(({ taskId }) => taskId ?? []);
  expect(tasks).toEqual(["ship_eu_0", "ship_us_1"]);
  expectConsistent(simulation);
});

test("an id that is none goes through onError", () => {
  const simulation = simulate(
    define({
      steps: [
        {
          stepId: "call",
          taskId: "${ input.nothing }",
          onError: [{ errors: ["EXPRESSION"], to: "tell" }],
        },
        { stepId: "tell" },
      ],
    }),
  );

  const { inserts } = simulation.start();

  expect(simulation.statuses()).toEqual({ call: "FAILED", tell: "PENDING" });
  expect(inserts[0]?.error).toMatchObject({
    kind: "EXPRESSION",
    message: expect.stringContaining("the taskId must be a text, not undefined"),
  });
});

test("a child is of the workflow that the expression came to, each time that it is tried", () => {
  const simulation = simulate(
    define({ steps: [child("pay", { workflowId: "pay_${ input.by }", retry: twice })] }),
    { by: "card" },
  );

  const first = simulation.start();
  expectConsistent(simulation);
  simulation.endChild("pay", failed);
  const [second] = simulation.elapse("PT1S");
  simulation.endChild("pay", failed);

  const start = { kind: "startChild", workflowId: "pay_card" };
  expect(first.commands).toContainEqual(expect.objectContaining(start));
  expect(second?.decision.commands).toContainEqual(expect.objectContaining(start));
  expect(simulation.snapshot.error?.message).toContain('workflow "pay_card"');
  expect(simulation.snapshot.error?.details).toMatchObject({ workflowId: "pay_card" });
});

test("what undoes a step is the task that its expression comes to, which the plan shows", () => {
  const simulation = simulate(
    define({
      steps: [
        { stepId: "a", ...leadingTo("w") },
        { stepId: "w", type: "EVENT_WAIT", eventPattern: "go" },
      ],
      compensationSteps: [
        { stepId: "undo", compensationFor: "a", taskId: "undo_${ steps.a.output.how }" },
      ],
    }),
  );
  simulation.start();
  simulation.succeed("a", { how: "refund" });

  const plan = previewOf(simulation);
  const { inserts } = simulation.cancel();

  expect(plan).toMatchObject({ steps: [{ stepId: "undo", taskId: "undo_refund", error: null }] });
  expect(inserts).toMatchObject([{ stepId: "undo", taskId: "undo_refund", queue: "default" }]);
  expectConsistent(simulation);
});

test("one that cannot be told is recorded as a failed undoing, and the others go on", () => {
  const simulation = simulate(
    define({
      steps: [
        { stepId: "a", ...leadingTo("b") },
        { stepId: "b", ...leadingTo("w") },
        { stepId: "w", type: "EVENT_WAIT", eventPattern: "go" },
      ],
      compensationSteps: [
        { stepId: "undo_a", compensationFor: "a" },
        { stepId: "undo_b", compensationFor: "b", taskId: "${ steps.b.output.how }" },
      ],
    }),
  );
  simulation.start();
  simulation.succeed("a");
  simulation.succeed("b", {});

  const plan = previewOf(simulation);
  simulation.cancel();
  simulation.succeed("undo_a");

  expect(plan).toMatchObject({
    steps: [
      { stepId: "undo_b", taskId: undefined, error: { kind: "EXPRESSION" } },
      { stepId: "undo_a", taskId: "undo_a_task", error: null },
    ],
  });
  expect(simulation.snapshot.compensation).toMatchObject({
    status: "COMPLETED_WITH_ERRORS",
    completed: ["undo_a"],
    failed: [{ stepId: "undo_b", error: { kind: "EXPRESSION" } }],
  });
});

function previewOf({ definition, instance, now }: Simulation) {
  const options = { reason: null, actor: "user:ada", maxInputs: 500 };
  return previewCompensation(definition, instance.snapshot, readsOf(instance), now, options);
}

/** Whatever is stored is what a replay of the history says. */
function expectConsistent({ definition, instance, timers, waits, history, now }: Simulation) {
  const children = new Set(
    Object.values(instance.snapshot.live).flatMap(({ child: id }) => id ?? []),
  );
  const stored = { instance, timers, waits, children, held: new Set<string>() };
  expect(checkConsistency(evidenceOf(definition, stored, history, now))).toEqual([]);
}
