import { ok } from "node:assert/strict";
import type { WorkflowDefinition } from "@millrace/contract";
import fc from "fast-check";
import { afterAll, expect, test, vi } from "vitest";
import { checkConsistency } from "../src/consistency/check.ts";
import { compileDefinition } from "../src/definition/compile.ts";
import type { Definition } from "../src/definition/definition.ts";
import { fold } from "../src/fold.ts";
import type { HistoryStep, MemoryInstance } from "../src/fold.ts";
import { canPause } from "../src/decide/pause.ts";
import type { HeldSignal, Signal } from "../src/state/signal.ts";
import type { ExecutionRead } from "../src/state/reads.ts";
import type { Snapshot } from "../src/state/snapshot.ts";
import { hasOpenDeadLetter } from "../src/decide/dead-letter.ts";
import { executionKey, isSettled } from "../src/state/snapshot.ts";
import { document, happenings } from "./arbitraries.ts";
import { evidenceOf } from "./support/evidence.ts";
import { happeningsOf } from "./support/happen.ts";
import type { Happening } from "./support/happen.ts";
import type { Stored } from "./support/laws.ts";
import { claimed, commit, created, lost, noon } from "./support/simulation.ts";

/**
 * Random definitions, random things that happen to them. `commit` checks the laws of every single
 * decision (support/laws.ts); the properties here are about whole runs.
 *
 * `MODEL_RUNS` asks for more runs, `MODEL_SEED` (test/support/seed.ts) for those of a failure again.
 */
const runs = Number(process.env["MODEL_RUNS"] ?? 400);
const options = { numRuns: runs };

// Shrinking a failure takes its time.
vi.setConfig({ testTimeout: 300_000 });

const input = { flag: true, id: "x", pattern: "go" };

/** Steps that a run may take to its end, whatever happens: every loop of a random document is short. */
const maxHappenings = 2_000;

interface Run {
  readonly definition: Definition;
  readonly stored: Stored;
  readonly history: readonly HistoryStep[];
  readonly now: Date;
}

function begin(definition: Definition): Run {
  return { definition, stored: created(definition, { input }), history: [], now: noon };
}

/** A second passes between any two things; what a timer says of the time is not looked at. */
function happen(run: Run, happening: Happening): Run {
  const now = new Date(run.now.getTime() + 1_000);
  if (happening.kind !== "signal") {
    const moved = happening.kind === "claim" ? claimed : lost;
    return { ...run, now, stored: moved(run.stored, happening.key) };
  }
  const { stored, logged } = commit(run.definition, run.stored, [happening.signal], now);
  return { ...run, now, stored, history: logged ? [...run.history, logged] : run.history };
}

function pick(run: Run, number: number): Happening | undefined {
  const all = happeningsOf(run.definition, run.stored);
  return all[number % all.length];
}

/** Lets the given things happen, then whatever can, until the instance has settled. */
function play(definition: Definition, numbers: readonly number[]): Run {
  let run = begin(definition);
  for (let turn = 0; !isSettled(run.stored.instance.snapshot); turn++) {
    ok(turn < maxHappenings, "it never ends");
    // Cancels come last among what can happen: zero leads to the end by work, not by a cancel.
    const happening = pick(run, numbers[turn] ?? 0);
    ok(happening !== undefined, "stuck: nothing can happen any more");
    run = happen(run, happening);
  }
  return run;
}

function signalsOf({ history }: Run): readonly Signal[] {
  return history.flatMap(({ signals }) => signals);
}

/** How often each end was reached: a model that only ever fails at once would prove nothing. */
const reached = new Map<string, number>();

function count(what: string): void {
  reached.set(what, (reached.get(what) ?? 0) + 1);
}

function check(
  property: (
    definition: Definition,
    numbers: readonly number[],
    document: WorkflowDefinition,
  ) => void,
): void {
  fc.assert(
    fc.property(document, happenings, (random, numbers) => {
      property(compiled(random), numbers, random);
    }),
    options,
  );
}

/** All properties meet the same documents, and compiling one takes longer than what happens to it. */
const definitions = new Map<string, Definition>();

function compiled(random: WorkflowDefinition): Definition {
  const text = JSON.stringify(random);
  const known = definitions.get(text) ?? compileDefinition(random, 1);
  definitions.set(text, known);
  return known;
}

afterAll(() => {
  const { seed } = fc.readConfigureGlobal();
  console.info(`model: MODEL_SEED=${seed}, ${runs} runs a property;`, Object.fromEntries(reached));
});

test("every instance settles, every step that began with it, and nothing moves it any more", () => {
  let unleft = 0;
  check((definition, numbers) => {
    const run = play(definition, numbers);
    const { snapshot, executions } = run.stored.instance;
    unleft += [...executions.values()].filter(isUnleft).length;
    count(snapshot.compensation ? `${snapshot.status}, compensated` : snapshot.status);

    for (const signal of signalsOf(run)) {
      const { decision } = commit(definition, run.stored, [signal], run.now);
      expect(decision.snapshot).toBe(snapshot);
    }
  });
  const ends = [
    "COMPLETED",
    "FAILED",
    "FAILED, compensated",
    "CANCELLED",
    "CANCELLED, compensated",
  ];
  expect([...reached.keys()].toSorted()).toEqual(ends.toSorted());
  // By seed a dozen to some thirty.
  expect(unleft).toBeGreaterThan(runs / 100);
});

/** It had completed, and then could not be left. */
function isUnleft({ status, completion }: ExecutionRead): boolean {
  return status === "FAILED" && completion !== null;
}

test("after a step was poisoned nothing is undone until its dead letter is discarded, and then all that is undoable", () => {
  let seen = 0;
  check((definition, numbers) => {
    const poisoned = poison(definition, (numbers[0] ?? 0) % 8);
    const { snapshot } = poisoned.stored.instance;
    // Of a compensation step: its dead letter is not the instance's.
    if (!hasOpenDeadLetter(snapshot) || snapshot.compensation !== null) return;
    seen += 1;
    expect(snapshot).toMatchObject({ status: "FAILED", compensation: null });

    const discarded = happen(poisoned, { kind: "signal", signal: discard });
    const settled = work(discarded);

    const { compensation } = settled.stored.instance.snapshot;
    const isUndone = definition.compensateOnFailure && definition.compensationSteps.size > 0;
    expect(compensation?.status.startsWith("COMPLETED") ?? false).toBe(isUndone);
    const folded = fold(definition, snapshotOf(definition), settled.history);
    expect(folded.snapshot).toEqual(settled.stored.instance.snapshot);
    const { decision } = commit(definition, settled.stored, [discard], settled.now);
    expect(decision.snapshot).toBe(settled.stored.instance.snapshot);
  });
  expect(seen).toBeGreaterThan(0);
});

const discard: Signal = { kind: "deadLetterDiscarded", actor: "user:ada", reason: null };

/** Lets all go well, until after some things the first step that runs kills its workers. */
function poison(definition: Definition, after: number): Run {
  return work(begin(definition), (all, turn) =>
    turn < after
      ? undefined
      : all.find((each) => each.kind === "signal" && each.signal.kind === "poisoned"),
  );
}

/** Lets the first thing that can happen happen, or the one that is chosen, until it has settled. */
function work(
  from: Run,
  choose: (all: readonly Happening[], turn: number) => Happening | undefined = () => undefined,
): Run {
  let run = from;
  for (let turn = 0; !isSettled(run.stored.instance.snapshot); turn++) {
    ok(turn < maxHappenings, "it never ends");
    const all = happeningsOf(run.definition, run.stored);
    const happening = choose(all, turn) ?? all[0];
    ok(happening !== undefined, "stuck: nothing can happen any more");
    run = happen(run, happening);
  }
  return run;
}

test("folding the history gives the snapshot and the rows", () => {
  check((definition, numbers) => {
    const { stored, history } = play(definition, numbers);

    const folded = fold(definition, snapshotOf(definition), history);

    expect(folded.snapshot).toStrictEqual(stored.instance.snapshot);
    expect(rowsOf(folded)).toStrictEqual(rowsOf(stored.instance));
  });
});

test("at any point the history so far gives the snapshot so far", () => {
  check((definition, numbers) => {
    let run = begin(definition);
    for (const number of numbers) {
      const happening = pick(run, number);
      if (happening === undefined) break;
      run = happen(run, happening);
    }

    const folded = fold(definition, snapshotOf(definition), run.history);

    expect(folded.snapshot).toStrictEqual(run.stored.instance.snapshot);
  });
});

test("at any point the consistency checker finds nothing", () => {
  check((definition, numbers) => {
    let run = begin(definition);
    for (const number of numbers) {
      const happening = pick(run, number);
      if (happening === undefined) break;
      run = happen(run, happening);
    }

    const { stored, history, now } = run;
    if (history.length === 0) return;
    const evidence = evidenceOf(definition, stored, history, now);
    expect(checkConsistency(evidence)).toEqual([]);
    expect(checkConsistency({ ...evidence, history: undefined })).toEqual([]);
  });
});

test("a repeated or late signal changes nothing, wherever it comes", () => {
  check((definition, numbers) => {
    let run = begin(definition);
    for (const number of numbers) {
      const happening = pick(run, number);
      if (happening === undefined) break;
      run = happen(run, happening);

      // A retry sets the instance's own clock anew, and its kind is all that is known of it.
      const isAnew = (signal: Signal) => signal.kind === "timerFired" && signal.path === "";
      const signals = signalsOf(run).filter((signal) => !isAnew(signal));
      const past = signals.toSorted((a, b) => order(number, a) - order(number, b));
      for (const signal of past.slice(0, 5)) {
        const { decision } = commit(definition, run.stored, [signal], run.now);
        expect(decision.snapshot).toBe(run.stored.instance.snapshot);
      }
    }
  });
});

/** Some order that is the same for the same number. */
function order(number: number, signal: Signal): number {
  return (JSON.stringify(signal).length * 7_919 + number * 104_729) % 1_009;
}

test("signals folded into one decision come to what they come to one by one", () => {
  check((definition, numbers) => {
    let run = begin(definition);
    for (const [index, number] of numbers.entries()) {
      const { stored, now } = run;
      const together = [number, numbers[index + 1] ?? 1, numbers[index + 2] ?? 2].flatMap(
        (each) => {
          const happening = pick(run, each);
          return happening?.kind === "signal" ? [happening.signal] : [];
        },
      );

      const folded = commit(definition, stored, together, now).stored;
      const apart = together.reduce(
        (each, signal) => commit(definition, each, [signal], now).stored,
        stored,
      );
      expect(comparable(folded)).toStrictEqual(comparable(apart));

      const happening = pick(run, number);
      if (happening === undefined) break;
      run = happen(run, happening);
    }
  });
});

test("what comes while it is paused leads, in its order, to where it would have led", () => {
  let compared = 0;
  check((definition, numbers, written) => {
    // One that has to wait for its slot again is not RUNNING meanwhile, and can tell.
    if (definition.concurrency && JSON.stringify(written).includes("instance.status")) return;
    let run = begin(definition);
    const expected: unknown[] = [];
    const received: unknown[] = [];
    for (const number of numbers) {
      const all = happeningsOf(definition, run.stored);
      const happening = all[number % all.length];
      if (happening === undefined) break;
      const together = few(
        all.filter((each) => canBeHeld(definition, each)),
        number,
      );
      if (canPause(run.stored.instance.snapshot) && together.length > 0) {
        const straight = inTurn(run, together);
        if (straight !== undefined) {
          expected.push(outcomeOf(straight));
          received.push(outcomeOf(paused(run, together)));
        }
      }
      run = happen(run, happening);
    }
    expect(received).toStrictEqual(expected);
    compared += expected.length;
  });
  expect(compared).toBeGreaterThan(runs / 20);
});

/** Results of steps, events for waits, ends of delays, and clocks: what a pause lets come. */
function canBeHeld({ concurrency }: Definition, happening: Happening): boolean {
  if (happening.kind !== "signal") return false;
  const { signal } = happening;
  if (signal.kind !== "timerFired") return isResult(signal) || signal.kind === "eventMatched";
  const isWaiting = signal.timer === "wait" || signal.timer === "delay";
  // Under a limit tasks that follow begin with the slot, and so after all that was held.
  return isWaiting || (concurrency === undefined && ["total", "timeout"].includes(signal.timer));
}

function isResult({ kind }: Signal): boolean {
  return ["stepSucceeded", "stepFailed", "attemptTimedOut"].includes(kind);
}

/** A few of them in some order; of one execution a clock besides what else may come to it. */
function few(all: readonly Happening[], number: number): readonly Happening[] {
  const chosen = new Map<string, Happening>();
  for (let index = 0; index < all.length && chosen.size < 3; index++) {
    const each = all[(number + index * 7) % all.length];
    if (each?.kind !== "signal" || !("path" in each.signal)) continue;
    const { kind, path, iteration } = each.signal;
    const name = `${kind === "timerFired"} ${executionKey(path, iteration)}`;
    if (!chosen.has(name)) chosen.set(name, each);
  }
  return [...chosen.values()];
}

/**
 * Undefined where one of them took the branch of a step: a pause lets both finish. Likewise where, under a
 * limit, one of them stopped a step that another had begun: that one would not have begun before the slot.
 */
function inTurn(run: Run, together: readonly Happening[]): Run | undefined {
  let next = run;
  for (const each of together) {
    if (each.kind !== "signal" || !("path" in each.signal)) return undefined;
    const { path, iteration } = each.signal;
    const phase = next.stored.instance.snapshot.live[executionKey(path, iteration)]?.phase;
    if (isResult(each.signal) && phase !== "ACTIVE") return undefined;
    next = admitted(happen(next, each));
  }
  const { executions } = run.stored.instance;
  const hasStopped = [...next.stored.instance.executions].some(
    ([key, { status }]) => status === "CANCELLED" && !executions.has(key),
  );
  return hasStopped && next.definition.concurrency !== undefined ? undefined : next;
}

/** A slot is free whenever it asks for one. */
function admitted(run: Run): Run {
  const { slot, slotRequests: request } = run.stored.instance.snapshot;
  if (slot !== "WANTED") return run;
  return happen(run, { kind: "signal", signal: { kind: "admitted", request } });
}

/** The same things, in the same order, while it is paused. */
function paused(run: Run, together: readonly Happening[]): Run {
  const who = { actor: "user:ada", reason: null };
  const intervention = run.stored.instance.snapshot.interventions + 1;
  const held: HeldSignal[] = [];
  let next = happen(run, {
    kind: "signal",
    signal: { kind: "pauseRequested", intervention, until: null, ...who },
  });
  for (const each of together) {
    if (each.kind !== "signal") continue;
    const { signal } = each;
    const at = new Date(next.now.getTime() + 1_000);
    if (signal.kind === "eventMatched" || signal.kind === "timerFired") {
      held.push({ at: at.toISOString(), signal });
    }
    next = { ...happen(next, each), now: at };
  }
  return admitted(
    happen(next, {
      kind: "signal",
      signal: { kind: "resumeRequested", intervention: intervention + 1, held, ...who },
    }),
  );
}

/** All but numbers of commits and completions, times, and ids of children, which come of times. */
function outcomeOf({ stored: { instance, waits } }: Run): unknown {
  const { status, variables, output, error, compensation } = instance.snapshot;
  const rows = [...instance.executions].map(
    ([key, { status: of, attempt, output: its, error: failure }]) =>
      [key, of, attempt, its, failure] as const,
  );
  const outcome = {
    status,
    variables,
    output,
    error,
    compensation: compensation?.plan.toSorted(),
    live: Object.keys(instance.snapshot.live).toSorted(),
    rows: rows.toSorted(([a], [b]) => (a < b ? -1 : 1)),
    waits: [...waits.keys()].toSorted(),
  };
  const text = JSON.stringify(outcome);
  return JSON.parse(text.replaceAll(/"[\d-]+T[\d:.]+Z"|"[\da-f]{8}-[\da-f-]{27}"/g, '"…"'));
}

test("a decision that is lost in a crash is taken again the same", () => {
  check((definition, numbers) => {
    let run = begin(definition);
    for (const number of numbers) {
      const happening = pick(run, number);
      if (happening === undefined) break;
      const signals = happening.kind === "signal" ? [happening.signal] : [];
      const first = commit(definition, run.stored, signals, run.now);
      const again = commit(definition, run.stored, signals, run.now);
      expect(again.decision).toStrictEqual(first.decision);
      run = happen(run, happening);
    }
  });
});

test("only the numbers of a document's seed decide: another run of it is the same run", () => {
  fc.assert(
    fc.property(document, happenings, (random, numbers) => {
      const first = play(compileDefinition(random, 1), numbers);
      const second = play(compileDefinition(random, 1), numbers);

      expect(first.stored.instance).not.toBe(second.stored.instance);
      expect(second.history).toStrictEqual(first.history);
    }),
    { ...options, numRuns: Math.ceil(runs / 10) },
  );
});

function snapshotOf(definition: Definition): Snapshot {
  return created(definition, { input }).instance.snapshot;
}

/** Claims leave no trace in the history: fences, and PENDING for RUNNING. */
function rowsOf({ executions }: MemoryInstance) {
  return [...executions].map(([key, { fence: _fence, ...row }]) => [key, row] as const);
}

/** All but what counts the commits, and what tells a wait from emissions of its own commit. */
function comparable({ instance, timers, waits: opened, held }: Stored) {
  const { version: _version, ...snapshot } = instance.snapshot;
  const waits = [...opened].map(
    ([key, { emittedBefore: _emittedBefore, ...wait }]) => [key, wait] as const,
  );
  return { snapshot, rows: rowsOf(instance), timers, waits, held };
}
