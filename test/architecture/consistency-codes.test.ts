import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import {
  CONSISTENCY_CODES,
  consistencySpec,
  type ConsistencyCode,
  WHY_KINDS,
} from "@millrace/contract";
import { expect, test } from "vitest";

const root = resolve(import.meta.dirname, "../..");

test("docs/reliability.md has the table of what the consistency checker finds, word by word", () => {
  const documented = tableUnder("Code").map((cells) => cells.slice(0, 5));

  const codes = Object.keys(CONSISTENCY_CODES) as ConsistencyCode[];
  const expected = codes.map((code) => {
    const { severity, meaning, repair = "–", advice } = consistencySpec(code);
    return [`\`${code}\``, severity.toLowerCase(), meaning, repair, advice];
  });

  expect(documented).toEqual(expected);
});

test("it has the table of what an instance can stand at, each kind once", () => {
  const documented = tableUnder("Kind").map(([kind]) => kind);

  expect(documented).toHaveLength(WHY_KINDS.length);
  expect(new Set(documented)).toEqual(new Set(WHY_KINDS.map((kind) => `\`${kind}\``)));
});

/** The cells of the rows that name something in capitals, of the tables of docs/reliability.md whose first column is headed so. */
function tableUnder(heading: string): readonly (readonly string[])[] {
  const text = readFileSync(join(root, "docs/reliability.md"), "utf8");
  const tables = text.split(/\n\n+/).filter((part) => part.startsWith(`| ${heading} `));
  return tables.flatMap((table) =>
    table.split("\n").flatMap((line) => {
      const [, ...cells] = line.split("|").map((cell) => cell.trim());
      return /^`[A-Z_]+`$/.test(cells[0] ?? "") ? [cells] : [];
    }),
  );
}

test("every code is found by some test", () => {
  const files = [
    "test/integration/consistency.test.ts",
    "test/support/damages.ts",
    "packages/engine/test/consistency.test.ts",
  ];
  const text = files.map((file) => readFileSync(join(root, file), "utf8")).join("");

  const codes = Object.keys(CONSISTENCY_CODES);
  expect(codes.filter((code) => !text.includes(`"${code}"`))).toEqual([]);
});
