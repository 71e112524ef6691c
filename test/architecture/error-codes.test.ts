import { readdirSync, readFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { ERROR_CODES, isErrorCode } from "@millrace/contract";
import { expect, test } from "vitest";

const root = resolve(import.meta.dirname, "../..");

/**
 * Codes of errors that never become an answer of the API as such: each is caught, or is a fault of
 * our own that is answered INTERNAL.
 */
const inside: Readonly<Record<string, string>> = {
  "packages/engine": "faults of definitions are listed in problems; INVARIANT is a bug",
  "packages/expressions": "become problems of a definition, or errors of kind EXPRESSION",
  "packages/queue": "caught by the runtime, which leaves the job to the reconciler",
  "packages/devstack": "never runs inside the API",
  "packages/testkit": "never runs inside the API",
  "packages/client": "errors of a caller",
  "packages/sdk": "errors of a caller",
  "apps/cli": "errors of a caller",
};

/** Codes of the store that the API's error handler translates; see `TRANSLATED` there. */
const translated = [
  "TRANSACTION_CONFLICT",
  "STATEMENT_TIMEOUT",
  "BAD_CURSOR",
  // These two are faults of our own: INTERNAL.
  "DATA_REFUSED",
  "DATABASE_FAULT",
];

test("every code of an error that can reach a caller is in the contract's table", () => {
  const found = sources()
    .filter((file) => !Object.keys(inside).some((folder) => file.startsWith(`${folder}/`)))
    .flatMap((file) => codesIn(file).map((code) => ({ file, code })));

  expect(found.length).toBeGreaterThan(10);
  expect(found.filter(({ code }) => !isErrorCode(code) && !translated.includes(code))).toEqual([]);
});

test.each(Object.entries(ERROR_CODES))("%s has a status and a title", (_, { status, title }) => {
  expect(status).toBeGreaterThanOrEqual(400);
  expect(title).toMatch(/^[A-Z]/);
});

/** `readonly code = "X"` of an error class, and `new ApiError("X"`. */
function codesIn(file: string): string[] {
  const text = readFileSync(join(root, file), "utf8");
  const patterns = [
    /^\s*(?:override )?readonly code(?:: \w+)? = "([A-Z_]+)"/gm,
    /new ApiError\(\s*"([A-Z_]+)"/g,
  ];
  return patterns.flatMap((pattern) => [...text.matchAll(pattern)].map(([, code = ""]) => code));
}

function sources(): string[] {
  return ["packages", "apps"].flatMap((group) =>
    readdirSync(join(root, group)).flatMap((name) => filesBelow(join(root, group, name, "src"))),
  );
}

function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(".ts"))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)));
}
