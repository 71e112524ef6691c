import { ok } from "node:assert/strict";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { definitionJsonSchema, fieldTexts, PROBLEM_CODES } from "@millrace/contract";
import { definitionCodes, validateDefinition } from "@millrace/engine";
import { Ajv2020 } from "ajv/dist/2020.js";
import fc from "fast-check";
import { expect, test } from "vitest";

const root = new URL("../../../", import.meta.url);
const read = (path: string): unknown => JSON.parse(readFileSync(new URL(path, root), "utf8"));

const validate = new Ajv2020({ strict: false, allErrors: true }).compile(definitionJsonSchema());

const folder = "test/fixtures/definitions";

const documents = [
  ...readdirSync(new URL(`${folder}/good`, root)).map((name) => `${folder}/good/${name}`),
  ...readdirSync(new URL("test/fixtures/definitions", root))
    .filter((name) => name.endsWith(".json"))
    .map((name) => `test/fixtures/definitions/${name}`),
  "examples/order-processing/order_processing.json",
];

test.each(documents)("%s fits the published schema", (path) => {
  validate(read(path));

  expect(validate.errors ?? []).toEqual([]);
});

test.each([
  ["no steps", { id: "a", steps: [] }],
  ["a bad id", { id: "1", steps: [{ stepId: "a", type: "TASK", taskId: "x" }] }],
  ["an unknown type", { id: "a", steps: [{ stepId: "a", type: "TSAK", taskId: "x" }] }],
  ["a slip in a field", { id: "a", steps: [{ stepId: "a", type: "TASK", taskid: "x" }] }],
  [
    "a slip within a branch",
    {
      id: "a",
      steps: [
        {
          stepId: "p",
          type: "PARALLEL",
          branches: [{ name: "b", steps: [{ stepId: "a", type: "DELAY", durations: "PT1S" }] }],
        },
      ],
    },
  ],
])("%s does not fit it", (_, document) => {
  expect(validate(document)).toBe(false);
});

interface Found {
  readonly path: string;
  readonly code: string;
}

interface Broken {
  readonly problems: readonly Found[];
  readonly document: unknown;
}

/** Codes of what a schema can see of a single field, or of a step's fields together. */
const ofTheShape = new Set<string>([
  ...PROBLEM_CODES.filter((code) => !["NOT_JSON", "TOO_DEEP", "BAD_CHARACTER"].includes(code)),
  "CLOCK_OF_TASKS",
  "MISPLACED",
  "BAD_VARIABLE",
  "BAD_PATH",
]);

/** Codes that a schema can see of a text unless its expressions decide, or what no pattern can tell. */
const ofTheText = new Set<string>([
  "EMPTY",
  "BAD_DURATION",
  "BAD_TIME",
  "BAD_PATTERN",
  "RESERVED_PATTERN",
]);

/**
 * What a schema cannot say: what targets, expressions and types are, which ids there are, where ways
 * lead, and what only counting or another schema would tell.
 */
const beyondASchema = new Set<string>([
  "NOT_JSON",
  "TOO_DEEP",
  "BAD_CHARACTER",
  "DUPLICATE_ID",
  "UNKNOWN_STEP",
  "OTHER_LIST",
  "DUPLICATE_BRANCH",
  "BAD_JOIN",
  "BAD_ID",
  "UNREACHABLE_STEP",
  "JOIN_NEVER_REACHED",
  "OUTPUT_NEVER_THERE",
  "CYCLE_WITHOUT_WAIT",
  "DUPLICATE_COMPENSATION",
  "NOT_COMPENSABLE",
  "RECURSIVE_WORKFLOW",
  "EVENT_NOT_AT_HAND",
  "SCHEMA_TOO_LARGE",
  "PATTERN_TOO_COSTLY",
  "BAD_SCHEMA",
  "NOTHING_FITS",
  "NO_KNOWN_INPUT",
  "SYNTAX",
  "UNCLOSED",
  "NOT_ALLOWED",
  "UNKNOWN_ROOT",
  "UNKNOWN_PROPERTY",
  "TYPE_MISMATCH",
  "UNKNOWN_FUNCTION",
  "UNKNOWN_METHOD",
  "WRONG_ARGUMENTS",
  "FORBIDDEN_PROPERTY",
  "COMPUTED_STEPS",
  "TOO_LONG",
  "TOO_MANY",
  "BAD_LITERAL",
]);

/** Texts without expressions that no pattern tells from good ones. */
const tooFine = [
  "bad-delay-time.json",
  "lifecycle-lookback.json /steps/0/lookback",
  "lifecycle-lookback-known.json /steps/0/lookback",
];

test("each code of the checker is one that the schema sees, or is listed as beyond it", () => {
  const listed = [...ofTheShape, ...ofTheText, ...beyondASchema];

  expect([...new Set(listed)].toSorted()).toEqual(
    [...new Set([...PROBLEM_CODES, ...Object.keys(definitionCodes)])].toSorted(),
  );
});

const broken = readdirSync(new URL(`${folder}/broken`, root)).map((name) => ({
  name,
  ...(read(`${folder}/broken/${name}`) as Broken),
}));

/** What is wrong with it that the schema must see. */
function visible({ name, problems, document }: (typeof broken)[number]): readonly Found[] {
  return problems.filter(({ path, code }) => {
    if (!ofTheText.has(code)) return ofTheShape.has(code);
    const isPlain = !String(valueAt(path, document)).includes("${");
    return isPlain && !tooFine.some((each) => `${name} ${path}`.startsWith(each));
  });
}

test.each(broken.filter((each) => visible(each).length > 0))(
  "$name, whose shape is broken, does not fit it, and is refused where it is",
  (each) => {
    validate(each.document);

    const places = (validate.errors ?? []).flatMap(({ instancePath, params }) => {
      const { missingProperty, additionalProperty, propertyName } = params as Named;
      const name = missingProperty ?? additionalProperty ?? propertyName;
      return [instancePath, ...(name === undefined ? [] : [`${instancePath}/${name}`])];
    });
    for (const { path } of visible(each)) {
      // Of fields that exclude one another the step is named.
      expect(places.some((place) => path === place || path.startsWith(`${place}/`))).toBe(true);
    }
  },
);

interface Named {
  readonly missingProperty?: string;
  readonly additionalProperty?: string;
  readonly propertyName?: string;
}

function valueAt(path: string, document: unknown): unknown {
  return path
    .split("/")
    .slice(1)
    .reduce(
      (value: unknown, key) => (value as Record<string, unknown> | undefined)?.[key],
      document,
    );
}

/** A text in one place of a definition that is sound but for it. */
const placesOfTexts: Readonly<Record<string, (text: string) => object>> = {
  "a wait's pattern": (text) => ({ steps: [{ ...wait, eventPattern: text }] }),
  "an awaited event's pattern": (text) => ({
    steps: [{ ...wait, eventPattern: undefined, events: [{ eventPattern: text }] }],
  }),
  "an emitted name": (text) => ({
    steps: [{ stepId: "a", type: "EMIT_EVENT", eventPattern: text, payload: 1 }],
  }),
  "a start trigger's pattern": (text) => ({ startTriggers: [{ eventPattern: text }] }),
  "a cancellation trigger's pattern": (text) => ({
    cancellationTriggers: [{ eventPattern: text, reason: "r" }],
  }),
  "a duration": (text) => ({ steps: [{ stepId: "a", type: "DELAY", duration: text }] }),
  "a working duration": (text) => ({
    steps: [{ stepId: "a", type: "DELAY", duration: text, calendarId: "office" }],
  }),
  "a clock": (text) => ({ timeout: text }),
  "a lookback": (text) => ({ steps: [{ ...wait, lookback: text }] }),
  "an interval": (text) => ({ retry: { initialInterval: text } }),
  "a time": (text) => ({ steps: [{ stepId: "a", type: "DELAY", until: text }] }),
  "a path": (text) => ({ steps: [{ ...wait, eventPayloadMapping: { v: text } }] }),
  "a task": (text) => ({ steps: [{ stepId: "a", type: "TASK", taskId: text }] }),
  "a variable": (text) => ({ variables: { [text]: 1 } }),
};

/** What it comes to decides: by itself, or as a list where a time may be an expression. */
function isExpression(text: string): boolean {
  return text.includes("${") || text.startsWith("[");
}

const wait = { stepId: "w", type: "EVENT_WAIT", eventPattern: "a" };

const oneOf = (...parts: readonly string[]) => fc.constantFrom(...parts);
const joined = (each: fc.Arbitrary<string>, most: number) =>
  fc.array(each, { maxLength: most }).map((parts) => parts.join(""));

const anyText = fc.oneof(
  joined(oneOf("a", "order", "workflow", "*", "**", ".", ".", ".", " ", "x*", "${ input.x }"), 26),
  joined(oneOf("a.", "*.", "workflow.", "b".repeat(30), "**", "c"), 14),
  fc
    .tuple(
      oneOf("P", "p", "-P", ""),
      joined(oneOf("1", "0", "12", ".5", "Y", "M", "W", "D", "T", "H", "S"), 9),
    )
    .map((parts) => parts.join("")),
  fc
    .tuple(
      oneOf("P1Y", "P0Y", "P", "P2W", "P1.5W", "P1.5D", "P3D"),
      oneOf("", "0M", "1M"),
      oneOf("", "T", "T1H", "T0.2S", "T1.5H2S", "T90M0.123456789S"),
    )
    .map((parts) => parts.join("")),
  fc
    .tuple(
      oneOf(
        "2030-01-31",
        "2030-13-01",
        "-000001-01-01",
        "+010000-01-01",
        " 2030-01-01",
        "0000-01-01",
      ),
      oneOf("", "T09:00", "T24:00:00", "T25:00Z", "T09:00:00.5"),
      oneOf("", "Z", "+01:00", "+1"),
    )
    .map((parts) => parts.join("")),
  joined(
    oneOf(
      "a",
      ".",
      "[0]",
      "['b c']",
      '["d"]',
      "['__proto__']",
      "constructor",
      "[",
      "]",
      "event.payload.",
      "$.",
      " ",
    ),
    6,
  ),
  oneOf("instance", "__proto__", "prototype", "input.due", "now()", " ", "${ input.x }"),
);

test.each(Object.entries(placesOfTexts))(
  "whatever is accepted as %s fits it, and nearly nothing else does",
  (_, around) => {
    const seen = { accepted: 0, refused: 0, missed: 0 };
    fc.assert(
      fc.property(anyText, (text) => {
        const document: unknown = JSON.parse(
          JSON.stringify({
            id: "a",
            steps: [{ stepId: "a", type: "TASK", taskId: "b" }],
            ...around(text),
          }),
        );
        const { problems = [] } = validateDefinition(document);
        const isRefused = problems.some(({ code }) => ofTheShape.has(code) || ofTheText.has(code));
        const fits = validate(document);
        ok(fits || problems.length > 0, text);
        seen[problems.length === 0 ? "accepted" : "refused"] += 1;
        if (isRefused && fits && !isExpression(text)) seen.missed += 1;
      }),
      { numRuns: 400 },
    );
    // Durations of more than a thousand years.
    expect(seen.missed).toBeLessThan(10);
    expect(seen.accepted).toBeGreaterThan(0);
  },
);

test("what is wrong with a step is said of its own type alone", () => {
  validate({ id: "a", steps: [{ stepId: "a", type: "TASK", taskid: "x" }] });

  const found = (validate.errors ?? []).filter(({ keyword }) => keyword !== "if");
  expect(found.map(({ keyword }) => keyword).toSorted()).toEqual([
    "additionalProperties",
    "required",
  ]);
});

interface Part {
  readonly properties?: Readonly<Record<string, Part>>;
  readonly description?: string;
  readonly examples?: readonly unknown[];
}

/** Every field in it, with the parts around it. */
function fieldsIn(part: unknown, path = ""): readonly (readonly [string, Part])[] {
  if (typeof part !== "object" || part === null) return [];
  const { properties = {} } = part as Part;
  // What only tells apart is said where it is.
  const own = /\/(?:if|not)$/.test(path) ? [] : Object.entries(properties);
  return [
    ...own.map(([name, each]) => [`${path}/${name}`, each] as const),
    ...Object.entries(part).flatMap(([key, each]) => fieldsIn(each, `${path}/${key}`)),
  ];
}

test("an editor can say of every field what it means, by examples that fit", () => {
  const schema = definitionJsonSchema();
  const ajv = new Ajv2020({ strict: false }).addSchema(schema, "definition");
  const fields = fieldsIn(schema).filter(([path]) => !/\/(?:if|examples)\//.test(path));
  expect(fields.length).toBeGreaterThan(150);

  expect(fields.filter(([, { description }]) => !description).map(([path]) => path)).toEqual([]);
  const known = new Set(fields.map(([path]) => path.slice(path.lastIndexOf("/") + 1)));
  const texts = Object.keys(fieldTexts).map((name) => name.slice(name.lastIndexOf(".") + 1));
  expect(texts.filter((name) => !known.has(name))).toEqual([]);

  for (const [path, { examples = [], ...part }] of fields) {
    const fits = ajv.compile(JSON.parse(JSON.stringify(part).replaceAll('"#/', '"definition#/')));
    for (const example of examples) expect([path, example, fits(example)]).toContain(true);
  }
});

test("every part of it has a name", () => {
  const names = Object.keys(definitionJsonSchema()["$defs"] as object);

  expect(names).toContain("TaskStep");
  expect(names.filter((name) => name.startsWith("__"))).toEqual([]);
});

/** `UPDATE_SCHEMA=1` writes it again; then `npm run format`. */
test("the schema in the repository is the one that the API publishes", () => {
  const text = JSON.stringify(definitionJsonSchema(), null, 2);
  const path = "docs/schemas/definition.json";
  if (process.env["UPDATE_SCHEMA"] === "1") writeFileSync(new URL(path, root), `${text}\n`);

  expect(read(path)).toEqual(JSON.parse(text));
});
