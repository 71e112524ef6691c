import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { UsageError } from "./errors.ts";

/**
 * Files and folders of task modules, given one by one or joined by commas.
 *
 * @throws {UsageError} When one does not exist; a worker would say so only in its log.
 */
export function taskPaths(given: readonly string[]): readonly string[] {
  const paths = given.flatMap((each) => each.split(",")).filter((path) => path !== "");
  const missing = paths.filter((path) => !existsSync(path));
  if (missing.length > 0) throw new UsageError(`--tasks: there is no ${missing.join(", ")}`);
  return paths.map((path) => resolve(path));
}
