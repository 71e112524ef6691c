import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { CONSISTENCY_CODES, consistencySpec, type ConsistencyCode } from "@millrace/contract";
import { expect, test } from "vitest";

const root = resolve(import.meta.dirname, "../..");

test("docs/reliability.md has the table of what the consistency checker finds, word by word", () => {
  const text = readFileSync(join(root, "docs/reliability.md"), "utf8");
  const documented = text.split("\n").flatMap((line) => {
    const cells = line.split("|").map((cell) => cell.trim());
    return /^`[A-Z_]+`$/.test(cells[1] ?? "") ? [cells.slice(1, 6)] : [];
  });

  const codes = Object.keys(CONSISTENCY_CODES) as ConsistencyCode[];
  const expected = codes.map((code) => {
    const { severity, meaning, repair = "–", advice } = consistencySpec(code);
    return [`\`${code}\``, severity.toLowerCase(), meaning, repair, advice];
  });

  expect(documented).toEqual(expected);
});

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
