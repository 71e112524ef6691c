import { describe, expect, test } from "vitest";
import { define } from "../support/definitions.ts";
import { simulate } from "../support/simulation.ts";
import type { Simulation } from "../support/simulation.ts";

/** Undoing what was done in branches and items (CONTRACT 1 and 2, PROMISES P9). */

const then = (next: string) => ({ transitions: { default: next } });
const halt = { stepId: "halt", type: "EVENT_WAIT", eventPattern: "go" };

/** The step under this very path succeeds. */
function succeedAt(simulation: Simulation, path: string, output: string | number = "done"): void {
  simulation.send({ kind: "stepSucceeded", path, iteration: 1, attempt: 1, output });
}

/** Cancels, lets every compensation step succeed, and answers what each undid and with which input. */
function undone(simulation: Simulation): readonly (readonly [string | null, unknown])[] {
  const ran: (readonly [string | null, unknown])[] = [];
  let decision = simulation.cancel();
  for (;;) {
    const [begun] = decision.inserts.filter(({ compensates }) => compensates !== null);
    if (begun === undefined) return ran;
    ran.push([begun.compensates, begun.input]);
    decision = simulation.succeed(begun.stepId);
  }
}

describe("an execution in an item is undone with its own item and index", () => {
  test("though the MAP was entered once too often, and had no items then", () => {
    const simulation = simulate(
      define({
        steps: [
          {
            stepId: "ship",
            type: "MAP",
            items: "['a']",
            maxIterations: 1,
            steps: [{ stepId: "label" }],
            transitions: { conditions: [{ when: "variables.again", to: "ship" }], default: "done" },
          },
          { stepId: "done", type: "END", outcome: "COMPLETED" },
        ],
        variables: { again: true },
        compensationSteps: [
          {
            stepId: "tear",
            compensationFor: "label",
            input: { of: "${ item }", at: "${ index }" },
          },
        ],
      }),
    );
    simulation.start();
    const { inserts } = simulation.succeed("label");

    expect(simulation.snapshot.error?.kind).toBe("LIMIT");
    expect(inserts).toMatchObject([
      { path: "ship", status: "FAILED" },
      { compensates: "ship[0].label#1", input: { of: "a", at: 0 } },
    ]);
  });

  test("by its input and its condition, latest completion first", () => {
    const simulation = simulate(
      define({
        steps: [
          {
            stepId: "ship",
            type: "MAP",
            items: "['a', 'b', 'c']",
            itemName: "parcel",
            steps: [{ stepId: "label" }],
            ...then("halt"),
          },
          halt,
        ],
        compensationSteps: [
          {
            stepId: "tear",
            compensationFor: "label",
            condition: "item !== 'b'",
            input: { of: "${ parcel }", at: "${ index }", label: "${ steps.label.output }" },
          },
        ],
      }),
    );
    simulation.start();
    for (const at of [2, 0, 1]) succeedAt(simulation, `ship[${at}].label`, `label ${at}`);

    expect(undone(simulation)).toEqual([
      ["ship[0].label#1", { of: "a", at: 0, label: "label 0" }],
      ["ship[2].label#1", { of: "c", at: 2, label: "label 2" }],
    ]);
  });

  test("in a MAP in a PARALLEL in a MAP, those of both", () => {
    const simulation = simulate(
      define({
        steps: [
          {
            stepId: "orders",
            type: "MAP",
            items: "[[1, 2], [3]]",
            itemName: "order",
            steps: [
              {
                stepId: "both",
                type: "PARALLEL",
                branches: [
                  {
                    name: "goods",
                    steps: [
                      {
                        stepId: "lines",
                        type: "MAP",
                        items: "order",
                        steps: [{ stepId: "book" }],
                      },
                    ],
                  },
                ],
              },
            ],
            ...then("halt"),
          },
          halt,
        ],
        compensationSteps: [
          {
            stepId: "unbook",
            compensationFor: "book",
            input: { item: "${ item }", at: "${ index }", order: "${ order }" },
          },
        ],
      }),
    );
    simulation.start();
    for (const path of ["orders[1].both.goods.lines[0]", "orders[0].both.goods.lines[1]"]) {
      succeedAt(simulation, `${path}.book`);
    }

    expect(undone(simulation)).toEqual([
      ["orders[0].both.goods.lines[1].book#1", { item: 2, at: 1, order: [1, 2] }],
      ["orders[1].both.goods.lines[0].book#1", { item: 3, at: 0, order: [3] }],
    ]);
  });

  test("of the pass in which it ran, where the MAP and the step within it are loops", () => {
    const simulation = simulate(
      define({
        variables: { round: 0 },
        steps: [
          {
            stepId: "next",
            type: "SET",
            variables: { round: "${ variables.round + 1 }" },
            ...then("ship"),
          },
          {
            stepId: "ship",
            type: "MAP",
            items: "variables.round === 1 ? ['a'] : ['b']",
            steps: [
              {
                stepId: "label",
                transitions: {
                  conditions: [{ when: "steps.label.output === 'again'", to: "label" }],
                },
              },
            ],
            transitions: {
              conditions: [{ when: "variables.round < 2", to: "next" }],
              default: "halt",
            },
          },
          halt,
        ],
        compensationSteps: [
          { stepId: "tear", compensationFor: "label", input: "item + ' ' + steps.label.output" },
        ],
      }),
    );
    simulation.start();
    for (const output of ["again", "1st", "again", "2nd"]) simulation.succeed("label", output);

    expect(undone(simulation)).toEqual([
      ["ship[0].label#4", "b 2nd"],
      ["ship[0].label#3", "b again"],
      ["ship[0].label#2", "a 1st"],
      ["ship[0].label#1", "a again"],
    ]);
  });
});

describe("the siblings of a branch that failed", () => {
  const forked = () =>
    simulate(
      define({
        retry: { maxAttempts: 1 },
        steps: [
          {
            stepId: "fork",
            type: "PARALLEL",
            branches: [
              { name: "a", steps: [{ stepId: "first", ...then("second") }, { stepId: "second" }] },
              { name: "b", steps: [{ stepId: "charge" }] },
              { name: "c", steps: [{ stepId: "mail" }] },
            ],
          },
        ],
        compensationSteps: [
          { stepId: "undo_first", compensationFor: "first", retry: { maxAttempts: 2 } },
          { stepId: "refund", compensationFor: "charge" },
        ],
      }),
    );

  test("in flight with a compensation step: its success counts and is undone first", () => {
    const simulation = forked();
    simulation.start();
    simulation.succeed("first");
    simulation.claim("charge");
    simulation.claim("mail");

    simulation.fail("second");
    expect(simulation.statuses()).toMatchObject({
      fork: "FAILED",
      charge: "RUNNING",
      mail: "CANCELLED",
    });
    expect(simulation.snapshot).toMatchObject({
      status: "FAILED",
      compensation: { frozen: false, plan: [] },
    });
    simulation.succeed("charge");

    expect(simulation.snapshot.compensation).toMatchObject({
      plan: ["refund", "undo_first"],
      targets: ["fork.b.charge#1", "fork.a.first#1"],
    });
  });

  test("that stays silent for its grace: what was done is undone, and it is named", () => {
    const simulation = forked();
    simulation.start();
    simulation.succeed("first");
    simulation.claim("charge");
    simulation.fail("second");

    simulation.elapse("PT30S");
    simulation.fail("undo_first");
    expect(simulation.row("undo_first")?.status).toBe("RETRYING");
    simulation.elapse("PT10S");
    simulation.succeed("undo_first");

    expect(simulation.snapshot.compensation).toMatchObject({
      status: "COMPLETED",
      plan: ["undo_first"],
      completed: ["undo_first"],
      uncertain: ["fork.b.charge"],
    });
  });
});

test("a compensation step that times out is retried, then recorded, and the next one runs", () => {
  const simulation = simulate(
    define({
      steps: [
        {
          stepId: "ship",
          type: "MAP",
          items: "[1, 2]",
          steps: [{ stepId: "label" }],
          ...then("halt"),
        },
        halt,
      ],
      compensationSteps: [
        {
          stepId: "tear",
          compensationFor: "label",
          timeout: "PT5S",
          retry: { maxAttempts: 2, initialInterval: "PT1S", jitter: "NONE" },
        },
      ],
    }),
  );
  simulation.start();
  succeedAt(simulation, "ship[0].label");
  succeedAt(simulation, "ship[1].label");

  const { inserts } = simulation.cancel();
  expect(inserts).toMatchObject([{ stepId: "tear", timeoutMs: 5_000 }]);
  simulation.timeOut("tear");
  simulation.elapse("PT1S");
  simulation.timeOut("tear");
  simulation.succeed("tear");

  expect(simulation.snapshot.compensation).toMatchObject({
    status: "COMPLETED_WITH_ERRORS",
    plan: ["tear", "tear"],
    targets: ["ship[1].label#1", "ship[0].label#1"],
    completed: ["tear"],
    failed: [{ stepId: "tear", error: { kind: "TIMEOUT", attempt: 2 } }],
  });
});
