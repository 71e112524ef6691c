import { expect, test } from "vitest";
import { jsonLine, printable } from "../src/output.ts";
import { withoutPassword } from "../src/secrets.ts";
import { table } from "../src/table.ts";
import { durationBetween, durationText } from "../src/times.ts";

test.each([
  [0, "0 ms"],
  [999, "999 ms"],
  [1_000, "1.0 s"],
  [59_940, "59.9 s"],
  [60_000, "1 min"],
  [184_000, "3 min 4 s"],
  [7_500_000, "2 h 5 min"],
  [273_600_000, "3 d 4 h"],
  [-5, "0 ms"],
])("%i milliseconds are %s", (milliseconds, text) => {
  expect(durationText(milliseconds)).toBe(text);
});

test("between two times is a duration only when both are known", () => {
  const start = "2026-01-31T12:00:00.000Z";

  expect(durationBetween(start, "2026-01-31T12:00:01.500Z")).toBe("1.5 s");
  expect(durationBetween(start, null)).toBeUndefined();
  expect(durationBetween(undefined, start)).toBeUndefined();
});

test("text from outside cannot steer the terminal", () => {
  expect(printable("a\u001b[2Jb\r\nc\u202ed")).toBe("a\\u001b[2Jb\\r\\nc\\u202ed");
});

test("long values are cut to the width that there is", () => {
  expect(jsonLine({ text: "x".repeat(50) }, 20)).toBe('{"text":"xxxxxxxxxx…');
});

test("columns are as wide as what is seen of their cells", () => {
  const lines = table(
    ["NAME", "COUNT"],
    [
      ["\u001b[32mgreen\u001b[0m", "5"],
      ["a", "100"],
    ],
    ["COUNT"],
  );

  expect(lines).toEqual(["NAME   COUNT", "\u001b[32mgreen\u001b[0m      5", "a        100"]);
});

test("a password is never shown", () => {
  expect(withoutPassword("postgres://me:secret@db/x")).toBe("postgres://me:***@db/x");
  expect(withoutPassword("not a url with a secret")).toBe("the database");
});
