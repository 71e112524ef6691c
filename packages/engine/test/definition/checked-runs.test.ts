import { ok } from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import type { WorkflowDefinition } from "@millrace/contract";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { compileDefinition } from "../../src/definition/compile.ts";
import type { Definition } from "../../src/definition/definition.ts";
import { stepIdOf } from "../../src/definition/paths.ts";
import { validateDefinition } from "../../src/definition/validate.ts";
import type { Validation } from "../../src/definition/validate.ts";
import { isSettled } from "../../src/state/snapshot.ts";
import { document, happenings } from "../arbitraries.ts";
import { happeningsOf } from "../support/happen.ts";
import { claimed, commit, created, lost, noon } from "../support/simulation.ts";

/**
 * What the checker says, held against what then happens: a definition that it passes runs to an end,
 * and what it calls impossible never comes.
 *
 * `MODEL_RUNS` and `MODEL_SEED` as for the model.
 */
const runs = Number(process.env["MODEL_RUNS"] ?? 400);

const maxHappenings = 2_000;

interface Entered {
  readonly stepId: string;
  /** Steps that had completed with an output when it was entered. */
  readonly done: ReadonlySet<string>;
}

interface Played {
  readonly entered: readonly Entered[];
  readonly completed: ReadonlySet<string>;
  readonly errorKinds: ReadonlySet<string>;
}

/** Lets the given things happen, then whatever can, until the instance has settled. */
function play(definition: Definition, numbers: readonly number[]): Played {
  let stored = created(definition, { input: { flag: true, id: "x", pattern: "go" } });
  const entered: Entered[] = [];
  const completed = new Set<string>();
  const errorKinds = new Set<string>();
  for (let turn = 0; !isSettled(stored.instance.snapshot); turn++) {
    ok(turn < maxHappenings, "it never ends");
    const all = happeningsOf(definition, stored);
    const happening = all[(numbers[turn] ?? 0) % all.length];
    ok(happening !== undefined, "stuck: nothing can happen any more");
    const now = new Date(noon.getTime() + turn * 1_000);
    if (happening.kind !== "signal") {
      stored = (happening.kind === "claim" ? claimed : lost)(stored, happening.key);
    } else {
      const before = stored.instance.executions;
      stored = commit(definition, stored, [happening.signal], now).stored;
      const done = new Set(completed);
      for (const [key, row] of stored.instance.executions) {
        if (row.status === "COMPLETED") completed.add(row.stepId);
        if (row.error !== null) errorKinds.add(row.error.kind);
        if (!before.has(key)) entered.push({ stepId: stepIdOf(row.path), done });
      }
    }
  }
  const { error } = stored.instance.snapshot;
  if (error !== null) errorKinds.add(error.kind);
  // Whether a child's definition exists is not the parent's to know.
  const hasChildren = [...definition.steps.values()].some(({ type }) => type === "SUB_WORKFLOW");
  if (hasChildren) errorKinds.delete("DEFINITION");
  return { entered, completed, errorKinds };
}

/** The properties below meet the same documents, and checking one takes longer than playing it. */
const validations = new Map<string, Validation>();

function validated(random: WorkflowDefinition): Validation {
  const text = JSON.stringify(random);
  const known = validations.get(text) ?? validateDefinition(random);
  validations.set(text, known);
  return known;
}

test("a random definition that passes the checker runs to an end", () => {
  let passed = 0;
  fc.assert(
    fc.property(document, happenings, (random, numbers) => {
      const { document: sound } = validated(random);
      if (sound === undefined) return;
      passed += 1;

      const { errorKinds } = play(compileDefinition(sound, 1), numbers);

      expect([...errorKinds]).not.toContain("DEFINITION");
    }),
    { numRuns: 3 * runs },
  );
  expect(passed).toBeGreaterThan(runs / 20);
});

test("what the checker calls impossible in a random definition never happens", () => {
  const seen = new Map<string, number>();
  fc.assert(
    fc.property(document, happenings, (random, numbers) => {
      const { problems = [], warnings } = validated(random);
      const claims = [...problems, ...warnings].filter(({ code }) => impossible.has(code));
      if (claims.length === 0) return;
      const played = play(compileDefinition(random, 1), numbers);
      for (const { code, path, message } of claims) {
        seen.set(code, (seen.get(code) ?? 0) + 1);
        const refuted = impossible.get(code)?.(played, stepAt(random, path), message) ?? false;
        ok(!refuted, `${path} ${code} ${message}`);
      }
    }),
    { numRuns: 2 * runs },
  );
  for (const code of impossible.keys()) expect([...seen.keys()]).toContain(code);
});

type Refutes = (played: Played, stepId: string, message: string) => boolean;

const impossible: ReadonlyMap<string, Refutes> = new Map<string, Refutes>([
  ["UNREACHABLE_STEP", ({ entered }, own) => entered.some(({ stepId }) => stepId === own)],
  ["JOIN_NEVER_REACHED", ({ completed }, own) => completed.has(own)],
  ["OUTPUT_NEVER_THERE", wasThere],
  ["NEVER_THERE", wasThere],
]);

/** Whether a step had completed when another that reads it on its way was entered. */
function wasThere({ entered }: Played, own: string, message: string): boolean {
  const read = /^"([^"]+)"/.exec(message)?.[1] ?? "";
  return entered.some(({ stepId, done }) => stepId === own && done.has(read));
}

/** The id of the innermost step that a pointer leads into. */
function stepAt(random: WorkflowDefinition, pointer: string): string {
  let current: unknown = random;
  let stepId = "";
  for (const key of pointer.split("/").slice(1)) {
    current = (current as Record<string, unknown>)[key];
    if (typeof current !== "object" || current === null) break;
    if ("stepId" in current) stepId = String(current.stepId);
  }
  return stepId;
}

describe("a sound definition with a slip in it", () => {
  const folder = new URL("../../../../test/fixtures/definitions/good/", import.meta.url);
  const sound = readdirSync(folder).map(
    (name): Node => JSON.parse(readFileSync(new URL(name, folder), "utf8")) as Node,
  );

  interface Node {
    readonly [key: string]: unknown;
  }

  /** Every object in a document, by its path. */
  function placesOf(node: unknown, path: readonly string[] = []): readonly (readonly string[])[] {
    if (typeof node !== "object" || node === null) return [path];
    const below = Object.entries(node).flatMap(([key, each]) => placesOf(each, [...path, key]));
    return [path, ...below];
  }

  function changed(node: unknown, [key, ...rest]: readonly string[], change: Change): unknown {
    if (key === undefined) return change(node);
    const entries = Object.entries(node as object).flatMap(([name, each]) => {
      if (name !== key) return [[name, each] as const];
      const value = changed(each, rest, change);
      return value === gone ? [] : [[name, value] as const];
    });
    return Array.isArray(node) ? entries.map(([, each]) => each) : Object.fromEntries(entries);
  }

  type Change = (value: unknown) => unknown;
  const gone = Symbol("gone");
  const types = ["TASK", "EVENT_WAIT", "SET", "END", "CHOICE", "DELAY", "PARALLEL", "MAP"];
  const change: fc.Arbitrary<Change> = fc.oneof(
    fc.constant<Change>(() => gone),
    fc.nat(50).map((at): Change => (value) => {
      if (typeof value !== "string" || value === "") return [value];
      return value.slice(0, at % value.length) + value.slice((at % value.length) + 1);
    }),
    fc.constantFrom(...types).map((type): Change => (value) => {
      return typeof value === "object" && value !== null && "type" in value
        ? { ...value, type }
        : type;
    }),
    fc.constant<Change>((value) => (Array.isArray(value) ? value.toReversed() : String(value))),
    fc.constant<Change>((value) => (Array.isArray(value) ? [...(value as []), ...value] : null)),
  );
  const changes = fc.array(fc.tuple(fc.nat(), change), { minLength: 1, maxLength: 3 });

  test("is refused or runs to an end, and never breaks the checker", () => {
    const tally = { refused: 0, passed: 0 };
    fc.assert(
      fc.property(fc.constantFrom(...sound), changes, happenings, (original, slips, numbers) => {
        let mutant: unknown = original;
        for (const [number, slip] of slips) {
          const places = placesOf(mutant).filter((path) => path.length > 0);
          const place = places[number % Math.max(1, places.length)] ?? [];
          mutant = changed(mutant, place, slip);
        }
        const checked = validateDefinition(mutant);
        if (checked.document === undefined) {
          tally.refused += 1;
          ok(checked.problems.length > 0);
          return;
        }
        tally.passed += 1;
        const definition = compileDefinition(checked.document, 1);
        // Long loops would take their time.
        if ([...definition.steps.values()].some(({ repeats }) => repeats)) return;
        expect([...play(definition, numbers).errorKinds]).not.toContain("DEFINITION");
      }),
      { numRuns: 2 * runs },
    );
    expect(tally.refused).toBeGreaterThan(runs / 10);
    expect(tally.passed).toBeGreaterThan(runs / 10);
  });
});
