import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { definitionJsonSchema } from "@millrace/contract";
import { Ajv2020 } from "ajv/dist/2020.js";
import { expect, test } from "vitest";

const root = new URL("../../../", import.meta.url);
const read = (path: string): unknown => JSON.parse(readFileSync(new URL(path, root), "utf8"));

const validate = new Ajv2020({ strict: false, allErrors: true }).compile(definitionJsonSchema());

const documents = [
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
