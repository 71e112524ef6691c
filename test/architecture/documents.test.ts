import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { expect, test } from "vitest";

const root = resolve(import.meta.dirname, "../..");
const documents = [
  ...readdirSync(root).filter((name) => name.endsWith(".md")),
  ...["docs", "examples", "infra"].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
      .filter((path) => path.endsWith(".md"))
      .map((path) => join(folder, path)),
  ),
];

const read = (path: string) => readFileSync(join(root, path), "utf8");

test.each(documents)("every link of %s leads somewhere", (document) => {
  const links = [...read(document).matchAll(/\]\(([^)#\s]+)(?:#[^)]*)?\)/g)];
  const local = links.map(([, to = ""]) => to).filter((to) => !/^[a-z]+:/.test(to));

  expect(local.filter((to) => !existsSync(join(root, dirname(document), to)))).toEqual([]);
});

test.each(["README.md", "ARCHITECTURE.md"])("what %s names exists", (document) => {
  const path = /`((?:packages|apps|examples|infra|migrations|test|scripts|docs)\/[^`\s*<>]+)`/g;
  const named = [...read(document).matchAll(path)].map(([, name = ""]) => name);

  expect(named.filter((name) => !existsSync(join(root, name)))).toEqual([]);
});

test("ARCHITECTURE.md speaks of every package and app", () => {
  const text = read("ARCHITECTURE.md");
  const folders = ["packages", "apps"]
    .flatMap((group) => readdirSync(join(root, group)).map((name) => `${group}/${name}`))
    .filter((folder) => existsSync(join(root, folder, "package.json")));

  expect(folders.filter((folder) => !text.includes(`\`${folder}\``))).toEqual([]);
});
