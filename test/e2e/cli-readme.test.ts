import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startProcess } from "@millrace/testkit";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type Dev, program, root, startDev, stopDev } from "./millrace.ts";

/** The blocks of the README's section "Your first workflow", in their order, by language. */
async function firstWorkflow(): Promise<readonly { language: string; text: string }[]> {
  const readme = await readFile(join(root, "README.md"), "utf8");
  const section =
    readme.split(/^## /m).find((each) => each.startsWith("Your first workflow")) ?? "";
  const blocks = [...section.matchAll(/^```(\w+)\n(.*?)^```$/gms)];
  return blocks.map(([, language = "", text = ""]) => ({ language, text }));
}

let folder: string;
let dev: Dev | undefined;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "millrace-readme-"));
});

afterEach(async () => {
  await stopDev(dev);
  await rm(folder, { recursive: true, force: true });
});

test("the first workflow of the README runs as it is printed", async () => {
  const [task, definition, start, use, ...rest] = await firstWorkflow();
  expect([task, definition, start, use].map((each) => each?.language)).toEqual([
    "js",
    "yaml",
    "sh",
    "sh",
  ]);
  expect(rest).toEqual([]);
  await writeFile(join(folder, "greet.mjs"), task?.text ?? "");
  await writeFile(join(folder, "hello.yaml"), definition?.text ?? "");

  const [, args = ""] = /^npx millrace dev (.*)\n$/.exec(start?.text ?? "") ?? [];
  expect(args).toBe("--tasks greet.mjs");
  dev = await startDev("--tasks", join(folder, "greet.mjs"));
  // In a clone `npx millrace` is this program; here the shell is told so.
  const shell = await startProcess({
    command: "/bin/sh",
    args: ["-eu", "-c", `npx() { shift; "$NODE" "$PROGRAM" "$@"; }\n${use?.text}`],
    env: { NODE: process.execPath, PROGRAM: program, MILLRACE_API: dev.ready.api },
    cwd: folder,
  });
  const { code } = await shell.exited;

  const output = shell.output();
  expect(output).toContain("hello.yaml: hello version 1 (new)");
  expect(output).toContain("Hello, Ada!");
  expect(output).toMatch(/hello version 1 {2}COMPLETED/);
  expect(code).toBe(0);
});
