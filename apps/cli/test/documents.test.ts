import { expect, test } from "vitest";
import { readDocuments } from "../src/documents.ts";

test("YAML and JSON of the same content are the same document", () => {
  const json = readDocuments("a.json", '{"id": "a", "steps": [{"stepId": "s"}]}');
  const yaml = readDocuments("a.yaml", "id: a\nsteps:\n  - stepId: s\n");

  expect(json.documents[0]?.value).toEqual({ id: "a", steps: [{ stepId: "s" }] });
  expect(yaml.documents[0]?.value).toEqual(json.documents[0]?.value);
});

test("a YAML file may hold several definitions, each with a place of its own", () => {
  const { documents } = readDocuments("all.yaml", "id: a\n---\nid: b\n---\n");

  expect(documents.map(({ place, value }) => [place, value])).toEqual([
    ["all.yaml#1", { id: "a" }],
    ["all.yaml#2", { id: "b" }],
  ]);
});

test("dates, yes and norway stay texts", () => {
  const { documents } = readDocuments("a.yaml", "at: 2026-01-31\nanswer: yes\ncountry: no\n");

  expect(documents[0]?.value).toEqual({ at: "2026-01-31", answer: "yes", country: "no" });
});

test.each([
  ["a.json", '{\n  "id": "a",\n  "name": "n"\n}', "/name", 3],
  ["a.yaml", "id: a\nsteps:\n  - stepId: s\n    type: TASK\n", "/steps/0/type", 4],
  ["a.yaml", "id: a\nsteps:\n  - stepId: s\n", "/steps/0/taskId", 3],
  ["a.yaml", "id: a\n", "", 1],
  ["a.yaml", "a/b: 1\nc~d: 2\n", "/c~0d", 2],
])("in %s %j, %s is on line %i", (file, text, pointer, line) => {
  const { documents } = readDocuments(file, text);

  expect(documents[0]?.lineOf(pointer)).toBe(line);
});

test.each([
  ["a.json", "", "a.json", "EMPTY_FILE"],
  ["a.yaml", "# nothing\n", "a.yaml", "EMPTY_FILE"],
  ["a.json", '{\n  "id": a\n}', "a.json:2:9", "MALFORMED_JSON"],
  ["a.json", '{"a": [1,\n ]}', "a.json:2:2", "MALFORMED_JSON"],
  ["a.json", '{"a": 1\n "b": 2}', "a.json:2:2", "MALFORMED_JSON"],
  ["a.json", '{"a": {\n', "a.json:2:1", "MALFORMED_JSON"],
  ["a.json", "{'a': 1}", "a.json:1:2", "MALFORMED_JSON"],
  ["a.json", '{"id": "a",\n "id": "b"}', "a.json:2:2", "DUPLICATE_KEY"],
  ["a.yaml", "id: a\nid: b\n", "a.yaml:2:1", "MALFORMED_YAML"],
  ["a.yaml", "steps: [\n", "a.yaml:2:1", "MALFORMED_YAML"],
  ["a.yaml", "a: .nan\n", "a.yaml:/a", "NOT_JSON"],
  ["a.json", '{"a": [0, 9007199254740993]}', "a.json:/a/1", "BAD_NUMBER"],
  ["a.yaml", "a: 1\nb: +9007199254740993\n", "a.yaml:2:4", "BAD_NUMBER"],
  ["a.yaml", "a: 0x20000000000001\n", "a.yaml:1:4", "BAD_NUMBER"],
  ["a.json", `${"[".repeat(100_000)}${"]".repeat(100_000)}`, expect.any(String), "TOO_DEEP"],
  ["a.yaml", "x".repeat(5_000_001), "a.yaml", "TOO_LONG"],
])("%s with a fault is refused with its place", (file, text, place, code) => {
  const { documents, problems } = readDocuments(file, text);

  expect(documents).toEqual([]);
  expect(problems).toEqual([expect.objectContaining({ place, code })]);
});

test.each([
  ["a.yaml", 'a: "\\0"\n'],
  ["a.json", String.raw`{"a":"\u0000"}`],
])(
  "what %s holds that JSON could say is handed on, for an answer that lists all faults",
  (file, text) => {
    expect(readDocuments(file, text).documents[0]?.value).toEqual({ a: "\0" });
  },
);

test("aliases that multiply are refused instead of unfolded", () => {
  const lines = ["a: &a [x,x,x,x,x,x,x,x,x]"];
  for (const [index, name] of "bcdefghi".split("").entries()) {
    const former = `*${"abcdefgh"[index]}`;
    lines.push(`${name}: &${name} [${Array(9).fill(former).join(",")}]`);
  }

  const { documents, problems } = readDocuments("bomb.yaml", lines.join("\n"));

  expect(documents).toEqual([]);
  expect(problems).toHaveLength(1);
});
