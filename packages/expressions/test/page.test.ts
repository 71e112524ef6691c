import { readFileSync, writeFileSync } from "node:fs";
import { functions, limits, methods } from "@millrace/expressions";
import type { Documented } from "@millrace/expressions";
import { expect, test } from "vitest";

const path = new URL("../../../docs/expressions.md", import.meta.url);
const generatedFrom = "## Functions";

const of = { string: "Of texts:", array: "Of lists:", number: "Of numbers:" };

const bounds: Readonly<Record<keyof typeof limits, string>> = {
  sourceLength: "characters of one expression",
  expressions: "expressions in one value",
  depth: "levels of nesting in an expression",
  work: "units of work: one for each element that is visited, and for every 16 characters",
  stringLength: "characters of a text that is made",
  arrayLength: "elements of a list, or keys of an object, that is made",
  resultSize: "characters of what a value becomes, as JSON",
  resultDepth: "levels of nesting in what a value becomes",
};

function tableOf(documented: readonly Documented[], receiver = ""): string {
  const rows = documented.map(({ name, parameters, summary, example: [source, result] }) =>
    row([
      `\`${receiver}${name}(${parameters})\``,
      summary,
      `\`${source}\` is \`${JSON.stringify(result)}\``,
    ]),
  );
  return [row(["call", "gives", "example"]), row(["---", "---", "---"]), ...rows].join("\n");
}

function row(cells: readonly string[]): string {
  return `| ${cells.join(" | ")} |`;
}

function generated(): string {
  const kinds = ["string", "array", "number"] as const;
  return [
    generatedFrom,
    "An argument `name?` may be left out; `...name` takes any number.",
    tableOf(functions),
    "## Methods",
    "On a missing value a method gives undefined; on a value of another type it is an error.",
    ...kinds.flatMap((on) => [
      of[on],
      tableOf(
        methods.filter((method) => method.on === on),
        ".",
      ),
    ]),
    "## Limits",
    "One more is an error, at registration or of kind `EXPRESSION`, and never holds up a process.",
    Object.entries(limits)
      .map(
        ([name, most]) => `- ${most.toLocaleString("en")} ${bounds[name as keyof typeof limits]}`,
      )
      .join("\n"),
    `What stands from "Functions" on is written from the tables of the language: \`UPDATE_DOCS=1 npx vitest run
--project unit packages/expressions/test/page.test.ts\`, then \`npm run format\`.`,
  ].join("\n\n");
}

/** Blanks and the lines of tables are the formatter's. */
function bare(text: string): string {
  return text.replaceAll(/-{3,}/g, "---").replaceAll(/\s+/g, " ").trim();
}

test("the page lists every function, method and limit, and no other", () => {
  const page = readFileSync(path, "utf8");
  const [written = ""] = page.split(generatedFrom);
  if (process.env["UPDATE_DOCS"] === "1") writeFileSync(path, `${written}${generated()}\n`);

  expect(bare(readFileSync(path, "utf8").slice(written.length))).toBe(bare(generated()));
});
