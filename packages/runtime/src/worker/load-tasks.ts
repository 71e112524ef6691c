import { readdir, stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { isTask, taskFault } from "@millrace/sdk";
import type { Task } from "@millrace/sdk";

const moduleFile = /\.(?:js|mjs|ts|mts)$/;
const notAModule = /\.(?:d\.m?ts|test\.[a-z]+|spec\.[a-z]+)$/;

/**
 * Loads the tasks of modules: default exports, named exports, or arrays of them (CONTRACT 4).
 *
 * @param paths Files, or folders that are searched with all below them.
 * @throws Error naming every path and module that gave trouble.
 */
export async function loadTasks(paths: readonly string[]): Promise<readonly Task[]> {
  const faults: string[] = [];
  const files = new Set<string>();
  for (const path of paths) {
    try {
      for (const file of await modulesIn(resolve(path))) files.add(file);
    } catch {
      faults.push(`${path}: there is no such file or folder`);
    }
  }
  const tasks: Task[] = [];
  for (const file of files) {
    try {
      tasks.push(...(await tasksOf(file)));
    } catch (error) {
      faults.push(`${file}: ${reasonOf(file, error)}`);
    }
  }
  if (faults.length > 0) throw new Error(`task modules could not be loaded:\n${faults.join("\n")}`);
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

async function tasksOf(file: string): Promise<readonly Task[]> {
  const module = (await import(pathToFileURL(file).href)) as Record<string, unknown>;
  const tasks = new Set<Task>();
  for (const [name, exported] of Object.entries(module)) {
    for (const value of Array.isArray(exported) ? (exported as unknown[]) : [exported]) {
      if (isTask(value)) tasks.add(value);
      else if (looksLikeTask(value)) throw new Error(`export "${name}": ${taskFault(value)}`);
    }
  }
  return [...tasks];
}

/** Helpers may be exported beside tasks; an object with a `run` or an `id` was meant as one. */
function looksLikeTask(value: unknown): boolean {
  return typeof value === "object" && value !== null && "id" in value && "run" in value;
}

function reasonOf(file: string, error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  const typescript =
    /\.m?ts$/.test(file) &&
    /Unknown file extension|Unexpected (?:token|identifier)|Missing initializer/.test(message);
  return typescript
    ? "Node.js runs TypeScript from 22.18 on; with an older one compile it, or write the task in .mjs"
    : message;
}
