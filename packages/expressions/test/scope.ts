import { parseExpression } from "../src/index.ts";
import type { ExpressionOptions, Scope } from "../src/index.ts";

export const allRoots = [
  "workflow",
  "input",
  "variables",
  "steps",
  "event",
  "item",
  "index",
] as const;

const state = {
  input: {
    orderId: "o-1",
    lines: [
      { sku: "a", quantity: 2 },
      { sku: "b", quantity: 3 },
    ],
    nothing: null,
  },
  variables: { attempts: 2, name: "Ada" },
  steps: {
    reserve: { status: "COMPLETED", output: { id: "r-1" }, attempts: 1 },
    "my-step": { output: 7 },
  },
};

/** One instance in the middle of its life, with an event and an item at hand. */
export const scope: Scope = {
  now: "2026-03-01T12:00:00.000Z",
  ...state,
  workflow: { ...state, instance: { id: "i-1", status: "RUNNING", input: state.input, state } },
  event: { id: "e-1", pattern: "payment.received", payload: { orderId: "o-1", attempts: 4 } },
  item: { sku: "a" },
  index: 0,
};

/** Evaluates with every root allowed. */
export function evaluate(source: string, values: Partial<Scope> = {}, options?: ExpressionOptions) {
  return parseExpression(source, { roots: allRoots, ...options }).evaluate({ ...scope, ...values });
}

/** What a function throws; fails when it throws nothing. */
export function thrownBy(act: () => unknown): unknown {
  try {
    act();
  } catch (error) {
    return error;
  }
  throw new Error("nothing was thrown");
}
