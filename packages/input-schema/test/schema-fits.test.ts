import fc from "fast-check";
import { expect, test } from "vitest";
import { problemList } from "../../engine/src/definition/problem.ts";
import { checkSchemaFits } from "../../engine/src/definition/schema-fits.ts";
import { compileInputSchema } from "../src/input-schema.ts";

const seed = Number(process.env["MILLRACE_SEED"] ?? 20_261_128);

/** An overflow of the stack takes its time. */
const runs = Number(process.env["MODEL_RUNS"] ?? 60);

function refusalsOf(schema: unknown): readonly string[] {
  const list = problemList([]);
  checkSchemaFits(schema, list);
  return list.problems.map(({ path }) => path.slice("/inputSchema".length));
}

const references = ["#", "#/$defs/a", "#/$defs/b"];
const types = ["null", "boolean", "number", "integer", "string", "array", "object"];
const named = fc.constantFrom<unknown>(1, "x", null, { k: 1 });
/** Of each type one that no schema names, and those that they do. */
const probes = [null, true, false, 0, 1, 1.5, "", "x", [], [0], {}, { k: 1 }, { m: 0 }];

/** Schemas of the keywords that apply schemas to the same value: what else there is only depends on its type. */
const { schema } = fc.letrec<{ schema: unknown }>((tie) => {
  const some = fc.array(tie("schema"), { minLength: 1, maxLength: 3 });
  const of = (key: string, value: fc.Arbitrary<unknown>) =>
    value.map((each) => [key, each] as const);
  const keyword = fc.oneof(
    { weight: 4, arbitrary: of("$ref", fc.constantFrom(...references)) },
    { weight: 2, arbitrary: of("type", fc.constantFrom(...types)) },
    of("const", named),
    of("enum", fc.uniqueArray(named, { minLength: 1, maxLength: 2, selector: JSON.stringify })),
    of("anyOf", some),
    of("oneOf", some),
    of("allOf", some),
    of("not", tie("schema")),
    of("if", tie("schema")),
    of("then", tie("schema")),
    of("else", tie("schema")),
  );
  return {
    schema: fc.oneof(
      { maxDepth: 3, depthSize: "small" },
      fc.constantFrom<unknown>(true, {}, { type: "string" }, { $ref: "#" }, false),
      {
        weight: 6,
        arbitrary: fc.array(keyword, { minLength: 1, maxLength: 4 }).map(Object.fromEntries),
      },
    ),
  };
});

const whole = fc.tuple(schema, schema, schema).map(([root, a, b]) => ({
  ...(typeof root === "object" ? root : { not: root === false ? {} : false }),
  $defs: { a, b },
}));

function compiled(inputSchema: unknown) {
  try {
    return compileInputSchema({ inputSchema });
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

test(`a random schema is refused where no value passes it, and only there (seed ${seed})`, () => {
  let refused = 0;
  let endless = 0;
  fc.assert(
    fc.property(whole, (inputSchema) => {
      const check = compiled(inputSchema);
      // A reference to itself alone is no schema.
      if (check === undefined) return;
      const answers = probes.map((probe) => check(probe));
      const passes = answers.some((problems) => problems.length === 0);
      const isRefused = refusalsOf(inputSchema).length > 0;
      if (isRefused) refused += 1;
      if (answers.every(([first]) => first?.code === "TOO_DEEP")) endless += 1;
      expect(isRefused).toBe(!passes);
    }),
    { seed, numRuns: runs },
  );
  expect(refused).toBeGreaterThan(runs / 10);
  expect(endless).toBeGreaterThan(runs / 20);
}, 300_000);
