import { readFileSync } from "node:fs";
import type { WorkflowDefinition } from "@millrace/contract";
import { describe, expect, test } from "vitest";
import { compileDefinition } from "../../src/definition/compile.ts";
import type { Definition, Step } from "../../src/definition/definition.ts";
import { validateDefinition } from "../../src/definition/validate.ts";
import { DefinitionError } from "../../src/errors.ts";

const fixtures = new URL("../../../../test/fixtures/definitions/", import.meta.url);

function compiled(document: unknown, version = 1): Definition {
  const { document: valid, problems } = validateDefinition(document);
  if (valid === undefined) throw new Error(JSON.stringify(problems));
  return compileDefinition(valid, version);
}

function fixture(name: string): Definition {
  return compiled(JSON.parse(readFileSync(new URL(`${name}.json`, fixtures), "utf8")));
}

function stepOf<T extends Step["type"]>(
  definition: Definition,
  stepId: string,
  type: T,
): Extract<Step, { type: T }> {
  const step = definition.steps.get(stepId);
  if (step?.type !== type) throw new Error(`${stepId} is no ${type}`);
  return step as Extract<Step, { type: T }>;
}

const task = (stepId: string, next?: string, more: object = {}) => ({
  stepId,
  type: "TASK",
  taskId: "noop",
  ...(next !== undefined && { transitions: { default: next } }),
  ...more,
});

describe("order_processing", () => {
  const definition = fixture("order_processing");

  test("starts at its first step and keeps the order of the others", () => {
    expect(definition).toMatchObject({
      id: "order_processing",
      version: 1,
      start: "reserve_inventory",
      size: 10,
      priority: 0,
      variables: {},
      compensateOnFailure: true,
      childrenCompensate: true,
      output: undefined,
      timeout: undefined,
      retry: {},
    });
    expect([...definition.steps.keys()][2]).toBe("process_payment");
  });

  test("knows for each step which rows a decision that settles it reads", () => {
    const reads = Object.fromEntries(
      [...definition.steps.values()].map(({ stepId, reads: read }) => [stepId, read]),
    );

    expect(reads).toEqual({
      reserve_inventory: [],
      wait_for_payment: [],
      process_payment: ["reserve_inventory"],
      fraud_check: ["reserve_inventory"],
      ship_order: [],
      confirm_order: [],
      handle_payment_timeout: [],
      notify_declined: [],
      declined: [],
      give_up: [],
    });
    expect(definition.compensationFor.get("process_payment")?.reads).toEqual(["process_payment"]);
    expect(definition.compensationSteps.get("cancel_shipment")?.reads).toEqual(["ship_order"]);
  });

  test("has no step that repeats", () => {
    expect([...definition.steps.values()].filter(({ repeats }) => repeats)).toEqual([]);
  });

  test("has a fixed key for its wait and for each of its triggers", () => {
    const wait = stepOf(definition, "wait_for_payment", "EVENT_WAIT");
    const keyed = [...wait.events, ...definition.cancellationTriggers];

    expect(keyed).toHaveLength(3);
    for (const { conjuncts, keyIsFixed } of keyed) {
      expect(conjuncts.map(({ eventPath }) => eventPath)).toEqual([["payload", "orderId"]]);
      expect(conjuncts[0]?.value.source).toBe("workflow.input.orderId");
      expect(keyIsFixed).toBe(true);
    }
  });

  test("waits with a timeout from its input, a mapping and a lookback", () => {
    const wait = stepOf(definition, "wait_for_payment", "EVENT_WAIT");

    expect(wait.eventTimeout?.timeoutHandlerStepId).toBe("handle_payment_timeout");
    expect(wait.eventTimeout?.duration).toHaveProperty("template");
    expect(wait.eventPayloadMapping).toEqual([
      ["paymentId", ["id"]],
      ["paymentAmount", ["amount"]],
    ]);
    expect(wait.lookback).toBe("instance");
    expect(wait.deliver).toBe("ALL");
  });

  test("fills in what its tasks leave out, and only the retry fields that are given", () => {
    expect(stepOf(definition, "reserve_inventory", "TASK")).toMatchObject({
      taskId: "inventory_reservation_task",
      queue: "default",
      priority: undefined,
      maxIterations: 10_000,
      timeout: undefined,
      retry: { maxAttempts: 3, initialIntervalMs: 200, backoffCoefficient: 2, jitter: "FULL" },
    });
    expect(stepOf(definition, "reserve_inventory", "TASK").retry).not.toHaveProperty(
      "maxIntervalMs",
    );
    expect(stepOf(definition, "process_payment", "TASK")).toMatchObject({
      timeout: { duration: { months: 0, ms: 30_000 } },
      onError: [{ errors: ["PaymentDeclined"], to: "notify_declined" }],
    });
  });

  test("pairs compensation steps with the steps that they undo", () => {
    expect(definition.compensationFor.get("ship_order")).toBe(
      definition.compensationSteps.get("cancel_shipment"),
    );
    expect(definition.compensationSteps.get("release_inventory")).toMatchObject({
      input: undefined,
      condition: undefined,
      retry: {},
      queue: "default",
    });
  });
});

describe("the choices of a CHOICE step", () => {
  const { steps } = compiled({
    id: "choosing",
    steps: [
      {
        stepId: "pick",
        type: "CHOICE",
        choices: [
          { when: "input.amount > 10", to: "large" },
          { when: "input.amount > 5", to: "middling" },
        ],
        default: "small",
      },
      ...["large", "middling", "small"].map((stepId) => task(stepId)),
    ],
  });

  test("are its transitions", () => {
    const transitions = steps.get("pick")?.transitions;

    expect(transitions?.conditions.map(({ to }) => to)).toEqual(["large", "middling"]);
    expect(transitions?.conditions[0]?.when.evaluate({ now: "", input: { amount: 11 } })).toBe(
      true,
    );
    expect(transitions?.default).toBe("small");
  });
});

describe("the steps that repeat", () => {
  test("are those on a cycle, through whatever kind of edge", () => {
    const { steps } = compiled({
      id: "looping",
      steps: [
        task("first", "work"),
        task("work", "wait", { onError: [{ errors: ["*"], to: "rest" }] }),
        { stepId: "rest", type: "DELAY", duration: "PT1S", transitions: { default: "work" } },
        {
          stepId: "wait",
          type: "EVENT_WAIT",
          eventPattern: "go.on",
          eventTimeout: { duration: "PT1H", timeoutHandlerStepId: "remind" },
          transitions: { default: "pick" },
        },
        task("remind", "wait"),
        {
          stepId: "pick",
          type: "CHOICE",
          choices: [{ when: "variables.again", to: "pick_again" }],
          default: "last",
        },
        task("pick_again", undefined, {
          transitions: { conditions: [{ when: "steps.pick_again.output", to: "pick" }] },
        }),
        task("last"),
      ],
    });

    const repeating = [...steps.values()].filter(({ repeats }) => repeats);
    expect(repeating.map(({ stepId }) => stepId)).toEqual([
      "work",
      "rest",
      "wait",
      "remind",
      "pick",
      "pick_again",
    ]);
  });
});

describe("the reads of a step", () => {
  const readsOf = (steps: readonly object[], stepId: string, more: object = {}) =>
    compiled({ id: "reading", ...more, steps }).steps.get(stepId)?.reads;
  const reading = (stepId: string, of: string, next?: string, more: object = {}) =>
    task(stepId, next, { input: { x: `\${ steps.${of}.output.x }` }, ...more });

  test("hold what its own conditions read, and what each step behind an edge reads", () => {
    const steps = [
      task("a", "b"),
      task("b", "c"),
      task("c", undefined, {
        transitions: { conditions: [{ when: "steps.a.output.ok", to: "d" }], default: "e" },
        onError: [{ errors: ["*"], to: "f" }],
      }),
      reading("d", "b"),
      reading("e", "c"),
      task("f", undefined, { condition: "steps.b.status === 'FAILED'" }),
    ];

    expect(readsOf(steps, "c")).toEqual(["a", "b"]);
    expect(readsOf(steps, "a")).toEqual([]);
  });

  test("go on through steps that settle at once and through those that may be skipped", () => {
    const steps = [
      ...["a", "b", "c", "d"].map((stepId, index) => task(stepId, ["b", "c", "d", "e"][index])),
      task("e", "set"),
      {
        stepId: "set",
        type: "SET",
        variables: { x: "${ steps.a.output }" },
        transitions: { default: "pick" },
      },
      {
        stepId: "pick",
        type: "CHOICE",
        choices: [{ when: "steps.b.output.ok", to: "maybe" }],
        default: "maybe",
      },
      task("maybe", "deep", { condition: "steps.c.output.ok" }),
      reading("deep", "d", "beyond"),
      reading("beyond", "e"),
    ];

    expect(readsOf(steps, "e")).toEqual(["a", "b", "c", "d"]);
    expect(readsOf(steps, "deep")).toEqual(["e"]);
  });

  test("hold what a wait's condition and its timeout handler read", () => {
    const steps = [
      task("a", "b"),
      task("b", "wait"),
      {
        stepId: "wait",
        type: "EVENT_WAIT",
        eventPattern: "order.${ steps.b.output.kind }",
        eventCondition: "event.payload.id === steps.a.output.id",
        eventTimeout: { duration: "PT1H", timeoutHandlerStepId: "late" },
      },
      reading("late", "b"),
    ];

    expect(readsOf(steps, "b")).toEqual(["a"]);
    expect(readsOf(steps, "wait")).toEqual(["a", "b"]);
  });

  test("hold what the output of the definition reads, where the step can be the last", () => {
    const steps = [task("a", "b"), task("b", "c"), task("c")];
    const output = { first: "${ steps.a.output }" };

    expect(readsOf(steps, "c", { output })).toEqual(["a"]);
    expect(readsOf(steps, "a", { output })).toEqual([]);
  });

  test("are ALL where the steps are taken as a whole", () => {
    const steps = [task("a", "b"), task("b", "c"), task("c", undefined, { input: "steps" })];

    expect(readsOf(steps, "a")).toEqual([]);
    expect(readsOf(steps, "b")).toBe("ALL");
  });
});

describe("the key of a wait", () => {
  const waitFor = (eventCondition: string) =>
    stepOf(
      compiled({
        id: "waiting",
        steps: [
          task("a", "w"),
          { stepId: "w", type: "EVENT_WAIT", eventPattern: "x", eventCondition },
        ],
      }),
      "w",
      "EVENT_WAIT",
    ).events[0];

  test.each([
    ["event.payload.id === input.id", true],
    ["event.payload.id === workflow.instance.input.id", true],
    ["event.payload.id === workflow.instance.state.input.id", true],
    ["event.payload.id === workflow.instance.id && event.payload.n > 3", true],
    ["workflow.instance.correlationId == event.payload.id && event.payload.kind === 'x'", true],
    ["event.payload.tenant === workflow.instance.tenantId", true],
    ["event.payload.at === workflow.instance.createdAt", true],
    ["event.payload.id === 'x'", true],
    ["event.payload.n > 3", true],
    ["event.payload.id === variables.id", false],
    ["event.payload.id === workflow.instance.state.variables.id", false],
    ["event.payload.id === steps.a.output.id", false],
    ["event.payload.id === input.id && event.payload.n === variables.n", false],
    ["event.payload.status === workflow.instance.status", false],
    ["event.payload.at === workflow.instance.startedAt", false],
  ])("from %s is fixed: %s", (condition, fixed) => {
    expect(waitFor(condition)?.keyIsFixed).toBe(fixed);
  });

  test("leaves out what changes as a worker begins a step, as no key is written again then", () => {
    const condition =
      "event.payload.id === steps.a.output.id && event.payload.s === steps.a.status && event.payload.n === workflow.instance.state.steps.a.attempts";

    const paths = waitFor(condition)?.conjuncts.map(({ eventPath }) => eventPath.join("."));

    expect(paths).toEqual(["payload.id"]);
  });

  test("never equals where a side is missing", () => {
    const { eventCondition } = waitFor("event.payload.id === input.id") ?? {};

    expect(eventCondition?.evaluate({ now: "", input: {}, event: { payload: {} } })).toBe(false);
  });
});

test("a time, a text with an expression and an expression are all good ends of a delay", () => {
  const until = (text: string) =>
    stepOf(
      compiled({ id: "delaying", steps: [{ stepId: "d", type: "DELAY", until: text }] }),
      "d",
      "DELAY",
    ).until?.evaluate({ now: "", input: { day: "2026-03-01" } });

  expect(until("2026-03-01T09:00:00Z")).toBe("2026-03-01T09:00:00Z");
  expect(until("${ input.day }T09:00:00Z")).toBe("2026-03-01T09:00:00Z");
  expect(until("input.day + 'T09:00:00Z'")).toBe("2026-03-01T09:00:00Z");
  expect(until("${ input.day ?? now() }")).toBe("2026-03-01");
});

test("a document that was not validated is refused with a DefinitionError", () => {
  const document = { id: "broken", steps: [{ ...task("a"), timeout: "1h" }] };

  expect(() => compileDefinition(document as unknown as WorkflowDefinition, 1)).toThrow(
    DefinitionError,
  );
});
