import { readFileSync, writeFileSync } from "node:fs";
import { PROBLEM_CODES } from "@millrace/contract";
import { definitionCodes, definitionWarningCodes } from "@millrace/engine";
import { expect, test } from "vitest";

const path = new URL("../../../docs/definition-checks.md", import.meta.url);

const opening = `# What registration checks

Registering a definition, \`POST /v1/definitions/validate\`, \`millrace apply --dry-run\` and \`defineWorkflow()\`
use one checker. It reports every finding at once, each with a JSON pointer, a code and a message. Codes are
stable. Errors refuse the definition (422); warnings come beside the answer.

Nothing is called an error that some input could make right. What the types of values are is taken from
\`inputSchema\` and from the types of steps: a task may give anything, and variables may be set from outside.

This page is written from the tables of the checker: \`UPDATE_DOCS=1 npx vitest run --project unit
packages/runtime/test/definition-codes.test.ts\`, then \`npm run format\`.`;

function tableOf(codes: Readonly<Record<string, string>>): string {
  const rows = Object.entries(codes).map(([code, meaning]) => `| \`${code}\` | ${meaning} |`);
  return ["| code | is found where there is |", "| --- | --- |", ...rows].join("\n");
}

function pageOf(): string {
  const shape = PROBLEM_CODES.map((code) => `\`${code}\``).join(", ");
  return [
    opening,
    "## Errors",
    `Of the document's shape: ${shape}.`,
    "Of what it says:",
    tableOf(definitionCodes),
    "## Warnings",
    "What is allowed and yet likely not what was meant.",
    tableOf(definitionWarningCodes),
  ].join("\n\n");
}

/** Blanks and the lines of tables are the formatter's. */
function bare(text: string): string {
  return text.replaceAll(/-{3,}/g, "---").replaceAll(/\s+/g, " ").trim();
}

test("the page lists every code of the checker, and no other", () => {
  if (process.env["UPDATE_DOCS"] === "1") writeFileSync(path, `${pageOf()}\n`);

  expect(bare(readFileSync(path, "utf8"))).toBe(bare(pageOf()));
});
