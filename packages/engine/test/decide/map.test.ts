import { describe, expect, test } from "vitest";
import { decide, isNeeds } from "../../src/decide/decide.ts";
import { createSnapshot } from "../../src/decide/start.ts";
import type { NewInstance } from "../../src/decide/start.ts";
import type { Definition } from "../../src/definition/definition.ts";
import type { Snapshot } from "../../src/state/snapshot.ts";
import { defaultRetryPolicy } from "../../src/retry.ts";
import { encodeFrontier } from "../../src/state/codec.ts";
import type { Decision } from "../../src/state/decision.ts";
import { noReads } from "../../src/state/reads.ts";
import type { Signal } from "../../src/state/signal.ts";
import { define } from "../support/definitions.ts";
import { leadingTo } from "../support/children.ts";
import { noon, simulate } from "../support/simulation.ts";
import type { Simulation } from "../support/simulation.ts";

const map = (items: unknown, steps: object[], more: object = {}) => ({
  stepId: "ship",
  type: "MAP",
  items,
  steps,
  ...more,
});
const label = { stepId: "label", input: { item: "${ item }", at: "${ index }" } };

/** The step of one item, taken by a worker, ends. */
function settle(
  simulation: Simulation,
  path: string,
  output: string | number | undefined,
): Decision {
  const execution = { path, iteration: 1, attempt: 1 };
  if (output !== undefined) {
    return simulation.send({ kind: "stepSucceeded", ...execution, output });
  }
  const failure = { type: "Torn", message: "it tore", details: null, retryable: false };
  const retry = {
    maxAttempts: 1,
    initialIntervalMs: 0,
    backoffCoefficient: 1,
    maxIntervalMs: 0,
    jitter: "NONE",
    nonRetryableErrors: [],
    onExhausted: "FAIL",
  } as const;
  return simulation.send({ kind: "stepFailed", ...execution, failure, retry });
}

const active = ({ snapshot }: Simulation) =>
  Object.keys(snapshot.live).filter((key) => key.includes("["));

describe("a MAP", () => {
  test("runs its steps for every item, and its output is in their order", () => {
    const simulation = simulate(define({ steps: [map("input.lines", [label])] }), {
      lines: ["a", "b", "c"],
    });

    const { inserts } = simulation.start();
    expect(inserts.slice(1).map(({ path, input }) => [path, input])).toEqual([
      ["ship[0].label", { item: "a", at: 0 }],
      ["ship[1].label", { item: "b", at: 1 }],
      ["ship[2].label", { item: "c", at: 2 }],
    ]);
    for (const at of [2, 0, 1]) settle(simulation, `ship[${at}].label`, `label ${at}`);

    expect(simulation.snapshot).toMatchObject({
      status: "COMPLETED",
      output: ["label 0", "label 1", "label 2"],
      completedSteps: 4,
      begunItems: 3,
    });
  });

  test("keeps no more items at work than maxConcurrency", () => {
    const simulation = simulate(
      define({ steps: [map("[1, 2, 3, 4]", [label], { maxConcurrency: 2 })] }),
    );
    simulation.start();
    expect(active(simulation)).toEqual(["ship[0].label#1", "ship[1].label#1"]);

    settle(simulation, "ship[1].label", "x");

    expect(active(simulation)).toEqual(["ship[0].label#1", "ship[2].label#1"]);
  });

  test("a failed item fails it; those that are tolerated are null", () => {
    const items = [map("[1, 2, 3]", [label], { tolerate: 1 })];
    const tolerated = simulate(define({ steps: items }));
    tolerated.start();
    settle(tolerated, "ship[1].label", undefined);
    settle(tolerated, "ship[0].label", "a");
    settle(tolerated, "ship[2].label", "c");
    expect(tolerated.snapshot).toMatchObject({ status: "COMPLETED", output: ["a", null, "c"] });

    const failed = simulate(define({ steps: items }));
    failed.start();
    settle(failed, "ship[1].label", undefined);
    settle(failed, "ship[0].label", undefined);
    expect(failed.snapshot).toMatchObject({ status: "FAILED", error: { type: "Torn" }, live: {} });
    expect(failed.row("ship")?.status).toBe("FAILED");
  });

  test("without items it is done at once; what is no array is an error", () => {
    const definition = define({ steps: [map("input.lines", [label])] });
    const empty = simulate(definition, { lines: [] });
    empty.start();
    expect(empty.snapshot).toMatchObject({ status: "COMPLETED", output: [] });

    const wrong = simulate(definition, { lines: "x" });
    wrong.start();
    expect(wrong.snapshot).toMatchObject({ status: "FAILED", error: { kind: "EXPRESSION" } });
    const many = simulate(definition, { lines: Array.from({ length: 10_001 }, () => 0) });
    many.start();
    expect(many.snapshot.error?.message).toContain("at most 10000 items");
  });

  test("an item of several steps has the output of the last; each sees its own item's steps", () => {
    const simulation = simulate(
      define({
        steps: [
          map(
            "['a', 'b']",
            [
              { stepId: "pack", transitions: { default: "label" } },
              { stepId: "label", input: { packed: "${ steps.pack.output }", line: "${ line }" } },
            ],
            { itemName: "line" },
          ),
        ],
      }),
    );
    simulation.start();
    settle(simulation, "ship[1].pack", "packed b");
    settle(simulation, "ship[0].pack", "packed a");

    expect(simulation.row("label")?.path).toBe("ship[0].label");
    settle(simulation, "ship[0].label", 0);
    settle(simulation, "ship[1].label", 1);

    expect(simulation.snapshot.output).toEqual([0, 1]);
  });

  test("an event finds the items whose condition it satisfies", () => {
    const simulation = simulate(
      define({
        steps: [
          map("['a', 'b']", [
            {
              stepId: "w",
              type: "EVENT_WAIT",
              eventPattern: "scanned",
              eventCondition: "event.payload.code === item",
            },
          ]),
        ],
      }),
    );
    simulation.start();
    expect([...simulation.waits.values()].map(({ key }) => key)).toEqual([["a"], ["b"]]);

    simulation.publish("scanned", { code: "b" });
    expect([...simulation.waits.keys()]).toEqual(["ship[0].w#1"]);
    simulation.publish("scanned", { code: "a" });
    expect(simulation.snapshot.status).toBe("COMPLETED");
  });

  test("in a MAP in a PARALLEL, both items are at hand, and paths say where each step is", () => {
    const simulation = simulate(
      define({
        steps: [
          {
            stepId: "fork",
            type: "PARALLEL",
            branches: [
              {
                name: "goods",
                steps: [
                  {
                    stepId: "lines",
                    type: "MAP",
                    items: "[{ id: 'l', parcels: [7, 8] }]",
                    itemName: "line",
                    steps: [
                      {
                        stepId: "parcels",
                        type: "MAP",
                        items: "line.parcels",
                        steps: [{ stepId: "print", input: "[line.id, item, index]" }],
                      },
                    ],
                  },
                ],
              },
            ],
          },
        ],
      }),
    );

    const { inserts } = simulation.start();
    expect(inserts.slice(3).map(({ path, input }) => [path, input])).toEqual([
      ["fork.goods.lines[0].parcels[0].print", ["l", 7, 0]],
      ["fork.goods.lines[0].parcels[1].print", ["l", 8, 1]],
    ]);
    settle(simulation, "fork.goods.lines[0].parcels[1].print", "y");
    settle(simulation, "fork.goods.lines[0].parcels[0].print", "x");

    expect(simulation.snapshot.output).toEqual({ goods: [["x", "y"]] });
  });

  test("an output that is too large as a whole fails it", () => {
    const definition = define({ steps: [map("[1, 2, 3]", [label])] });
    const simulation = simulate(definition);
    simulation.start();

    for (const at of [0, 1, 2]) settle(simulation, `ship[${at}].label`, "x".repeat(4_000_000));

    expect(simulation.snapshot).toMatchObject({
      status: "FAILED",
      error: { kind: "LIMIT", type: "OUTPUT_TOO_LARGE" },
    });
  });

  test("in a loop it counts only its own pass", () => {
    const simulation = simulate(
      define({
        variables: { n: 0 },
        steps: [
          map("variables.n === 0 ? [1, 2] : [3]", [
            {
              stepId: "set",
              type: "SET",
              variables: { n: "${ variables.n + 1 }" },
              transitions: { default: "work" },
            },
            { stepId: "work", condition: "item < 3" },
          ]),
        ].map((step) => ({
          ...step,
          transitions: { conditions: [{ when: "variables.n < 3", to: "ship" }] },
        })),
      }),
    );
    simulation.start();
    settle(simulation, "ship[0].work", "a");
    settle(simulation, "ship[1].work", "b");

    expect(simulation.snapshot).toMatchObject({ status: "COMPLETED", output: [null] });
    expect(simulation.row("set")).toMatchObject({ path: "ship[0].set", iteration: 2 });
  });
});

test("of ten thousand items the snapshot holds those at work, and little else", () => {
  const definition = define({
    steps: [map("input.lines", [label], { maxConcurrency: 20, tolerate: 10_000 })],
  });
  const count = 10_000;
  const lines = Array.from({ length: count }, (_, at) => at);
  let { snapshot } = simulate(definition, { lines });
  const reads = { ...noReads, inputs: new Map([["ship#1", lines]]) };
  const send = (signal: Signal) => {
    const decision = decide(definition, snapshot, [signal], reads, noon);
    if (isNeeds(decision)) return decision;
    snapshot = decision.snapshot;
    return undefined;
  };
  send({ kind: "started" });

  let largest = 0;
  for (let at = 0; at < count - 1; at++) {
    const execution = { path: `ship[${at}].label`, iteration: 1, attempt: 1 };
    const failure = { type: "Torn", message: "it tore", details: null, retryable: false };
    send(
      at % 2
        ? { kind: "stepSucceeded", ...execution, output: at }
        : { kind: "stepFailed", ...execution, failure, retry: defaultRetryPolicy },
    );
    // Not after each, which would take longer than the decisions.
    if (at % 7 > 0) continue;
    largest = Math.max(largest, JSON.stringify(encodeFrontier(snapshot)).length);
  }
  const path = `ship[${count - 1}].label`;
  const needs = send({ kind: "stepSucceeded", path, iteration: 1, attempt: 1, output: 0 });

  expect(largest).toBeLessThan(5_000);
  expect(needs).toEqual({
    needs: [{ kind: "items", path: "ship", iteration: 1, after: 0, stepIds: ["label"] }],
  });
});

describe("progress", () => {
  const progress = ({ snapshot }: Simulation) => ({
    completed: snapshot.completedSteps,
    items: snapshot.begunItems,
  });

  test("counts the items of a MAP as they settle, failed ones too, and no steps inside them", () => {
    const steps = [{ ...label, transitions: { default: "pack" } }, { stepId: "pack" }];
    const simulation = simulate(define({ steps: [map("[1, 2]", steps, { tolerate: 1 })] }));
    simulation.start();
    expect(progress(simulation)).toEqual({ completed: 0, items: 2 });

    settle(simulation, "ship[0].label", "a");
    expect(progress(simulation)).toEqual({ completed: 0, items: 2 });
    settle(simulation, "ship[0].pack", "b");
    expect(progress(simulation)).toEqual({ completed: 1, items: 2 });
    settle(simulation, "ship[1].label", undefined);

    expect(progress(simulation)).toEqual({ completed: 3, items: 2 });
  });

  test("is not of items that nobody works on any more, where a handler leads to the MAP again", () => {
    const ship = map("[1, 2, 3]", [{ ...label, retry: { maxAttempts: 1 } }], {
      onError: [{ errors: ["*"], to: "again" }],
    });
    const simulation = simulate(
      define({
        steps: [ship, { stepId: "again", type: "SET", variables: { n: 1 }, ...leadingTo("ship") }],
      }),
    );
    simulation.start();
    settle(simulation, "ship[1].label", "a");
    settle(simulation, "ship[0].label", undefined);
    expect(progress(simulation)).toEqual({ completed: 3, items: 5 });

    for (const at of [0, 1, 2]) {
      const execution = { path: `ship[${at}].label`, iteration: 2, attempt: 1 };
      simulation.send({ kind: "stepSucceeded", ...execution, output: at });
    }

    expect(simulation.snapshot.status).toBe("COMPLETED");
    expect(progress(simulation)).toEqual({ completed: 7, items: 5 });
  });

  test("counts a step once, in whichever pass it completes first", () => {
    const simulation = simulate(
      define({
        retry: { maxAttempts: 1 },
        variables: { n: 0 },
        steps: [
          {
            stepId: "work",
            onError: [{ errors: ["*"], to: "fork" }],
            transitions: { default: "fork" },
          },
          {
            stepId: "fork",
            type: "PARALLEL",
            branches: [{ name: "a", steps: [{ stepId: "note" }] }],
            transitions: { default: "count" },
          },
          {
            stepId: "count",
            type: "SET",
            variables: { n: "${ variables.n + 1 }" },
            transitions: { conditions: [{ when: "variables.n < 3", to: "work" }] },
          },
        ],
      }),
    );
    simulation.start();

    simulation.fail("work");
    simulation.succeed("note");
    expect(progress(simulation)).toEqual({ completed: 3, items: 0 });
    for (let pass = 0; pass < 2; pass++) {
      simulation.succeed("work");
      simulation.succeed("note");
    }

    expect(simulation.snapshot.status).toBe("COMPLETED");
    expect(progress(simulation)).toEqual({ completed: 4, items: 0 });
  });

  test("the row of a MAP says what came of its items, however it ended", () => {
    const ending = (end: (simulation: Simulation) => Decision) => {
      const simulation = simulate(
        define({ steps: [map("[1, 2, 3]", [label], { maxConcurrency: 2, tolerate: 1 })] }),
      );
      simulation.start();
      return end(simulation).updates.find(({ path }) => path === "ship");
    };
    const joined = ending((simulation) => {
      settle(simulation, "ship[0].label", "a");
      settle(simulation, "ship[1].label", undefined);
      return settle(simulation, "ship[2].label", "c");
    });
    expect(joined).toMatchObject({
      status: "COMPLETED",
      items: { count: 3, completed: 2, failed: 1 },
    });

    const failed = ending((simulation) => {
      settle(simulation, "ship[0].label", undefined);
      return settle(simulation, "ship[1].label", undefined);
    });
    expect(failed).toMatchObject({
      status: "FAILED",
      items: { count: 3, completed: 0, failed: 2 },
    });

    const cancelled = ending((simulation) => {
      settle(simulation, "ship[0].label", "a");
      return simulation.cancel();
    });
    expect(cancelled).toMatchObject({
      status: "CANCELLED",
      items: { count: 3, completed: 1, failed: 0 },
    });
  });
});

test("MAPs inside MAPs do not have all of their items at work at once, and each has one at least", () => {
  const inner = { stepId: "inner", type: "MAP", items: "range(0, 500)", steps: [label] };
  const middle = { stepId: "middle", type: "MAP", items: "range(0, 500)", steps: [inner] };
  const snapshot = startOf(define({ steps: [map("range(0, 500)", [middle])] }));

  expect(Object.keys(snapshot.live).length).toBeLessThan(6_000);
  const begun = Object.values(snapshot.live).flatMap(({ items }) => items?.next ?? []);
  expect(Math.min(...begun)).toBeGreaterThan(0);
});

/** As the decision leaves it with which the instance begins. */
function startOf(definition: Definition): Snapshot {
  const decision = decide(
    definition,
    createSnapshot(definition, newInstance),
    [{ kind: "started" }],
    noReads,
    noon,
  );
  if (isNeeds(decision)) throw new Error("a start reads no rows");
  return decision.snapshot;
}

const newInstance: NewInstance = {
  id: "01900000-0000-7000-8000-000000000000",
  tenantId: "default",
  input: {},
  correlationId: null,
  userId: null,
  priority: null,
  startEventId: null,
  createdAt: noon,
};
