import { readFileSync } from "node:fs";
import { parseDocument } from "@millrace/contract";
import { compileDefinition, createSnapshot, decide, isNeeds, noReads } from "@millrace/engine";
import type { Decision, Definition, Signal, Snapshot } from "@millrace/engine";
import { parseExpression } from "@millrace/expressions";
import { chain3 } from "./definitions.ts";
import type { Workload } from "./workload.ts";

/** The pure parts alone, on one core: what the services cannot be faster than. */
export const pure: Workload = {
  id: "PURE",
  title: "expressions and decisions alone, on one core",
  figures: {
    "evaluations/s": { unit: "evaluations/s", isRate: true },
    "decides/s": { unit: "decides/s", isRate: true },
    "compiles/s": { unit: "definitions/s", isRate: true },
  },
  async run(bench) {
    const ms = bench.isQuick ? 500 : 2_000;
    const orders = orderProcessing();
    return {
      values: {
        "evaluations/s": ratePerSecond(ms, evaluation()),
        "decides/s": 4 * ratePerSecond(ms, threeSteps()),
        "compiles/s": ratePerSecond(ms, () => compileDefinition(orders, 1)),
      },
      note: "the payment condition of order_processing; start and three results of a 3-step workflow",
    };
  },
};

function evaluation(): () => unknown {
  const roots = ["workflow", "event"];
  const source = "event.payload.orderId === workflow.input.orderId";
  const condition = parseExpression(source, { roots, undefinedNeverEqual: true });
  const scope = {
    now: "2026-01-01T00:00:00.000Z",
    workflow: { input: { orderId: "order-1", items: [] } },
    event: { payload: { orderId: "order-1", amount: 12.5 } },
  };
  return () => condition.evaluate(scope);
}

/** One whole life of a 3-step workflow: four decisions. */
function threeSteps(): () => unknown {
  const parsed = parseDocument(chain3);
  if (parsed.document === undefined) throw new Error("the definition is not sound");
  const definition = compileDefinition(parsed.document, 1);
  const now = new Date(1_700_000_000_000);
  const created = createSnapshot(definition, {
    id: "00000000-0000-7000-8000-000000000000",
    tenantId: "default",
    input: { n: 1 },
    correlationId: null,
    userId: null,
    priority: null,
    startEventId: null,
    createdAt: now,
  });
  return () => {
    let snapshot = after(definition, created, { kind: "started" }, now);
    for (const path of ["a", "b", "c"]) {
      const signal = {
        kind: "stepSucceeded",
        path,
        iteration: 1,
        attempt: 1,
        output: null,
      } as const;
      snapshot = after(definition, snapshot, signal, now);
    }
    if (snapshot.status !== "COMPLETED") throw new Error(`the workflow is ${snapshot.status}`);
    return snapshot;
  };
}

function after(definition: Definition, snapshot: Snapshot, signal: Signal, now: Date): Snapshot {
  const decision = decide(definition, snapshot, [signal], noReads, now);
  if (isNeeds(decision)) throw new Error("a step of the chain reads nothing");
  return (decision satisfies Decision).snapshot;
}

function orderProcessing() {
  const file = new URL("../../../examples/order-processing/order_processing.json", import.meta.url);
  const parsed = parseDocument(JSON.parse(readFileSync(file, "utf8")));
  if (parsed.document === undefined) throw new Error("the example is not sound");
  return parsed.document;
}

/** Calls per second over at least so many milliseconds, after a warm-up of a quarter of that. */
function ratePerSecond(ms: number, call: () => unknown): number {
  spin(ms / 4, call);
  return spin(ms, call);
}

function spin(ms: number, call: () => unknown): number {
  const from = performance.now();
  let count = 0;
  let passed = 0;
  while (passed < ms) {
    for (let index = 0; index < 100; index++) call();
    count += 100;
    passed = performance.now() - from;
  }
  return (count * 1_000) / passed;
}
