import { readdir, stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { isTask, taskFault } from "@millrace/sdk";
import type { Task } from "@millrace/sdk";
import { StartError } from "../start-failure.ts";
import { changeToAllObjects } from "./all-objects.ts";
import { importModule } from "./import-module.ts";
import { moduleFault } from "./module-fault.ts";
import { whileLoading } from "./unasked-exit.ts";

const moduleFile = /\.(?:js|mjs|ts|mts)$/;
const notAModule = /\.(?:d\.m?ts|test\.[a-z]+|spec\.[a-z]+)$/;

/**
 * Loads the tasks of modules: default exports, named exports, or arrays of them (CONTRACT 4).
 *
 * @param paths Files, or folders that are searched with all below them.
 * @param warn Told of paths in which there is no task.
 * @throws StartError naming every path and module that gave trouble.
 */
export async function loadTasks(
  paths: readonly string[],
  warn: (message: string) => void,
): Promise<readonly Task[]> {
  const faults: string[] = [];
  const files = new Set<string>();
  for (const path of paths) {
    try {
      const found = await modulesIn(resolve(path));
      if (found.length === 0) warn(`${path}: there is no module (.js, .mjs, .ts, .mts) in it`);
      for (const file of found) files.add(file);
    } catch {
      faults.push(`${path}: there is no such file or folder`);
    }
  }
  const tasks: Task[] = [];
  for (const file of files) {
    try {
      const isChanged = changeToAllObjects() !== undefined;
      const found = await tasksOf(file, warn);
      const change = changeToAllObjects();
      // Those that come after the one that did it are not to blame.
      if (change !== undefined && !isChanged) throw new TaskFault(`${change}, ${byItself}`);
      if (found.length === 0) warn(`${file}: ${noTask}`);
      tasks.push(...found);
    } catch (error) {
      faults.push(`${file}: ${reasonOf(file, error)}`);
    }
  }
  if (faults.length > 0)
    throw new StartError(`task modules could not be loaded:\n${faults.join("\n")}`);
  return tasks;
}

async function modulesIn(path: string): Promise<readonly string[]> {
  if ((await stat(path)).isFile()) return [path];
  const entries = await readdir(path, { withFileTypes: true });
  const found = await Promise.all(
    entries
      .filter(({ name }) => name !== "node_modules" && !name.startsWith("."))
      .map(async (entry) => {
        const inner = join(path, entry.name);
        if (entry.isDirectory()) return modulesIn(inner);
        return moduleFile.test(entry.name) && !notAModule.test(entry.name) ? [inner] : [];
      }),
  );
  return found.flat().toSorted();
}

const noTask =
  "there is no task in it. A task is an object { id, run } that the module exports, by itself or in a list";

async function tasksOf(file: string, warn: (message: string) => void): Promise<readonly Task[]> {
  const module = await importWithin(file, warn);
  const tasks = new Set<Task>();
  const faults: string[] = [];
  for (const [name, exported] of Object.entries(module)) {
    // Later Nodes give the default export of a CommonJS module a second time by this name.
    if (name === "module.exports") continue;
    for (const value of Array.isArray(exported) ? (exported as unknown[]) : [exported]) {
      if (isTask(value)) tasks.add(value);
      else if (looksLikeTask(value)) faults.push(`export "${name}": ${taskFault(value)}`);
    }
  }
  if (faults.length > 0) throw new TaskFault(faults.join("; "));
  return [...tasks];
}

/** A module that takes longer is told of, again and again. */
const sayAfterMs = 5_000;
/** One that fetches what it needs is ready by then; whoever has started the worker waits a minute at most. */
const longestLoadMs = 30_000;

/** A module whose top-level `await` never ends would hold its worker for ever, and nobody would know by what. */
async function importWithin(
  file: string,
  warn: (message: string) => void,
): Promise<Record<string, unknown>> {
  let seconds = 0;
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, refuse) => {
    timer = setInterval(() => {
      seconds += sayAfterMs / 1_000;
      const since = `it has not come to its end in ${seconds} s`;
      if (seconds < longestLoadMs / 1_000) return warn(`${file}: ${since}: ${awaits}`);
      refuse(new TaskFault(`${since}, and is given up: ${awaits}`));
    }, sayAfterMs);
  });
  try {
    return await whileLoading(file, () =>
      Promise.race([importModule(pathToFileURL(file).href), late]),
    );
  } finally {
    clearInterval(timer);
  }
}

const awaits =
  "something that it, or what it imports, awaits at its top level. Await it in the task that needs it";

class TaskFault extends Error {}

/** Some libraries of old do so. */
const byItself =
  "by it or by what it imports, which breaks the worker; do without that, or run it in a process of its own";

/** Helpers may be exported beside tasks; an object with a `run` and an `id` was meant as one. */
function looksLikeTask(value: unknown): boolean {
  return typeof value === "object" && value !== null && "id" in value && "run" in value;
}

function reasonOf(file: string, error: unknown): string {
  if (error instanceof TaskFault || !(error instanceof Error)) return messageOf(error);
  return moduleFault(file, error);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
