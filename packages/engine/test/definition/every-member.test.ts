import { expect, test } from "vitest";
import { everyMember } from "../../src/definition/schema/every-member.ts";

test("what is in names and values is no keyword", () => {
  const schema = {
    properties: { const: { pattern: "a" } },
    dependencies: { default: { pattern: "b" }, pattern: ["c"] },
    dependentRequired: { enum: [] },
    $defs: { examples: { items: [{ pattern: "d" }] } },
    examples: [{ pattern: "e" }],
  };

  const paths = everyMember(schema).map(({ path }) => path);

  expect(paths).toEqual([
    "/properties",
    "/properties/const/pattern",
    "/dependencies",
    "/dependencies/default/pattern",
    "/dependencies/pattern/0",
    "/dependentRequired",
    "/$defs",
    "/$defs/examples/items",
    "/$defs/examples/items/0",
    "/$defs/examples/items/0/pattern",
    "/examples",
  ]);
});

test("a value to which a reference leads is a schema, too", () => {
  const schema = { $ref: "#/ex%61mples/0", examples: [{ pattern: "a" }], items: [1, 2] };

  const patterns = everyMember(schema).filter(({ key }) => key === "pattern");

  expect(patterns).toEqual([
    { path: "/examples/0/pattern", key: "pattern", value: "a", beside: { pattern: "a" } },
  ]);
});
