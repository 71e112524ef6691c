import { readdirSync, readFileSync } from "node:fs";
import { PROBLEM_CODES } from "@millrace/contract";
import { describe, expect, test } from "vitest";
import { compileDefinition } from "../../src/definition/compile.ts";
import { definitionCodes, definitionWarningCodes } from "../../src/definition/problem.ts";
import { validateDefinition } from "../../src/definition/validate.ts";

const fixtures = new URL("../../../../test/fixtures/definitions/", import.meta.url);

function load(path: string): unknown {
  return JSON.parse(readFileSync(new URL(path, fixtures), "utf8"));
}

function namesIn(folder: string): string[] {
  return readdirSync(new URL(folder, fixtures)).filter((name) => name.endsWith(".json"));
}

interface Broken {
  readonly problems: readonly { readonly path: string; readonly code: string }[];
  readonly document: unknown;
}

describe("a definition that is sound", () => {
  test.each([...namesIn("."), ...namesIn("good/").map((name) => `good/${name}`)])(
    "%s is accepted, and compiles",
    (name) => {
      const { document, problems } = validateDefinition(load(name));

      expect(problems).toBeUndefined();
      expect(document && compileDefinition(document, 1).size).toBeGreaterThan(0);
    },
  );
});

describe("a definition that is broken", () => {
  test.each(namesIn("broken/"))("%s is refused with exactly its problems, in order", (name) => {
    const { problems: expected, document } = load(`broken/${name}`) as Broken;

    const { problems = [] } = validateDefinition(document);

    expect(problems.map(({ path, code }) => ({ path, code }))).toEqual(expected);
    for (const { message } of problems) expect(message.length).toBeGreaterThan(10);
  });

  test("gives only codes that are listed", () => {
    const known = new Set<string>([...PROBLEM_CODES, ...Object.keys(definitionCodes)]);
    for (const name of namesIn("broken/")) {
      const { problems = [], warnings } = validateDefinition(
        (load(`broken/${name}`) as Broken).document,
      );
      for (const { code } of problems) expect(known).toContain(code);
      for (const { code } of warnings) expect(Object.keys(definitionWarningCodes)).toContain(code);
    }
  });
});
