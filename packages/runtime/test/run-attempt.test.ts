import { checkJson } from "@millrace/store";
import { expect, test } from "vitest";
import { asJson, failureOf, maxOutputBytes } from "../src/worker/run-attempt.ts";

const cyclic: Record<string, unknown> = {};
cyclic["self"] = cyclic;

test.each<[string, unknown]>([
  ["has NULs everywhere", thrown({ type: "T\0", message: "m\0", details: { "k\0": "v\0" } })],
  ["has halves of characters", thrown({ type: "T\uD800", message: "m\uD800", details: "\uDC00" })],
  ["is cut within a character", thrown({ type: `${"t".repeat(299)}😀`, message: long("😀") })],
  ["has details that are no JSON", thrown({ details: { list: [1n, cyclic] } })],
  ["has details that are too large", thrown({ details: "d".repeat(maxOutputBytes) })],
  ["is a text", "a text\0"],
  ["is nothing", undefined],
])("an error that %s becomes a failure that can be stored", (_, error) => {
  const failure = failureOf(error);

  expect(checkJson(failure)).toEqual([]);
  expect(JSON.stringify(failure).length).toBeLessThan(10_000);
});

test.each<[string, unknown]>([
  ["a Map", new Map([[1, 2]])],
  ["a Set", { tags: new Set(["a"]) }],
  ["a promise", [Promise.resolve(1)]],
  ["a Date without a time", { at: new Date(Number.NaN) }],
  ["NaN", { n: Number.NaN }],
])("a result with %s in it is refused, since nothing of it would be kept", (what, result) => {
  expect(() => asJson(result)).toThrow(` is ${what}`);
});

test("what JSON keeps, by its own means or by those of a Map or a Set, is no fault", () => {
  const at = new Date(0);
  const shown = Object.assign(new Map(), { toJSON: () => [1] });
  const tags = new (class extends Set {
    toJSON() {
      return [...this];
    }
  })(["a"]);

  expect(asJson({ at, shown, tags, none: null, empty: {}, list: [undefined] })).toEqual({
    at: at.toISOString(),
    shown: [1],
    tags: ["a"],
    none: null,
    empty: {},
    list: [null],
  });
});

test("an error's name, message and details are kept", () => {
  const error = thrown({ type: "Declined", message: "no funds", details: { code: 51 } });

  expect(failureOf(error)).toEqual({
    type: "Declined",
    message: "no funds",
    details: { code: 51 },
    retryable: true,
  });
});

function thrown({ message = "failed", ...members }: { readonly [key: string]: unknown }): Error {
  return Object.assign(new Error(String(message)), members);
}

function long(end: string): string {
  return `${"m".repeat(3_999)}${end}`;
}
