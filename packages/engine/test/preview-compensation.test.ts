import { ok } from "node:assert/strict";
import type { Json } from "@millrace/expressions";
import fc from "fast-check";
import { expect, test, vi } from "vitest";
import { compileDefinition } from "../src/definition/compile.ts";
import type { Definition } from "../src/definition/definition.ts";
import { readsOf } from "../src/fold.ts";
import { previewCompensation } from "../src/preview-compensation.ts";
import type { CompensationPreview } from "../src/preview-compensation.ts";
import type { Signal } from "../src/state/signal.ts";
import { executionKey, isSettled } from "../src/state/snapshot.ts";
import { isTerminal } from "../src/state/status.ts";
import { document, happenings } from "./arbitraries.ts";
import { define, fixture } from "./support/definitions.ts";
import { happeningsOf } from "./support/happen.ts";
import type { Happening } from "./support/happen.ts";
import type { Stored } from "./support/laws.ts";
import { claimed, commit, created, lost, noon, simulate } from "./support/simulation.ts";

vi.setConfig({ testTimeout: 120_000 });

const runs = Number(process.env["MODEL_RUNS"] ?? 60);
const options = { reason: "stop", actor: "user:ada", maxInputs: 1_000 };
const input = { flag: true, id: "x", pattern: "go" };

function preview(definition: Definition, { instance }: Pick<Stored, "instance">, now: Date) {
  const answer = previewCompensation(
    definition,
    instance.snapshot,
    readsOf(instance),
    now,
    options,
  );
  ok(!("needs" in answer), "every row is at hand");
  return answer;
}

interface Ran {
  readonly stepId: string;
  readonly target: string;
  readonly input: Json | undefined;
}

/** Cancels in earnest: whatever is in flight runs out of its grace, each compensation step succeeds. */
function cancelled(definition: Definition, before: Stored, now: Date) {
  let stored = before;
  const ran: Ran[] = [];
  const send = (signal: Signal) => {
    const { stored: next, decision } = commit(definition, stored, [signal], now);
    stored = next;
    for (const { compensates, stepId, error, input: given } of decision.inserts) {
      if (compensates === null) continue;
      ran.push({ stepId, target: compensates, input: error === null ? given : undefined });
    }
  };
  send({ kind: "cancelRequested", reason: "stop", actor: "user:ada", shouldCompensate: true });
  const awaited = Object.values(stored.instance.snapshot.live)
    .filter(({ phase }) => phase === "AWAITED")
    .map(({ path, iteration }) => executionKey(path, iteration));
  for (;;) {
    const { snapshot } = stored.instance;
    if (isSettled(snapshot)) break;
    const [execution] = Object.values(snapshot.live);
    ok(execution !== undefined, "compensating without a step");
    const { path, iteration, attempt, phase } = execution;
    const ref = { path, iteration, attempt };
    if (phase === "AWAITED") send({ kind: "timerFired", timer: "grace", ...ref });
    else send({ kind: "stepSucceeded", output: { undone: true }, ...ref });
  }
  return { ran, awaited, compensation: stored.instance.snapshot.compensation };
}

/** Plays as the numbers say and compares, after each thing that happens, the preview with a cancel. */
function compareAllAlong(definition: Definition, numbers: readonly number[]): number {
  let compared = 0;
  let stored = created(definition, { input });
  let now = noon;
  for (const number of numbers) {
    const all = happeningsOf(definition, stored).filter((each) => !isEnding(each));
    const happening = all[number % all.length];
    if (happening === undefined) break;
    now = new Date(now.getTime() + 1_000);
    stored =
      happening.kind === "signal"
        ? commit(definition, stored, [happening.signal], now).stored
        : (happening.kind === "claim" ? claimed : lost)(stored, happening.key);
    const { snapshot } = stored.instance;
    if (snapshot.version === 0 || isTerminal(snapshot.status)) continue;

    const expected = preview(definition, stored, now);
    const { ran, awaited, compensation } = cancelled(definition, stored, now);

    compared += ran.length;
    expect(expected.steps.map(ranAs)).toEqual(ran);
    expect(expected.steps.map(({ stepId }) => stepId)).toEqual(compensation?.plan ?? []);
    expect(expected.awaited.map(({ target }) => target)).toEqual(awaited);
  }
  return compared;
}

/** Tasks in a ring, so that there is much to undo: passes of a loop, conditions and inputs of all kinds. */
const rings = fc
  .array(
    fc.record(
      {
        condition: fc.constantFrom(
          "steps.s0.output.n === 1",
          "steps.s1.attempts > 1",
          "workflow.instance.cancellation.reason === 'stop'",
          "false",
          "parseJson('oops') === 1",
        ),
        input: fc.constantFrom<Json>(
          { undo: "${ steps.s0.output }", at: "${ now() }" },
          { all: "${ workflow.instance.state }" },
          { bad: "${ parseJson('oops') }" },
        ),
      },
      { requiredKeys: [] },
    ),
    { minLength: 2, maxLength: 4 },
  )
  .map((compensations) =>
    compileDefinition(
      {
        id: "ring",
        steps: compensations.map((_, index) => ({
          stepId: `s${index}`,
          type: "TASK",
          taskId: "work",
          maxIterations: 4,
          transitions: { default: `s${(index + 1) % compensations.length}` },
        })),
        compensationSteps: compensations.map((each, index) => ({
          stepId: `undo_s${index}`,
          compensationFor: `s${index}`,
          type: "TASK",
          taskId: "undo",
          ...each,
        })),
      },
      1,
    ),
  );

/** Zero is what gets an instance on: a claim, or the success of what is running. */
const mostlyOnwards = fc.array(
  fc.oneof({ weight: 9, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.nat(999) }),
  { minLength: 5, maxLength: 25 },
);

test("a preview is what a cancel at that moment then runs: steps, order, targets, inputs", () => {
  let compared = 0;

  fc.assert(
    fc.property(rings, mostlyOnwards, (definition, numbers) => {
      compared += compareAllAlong(definition, numbers);
    }),
    { numRuns: runs },
  );

  expect(compared).toBeGreaterThan(runs * 5);
});

test("so it is for any definition, also one that no instance gets far with", () => {
  let played = 0;

  fc.assert(
    fc.property(document, happenings, (random, numbers) => {
      compareAllAlong(compileDefinition(random, 1), numbers);
      played++;
    }),
    { numRuns: runs },
  );

  expect(played).toBe(runs);
});

/** What would end most runs before anything is done that could be undone. */
function isEnding(happening: Happening): boolean {
  if (happening.kind !== "signal") return false;
  const { signal } = happening;
  if (signal.kind === "timerFired") return signal.timer === "timeout";
  return ["cancelRequested", "cancelTriggered", "poisoned", "scheduled"].includes(signal.kind);
}

function ranAs({ stepId, target, input: given, error }: CompensationPreview["steps"][number]): Ran {
  return { stepId, target, input: error === null ? given : undefined };
}

const order = { orderId: "o-1", customerId: "c-1", items: [], amount: 120 };

function untilShipping() {
  const run = simulate(fixture("order_processing.json"), order);
  run.start();
  run.succeed("reserve_inventory", { reservationId: "r-1" });
  run.publish("payment.received", { orderId: "o-1", amount: 120 });
  run.succeed("process_payment", { paymentId: "p-1", amount: 120 });
  return run;
}

test("a step in flight that has a compensation is awaited, one without is stopped", () => {
  const run = untilShipping();
  run.claim("ship_order");

  const { steps, awaited, stopped } = preview(run.definition, run, run.now);

  const inFlight = [...awaited.map(({ stepId }) => stepId), ...stopped];
  expect(inFlight.some((each) => each.startsWith("ship_order"))).toBe(true);
  expect(steps.map(({ stepId }) => stepId)).toEqual(["refund_payment", "release_inventory"]);
});

test("nothing is planned for an instance that has ended, and asking changes nothing", () => {
  const run = untilShipping();
  const before = run.snapshot;

  preview(run.definition, run, run.now);
  expect(run.snapshot).toBe(before);

  run.cancel("stop");
  expect(preview(run.definition, run, run.now).steps).toEqual([]);
});

test("a step of a lost branch that has its grace already is among those that a cancel awaits", () => {
  const run = simulate(
    define({
      steps: [
        {
          stepId: "race",
          type: "PARALLEL",
          join: "ANY",
          branches: [
            { name: "won", steps: [{ stepId: "quick" }] },
            { name: "lost", steps: [{ stepId: "slow" }] },
          ],
          transitions: { default: "rest" },
        },
        { stepId: "rest" },
      ],
      compensationSteps: [{ stepId: "undo", compensationFor: "slow" }],
    }),
  );
  run.start();
  run.claim("slow");
  run.succeed("quick");

  expect(preview(run.definition, run, run.now).awaited).toMatchObject([
    { stepId: "slow", target: "race.lost.slow#1", compensatedBy: "undo" },
  ]);
});
