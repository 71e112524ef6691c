import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createTemporaryFolder } from "@millrace/testkit";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { loadTasks } from "../src/worker/load-tasks.ts";
import { moduleFault } from "../src/worker/module-fault.ts";
import { taskRegistry } from "../src/worker/task-registry.ts";

let folder: Awaited<ReturnType<typeof createTemporaryFolder>>;
beforeAll(async () => {
  folder = await createTemporaryFolder();
});
afterAll(() => folder.remove());

/** @returns What is loaded, said or refused. */
async function load(name: string, text: string) {
  const file = join(folder.path, name);
  await writeFile(file, text);
  const warnings: string[] = [];
  const warn = (message: string) => warnings.push(message.replace(`${folder.path}/`, ""));
  const tasks = await loadTasks([file], warn).catch((error: unknown) => String(error));
  return { tasks, warnings };
}

test.each([
  ["a-function.mjs", "export const greet = (context, { name }) => name;"],
  ["no-run.mjs", 'export const x = { id: "x" };'],
  ["no-id.mjs", 'export const y = { name: "y", run() {} };'],
  ["a-number.mjs", "export const z = 1;"],
])("%s, a module without a task, is told of", async (name, text) => {
  const { tasks, warnings } = await load(name, text);

  expect(tasks).toEqual([]);
  expect(warnings).toEqual([expect.stringContaining(`${name}: there is no task in it.`)]);
});

test("a folder without a module is told of", async () => {
  const path = join(folder.path, "empty");
  await mkdir(path);
  const warnings: string[] = [];

  await loadTasks([path], (message) => warnings.push(message));

  expect(warnings).toEqual([`${path}: there is no module (.js, .mjs, .ts, .mts) in it`]);
});

test("what fails in being loaded is told by its name, and all that is wrong with the tasks of a file", async () => {
  const thrown = await load("thrown.mjs", '\nthrow new TypeError("config is missing");\n');
  const tasks = await load(
    "tasks.mjs",
    'export default [{ id: "y", run: 5 }, null, { id: "", run() {} }];',
  );

  expect(thrown.tasks).toContain("thrown.mjs: TypeError: config is missing");
  expect(tasks.tasks).toContain(
    'export "default": task y: "run" must be a function; export "default": a task has a non-empty string "id"',
  );
});

test("where a module cannot be read is told, in a worker that is being debugged, too", async () => {
  vi.stubEnv("NODE_OPTIONS", "--inspect-brk=127.0.0.1:0");
  try {
    const { tasks } = await load("unreadable.mjs", "let a;\nlet a;");

    expect(tasks).toMatch(/unreadable\.mjs: SyntaxError: .*, in line 2$/);
  } finally {
    vi.unstubAllEnvs();
  }
});

test.each([
  ["/tasks/no.ts", "ERR_INVALID_TYPESCRIPT_SYNTAX", "Unexpected token `)`. Expected an identifier"],
  [
    "file:///tasks/enum.mts",
    "ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX",
    "TypeScript enum is not supported",
  ],
])("what a Node that strips types cannot read of %s is told as it is", (place, code, message) => {
  const error = new SyntaxError(message);
  error.stack = `${place}:3\nenum A { B }\n^^^^\n\nSyntaxError [${code}]: ${message}`;

  expect(moduleFault("no.ts", error, true)).toBe(`SyntaxError: ${message}, in ${place}:3`);
  expect(moduleFault("no.ts", new SyntaxError("Unexpected token ':'"), false)).toContain("22.18");
});

test("where a module has thrown an error of syntax itself is told", () => {
  const error = new SyntaxError("no JSON");
  const frame = "    at file:///tasks/parses.ts:2:6";
  error.stack = `SyntaxError: no JSON\n    at JSON.parse (<anonymous>)\n${frame}`;

  expect(moduleFault("/tasks/parses.ts", error, true)).toBe(`SyntaxError: no JSON\n${frame}`);
});

test("what a module of CommonJS exports is found once, whatever Node calls it", async () => {
  const { tasks } = await load(
    "twice.mjs",
    'const t = { id: "t", run: 5 };\nexport { t as default, t as "module.exports" };',
  );

  expect(tasks).toMatch(/export "default": task t: "run" must be a function$/);
});

test("a module whose top-level await never ends is told of, and given up after half a minute", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  try {
    const loading = load("endless.mjs", "await new Promise(() => {});");
    await vi.waitUntil(() => vi.getTimerCount() > 0);
    vi.advanceTimersByTime(30_000);
    const { tasks, warnings } = await loading;

    expect(warnings).toHaveLength(5);
    expect(warnings[0]).toContain("endless.mjs: it has not come to its end in 5 s");
    expect(tasks).toContain("endless.mjs: it has not come to its end in 30 s, and is given up");
  } finally {
    vi.useRealTimers();
  }
});

test.each([
  ["Array.prototype.toJSON", "Array.prototype.toJSON = function () { return String(this); };"],
  ["Object.prototype.extend", "Object.prototype.extend = function () {};"],
])(
  "a module that sets %s is refused, since all that the worker stores would be wrong",
  async (name, text) => {
    const { tasks } = await load(`${name}.mjs`, `${text}\nexport const t = { id: "t", run() {} };`);
    Reflect.deleteProperty(Object.prototype, "extend");
    Reflect.deleteProperty(Array.prototype, "toJSON");

    expect(tasks).toContain(`${name}.mjs: ${name} is`);
    expect((await load("after.mjs", 'export const t = { id: "t", run() {} };')).tasks).toHaveLength(
      1,
    );
  },
);

test("a task that takes the id of one that is built in is refused as such", () => {
  const run = async () => null;

  expect(() => taskRegistry([{ id: "echo", run }])).toThrow('task "echo" is built in');
  expect(taskRegistry([{ id: "own", run }]).has("echo")).toBe(true);
});
