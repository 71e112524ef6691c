import { readdirSync, readFileSync } from "node:fs";
import { PROBLEM_CODES } from "@millrace/contract";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { compileDefinition } from "../../src/definition/compile.ts";
import { definitionCodes, definitionWarningCodes } from "../../src/definition/problem.ts";
import { validateDefinition } from "../../src/definition/validate.ts";

const fixtures = new URL("../../../../test/fixtures/definitions/", import.meta.url);

function load(path: string): unknown {
  return JSON.parse(readFileSync(new URL(path, fixtures), "utf8"));
}

function namesIn(folder: string): string[] {
  return readdirSync(new URL(folder, fixtures)).filter((name) => name.endsWith(".json"));
}

interface Broken {
  readonly problems: readonly { readonly path: string; readonly code: string }[];
  readonly document: unknown;
}

describe("a definition that is sound", () => {
  test.each([...namesIn("."), ...namesIn("good/").map((name) => `good/${name}`)])(
    "%s is accepted without a warning, and compiles",
    (name) => {
      const { document, problems, warnings } = validateDefinition(load(name));

      expect(problems).toBeUndefined();
      expect(warnings).toEqual([]);
      expect(document && compileDefinition(document, 1).size).toBeGreaterThan(0);
    },
  );
});

describe("a definition that is broken", () => {
  test.each(namesIn("broken/"))("%s is refused with exactly its problems, in order", (name) => {
    const { problems: expected, document } = load(`broken/${name}`) as Broken;

    const { problems = [] } = validateDefinition(document);

    expect(problems.map(({ path, code }) => ({ path, code }))).toEqual(expected);
    for (const { message } of problems) expect(message.length).toBeGreaterThan(10);
  });

  test("is told what it should be where nothing is given", () => {
    const { problems } = validateDefinition(undefined);

    expect(problems).toEqual([
      { path: "", code: "MISSING_FIELD", message: expect.stringContaining('"id" and "steps"') },
    ]);
  });

  test("gives only codes that are listed", () => {
    const known = new Set<string>([...PROBLEM_CODES, ...Object.keys(definitionCodes)]);
    for (const name of namesIn("broken/")) {
      const { problems = [], warnings } = validateDefinition(
        (load(`broken/${name}`) as Broken).document,
      );
      for (const { code } of problems) expect(known).toContain(code);
      for (const { code } of warnings) expect(Object.keys(definitionWarningCodes)).toContain(code);
    }
  });
});

describe("a message about an unknown id", () => {
  const messageFor = (target: string): string | undefined =>
    validateDefinition({
      id: "slips",
      steps: [
        { stepId: "a", type: "TASK", taskId: "noop", transitions: { default: target } },
        { stepId: "ship_order", type: "TASK", taskId: "noop" },
      ],
    }).problems?.[0]?.message;

  test.each(["shp_order", "ship_ordr", "Ship_Order", "shiporder", "ship_orders"])(
    "suggests what %s is near to, and reports nothing that follows from it",
    (target) => {
      expect(messageFor(target)).toBe(
        `there is no step ${JSON.stringify(target)}; did you mean "ship_order"?`,
      );
    },
  );

  test("suggests nothing for what is near to nothing", () => {
    expect(messageFor("refund")).toBe('there is no step "refund"');
  });
});

describe("whatever is handed in", () => {
  const documents = [...namesIn("."), ...namesIn("good/").map((name) => `good/${name}`)].map(load);
  const pieces =
    "${ input.x }|${|steps|event.payload.x|workflow.input|ship_order||PT5S|P1M|2026-01-01|order.*|*";
  const types = "TASK|EVENT_WAIT|SET|END|CHOICE|DELAY|PARALLEL|COMPLETED|ALL";
  const texts = fc.constantFrom(...`${pieces}|${types}`.split("|"));
  const values = fc.oneof(texts, fc.jsonValue({ maxDepth: 2 }));

  /** A copy of the document in which the member that `choices` lead to is replaced, or taken out. */
  function mutate(node: unknown, choices: readonly number[], value: unknown): unknown {
    const [choice = 0, ...rest] = choices;
    if (typeof node !== "object" || node === null) return value;
    const entries = Object.entries(node);
    const chosen = entries[choice % Math.max(1, entries.length)];
    if (chosen === undefined) return value;
    const [key, member] = chosen;
    const isLast = rest.length === 0;
    const changed = isLast ? value : mutate(member, rest, value);
    const others = entries.flatMap((entry) =>
      entry[0] === key ? (isLast && value === undefined ? [] : [[key, changed] as const]) : [entry],
    );
    return Array.isArray(node) ? others.map(([, each]) => each) : Object.fromEntries(others);
  }

  test("is answered and not thrown at, and compiles if it has no problems", () => {
    const mutations = fc.array(
      fc.tuple(
        fc.array(fc.nat(20), { minLength: 1, maxLength: 5 }),
        fc.option(values, { nil: undefined }),
      ),
      { minLength: 1, maxLength: 3 },
    );
    let accepted = 0;
    fc.assert(
      fc.property(fc.constantFrom(...documents), mutations, (original, changes) => {
        let mutant = original;
        for (const [path, value] of changes) mutant = mutate(mutant, path, value);

        const { document, problems } = validateDefinition(mutant);

        if (document === undefined) return problems.length > 0;
        accepted += 1;
        // Those inside a PARALLEL or MAP are steps too.
        return compileDefinition(document, 1).steps.size >= document.steps.length;
      }),
      { numRuns: 1_000 },
    );
    expect(accepted).toBeGreaterThan(50);
  }, 60_000);

  test("is answered if it is any value at all", () => {
    fc.assert(
      fc.property(fc.anything(), (value) => {
        expect(validateDefinition(value).problems?.length).toBeGreaterThan(0);
      }),
    );
  });
});

describe("ten thousand steps", () => {
  const size = 10_000;
  const chain = (more: (index: number) => object) => ({
    id: "long",
    steps: Array.from({ length: size }, (_, index) => ({
      stepId: `s${index}`,
      type: "TASK",
      taskId: "noop",
      ...(index + 1 < size && { transitions: { default: `s${index + 1}` } }),
      ...more(index),
    })),
  });
  const last = `s${size - 1}`;

  // Generous; anything quadratic takes far longer.
  const limitMs = 4_000;

  /** Of this process alone: the machine may be busy with others. */
  const cpuMs = (): number => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1_000;
  };

  test.each([
    ["in a row", () => ({})],
    [
      "each with a handler",
      (index: number) => (index === size - 1 ? {} : { onError: [{ errors: ["*"], to: last }] }),
    ],
    ["each skippable", () => ({ condition: "input.on" })],
  ])("%s are checked and compiled in little time", (_how, more) => {
    const started = cpuMs();

    const { document } = validateDefinition(chain(more));
    expect(document && compileDefinition(document, 1).size).toBe(size);

    expect(cpuMs() - started).toBeLessThan(limitMs);
  });

  test("with a problem each give the first thousand and the number of the others", () => {
    const started = cpuMs();

    const { problems } = validateDefinition(
      chain((index) => ({ onError: [{ errors: ["*"], to: `ghost${index}` }] })),
    );

    expect(problems).toHaveLength(1_000);
    expect(problems?.find(({ code }) => code === "TOO_MANY_PROBLEMS")?.message).toBe(
      "and 9001 more problems",
    );
    expect(cpuMs() - started).toBeLessThan(limitMs);
  });
});
