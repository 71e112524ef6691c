import fc from "fast-check";
import { expect, test } from "vitest";
import { rowSource, textArray } from "../src/unnest.ts";

/** As Postgres reads the text of an array without nested ones: `\x` is x, unquoted null is null. */
function read(literal: string): readonly (string | null)[] {
  expect(literal.startsWith("{") && literal.endsWith("}")).toBe(true);
  const elements: (string | null)[] = [];
  const element = /"(?<quoted>(?:[^"\\]|\\[^])*)"|(?<plain>[^,{}"\\]+)/y;
  let at = 1;
  while (at < literal.length - 1) {
    element.lastIndex = at;
    const match = element.exec(literal);
    if (match === null) throw new Error(`no element at ${at} of ${literal}`);
    const { quoted, plain } = match.groups ?? {};
    if (quoted !== undefined) elements.push(quoted.replace(/\\([^])/g, "$1"));
    else elements.push(plain === "null" ? null : (plain ?? ""));
    at = element.lastIndex + 1;
  }
  return elements;
}

const anyText = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.constantFrom("null", "NULL", "", "\n\t", '"', "\\", "\\n", "{a,b}", " a "),
);

test("texts come out of an array literal as they went in", () => {
  const source = rowSource<string | null>({ value: { type: "text", of: (value) => value } });
  fc.assert(
    fc.property(fc.array(fc.option(anyText)), (values) => {
      const [literal = ""] = source.values(values);
      const written = read(literal);
      // `unnest` fills up what is shorter than other columns.
      const nulls = values.slice(written.length);
      expect([...written, ...nulls.map(() => null)]).toEqual(values);
      expect(written.at(-1)).not.toBeNull();
    }),
  );
  fc.assert(
    fc.property(fc.array(anyText), (texts) => {
      expect(read(textArray(texts))).toEqual(texts);
    }),
  );
});

test("JSON texts come out of an array literal as they went in", () => {
  const source = rowSource<string>({ value: { type: "json", of: (value) => value } });
  fc.assert(
    fc.property(fc.array(fc.jsonValue({ stringUnit: "binary" }), { minLength: 1 }), (values) => {
      const texts = values.map((value) => JSON.stringify(value));
      expect(read(source.values(texts)[0] ?? "")).toEqual(texts);
    }),
  );
});

test("times, numbers and truth values are written plainly", () => {
  const at = new Date("2026-01-02T03:04:05.678Z");
  const source = rowSource<number>({
    at: { type: "timestamptz", of: () => at },
    n: { type: "integer", of: (n) => n },
    ok: { type: "boolean", of: (n) => n > 1 },
    none: { type: "uuid", of: () => null },
  });

  expect(source.values([1, 2])).toEqual([
    "{2026-01-02T03:04:05.678Z,2026-01-02T03:04:05.678Z}",
    "{1,2}",
    "{false,true}",
    "{}",
  ]);
  expect(source.from("x", 5)).toBe(
    "unnest($5::timestamptz[], $6::integer[], $7::boolean[], $8::uuid[]) as x (at, n, ok, none)",
  );
  expect(source.from("x", 5, ["ok", "at"])).toBe(
    "unnest($5::timestamptz[], $7::boolean[]) as x (at, ok)",
  );
});
