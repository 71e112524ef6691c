import { readFile } from "node:fs/promises";
import { type JsonValue, scanJson } from "@millrace/contract";
import type { Context } from "./command.ts";
import { messageOf, UsageError } from "./errors.ts";

export interface Range {
  readonly min: number;
  readonly max: number;
}

/** @throws {UsageError} */
export function integerOf(
  name: string,
  text: string | undefined,
  { min, max }: Range,
): number | undefined {
  if (text === undefined) return undefined;
  const value = /^-?\d+$/.test(text) ? Number(text) : Number.NaN;
  if (value >= min && value <= max) return value;
  throw new UsageError(`${name} must be a whole number from ${min} to ${max}, not ${quote(text)}`);
}

/** @throws {UsageError} */
export function oneOf<Choice extends string>(
  name: string,
  text: string | undefined,
  choices: readonly Choice[],
): Choice | undefined {
  if (text === undefined) return undefined;
  const found = choices.find((choice) => choice === text);
  if (found !== undefined) return found;
  throw new UsageError(`${name} must be one of ${choices.join(", ")}, not ${quote(text)}`);
}

/** An ISO 8601 time with an offset, or a date, as the API's canonical text. */
export function timeOf(name: string, text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  const time = /^\d{4}-\d\d-\d\d/.test(text) ? new Date(text) : new Date(Number.NaN);
  if (!Number.isNaN(time.getTime())) return time.toISOString();
  throw new UsageError(`${name} must be a time such as 2026-01-31T12:00:00Z, not ${quote(text)}`);
}

/** What a user gave as a value: JSON, `@file` with JSON or YAML in it, or `-` for the input. */
export async function jsonOf(
  name: string,
  text: string | undefined,
  context: Pick<Context, "readInput">,
): Promise<JsonValue | undefined> {
  if (text === undefined) return undefined;
  if (text === "-") return parse(name, "the standard input", await context.readInput());
  if (!text.startsWith("@")) return parse(name, undefined, text);

  const file = text.slice(1);
  const content = await readFile(file, "utf8").catch((error: unknown) => {
    throw new UsageError(`${name}: cannot read ${file}: ${messageOf(error)}`);
  });
  if (!/\.ya?ml$/i.test(file)) return parse(name, file, content);
  const { readDocuments } = await import("./documents.ts");
  const { documents, problems } = readDocuments(file, content);
  const problem = problems[0];
  if (problem) throw new UsageError(`${name}: ${problem.place}: ${problem.message}`);
  if (documents.length !== 1) {
    throw new UsageError(`${name}: ${file} has ${documents.length} YAML documents, not one`);
  }
  return documents[0]?.value as JsonValue;
}

/** @throws UsageError also for what the API would be sent otherwise than it stands here. */
function parse(name: string, source: string | undefined, text: string): JsonValue {
  try {
    const value = JSON.parse(text) as JsonValue;
    const scan = scanJson(text);
    const fault = "faults" in scan ? scan.faults[0] : undefined;
    if (fault)
      throw new UsageError(
        `${[name, source, fault.path].filter(Boolean).join(" ")}: ${fault.message}`,
      );
    return value;
  } catch (error) {
    if (error instanceof UsageError) throw error;
    const place = source === undefined ? "" : ` in ${source}`;
    const hint =
      source === undefined && /^[\w-]+$/.test(text) ? `; a text needs quotes: '"${text}"'` : "";
    throw new UsageError(`${name} is not JSON${place}: ${messageOf(error)}${hint}`);
  }
}

function quote(text: string): string {
  return JSON.stringify(text);
}
