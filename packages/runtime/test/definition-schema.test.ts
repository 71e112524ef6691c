import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { definitionJsonSchema, fieldTexts, PROBLEM_CODES } from "@millrace/contract";
import { Ajv2020 } from "ajv/dist/2020.js";
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

interface Broken {
  readonly problems: readonly { readonly code: string }[];
  readonly document: unknown;
}

/** Codes of the shape that a schema can find; the rest are found by those who walk the document. */
const ofTheShape = new Set<string>(
  PROBLEM_CODES.filter((code) => !["NOT_JSON", "TOO_DEEP", "BAD_CHARACTER"].includes(code)),
);
const misshapen = readdirSync(new URL(`${folder}/broken`, root)).filter((name) =>
  (read(`${folder}/broken/${name}`) as Broken).problems.some(({ code }) => ofTheShape.has(code)),
);

test.each(misshapen)("%s, whose shape is broken, does not fit it", (name) => {
  expect(validate((read(`${folder}/broken/${name}`) as Broken).document)).toBe(false);
});

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
  const own = path.endsWith("/if") ? [] : Object.entries(properties);
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
