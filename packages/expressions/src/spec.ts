/** How functions and methods are described: the same record documents and implements them. */
import { Failure } from "./run.ts";
import type { Run } from "./run.ts";
import { isMissing, typeOf } from "./values.ts";
import type { JsonObject } from "./properties.ts";

/** A function or method as documentation shows it. */
export interface Documented {
  readonly name: string;
  /** Names of the parameters: `name?` may be left out, `...name` takes any number. */
  readonly parameters: string;
  readonly summary: string;
  /** An expression without roots and what it gives; checked by a test. */
  readonly example: readonly [source: string, result: unknown];
}

export interface FunctionSpec extends Documented {
  /** The result holds no part of an argument, so state does not pass through it. */
  readonly plain?: boolean;
  /** The result depends on the time of the decision. */
  readonly clock?: boolean;
  readonly call: (run: Run, ...values: readonly unknown[]) => unknown;
}

/** `self` is the value the method is called on, of the type whose table the method is in. */
export interface MethodSpec<Self> extends Documented {
  readonly call: (run: Run, self: Self, ...values: readonly unknown[]) => unknown;
}

/** How many arguments a parameter list takes. */
export function arityOf(parameters: string): { readonly least: number; readonly most: number } {
  const names = parameters === "" ? [] : parameters.split(", ");
  const least = names.filter((name) => !name.endsWith("?") && !name.startsWith("...")).length;
  const most = names.some((name) => name.startsWith("...")) ? Infinity : names.length;
  return { least, most };
}

/** The elements of a list; a missing one is empty. */
export function list(name: string, value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value;
  if (isMissing(value)) return [];
  throw badArgument(name, "a list", value);
}

/** The members of an object; a missing one is empty. */
export function object(name: string, value: unknown): JsonObject {
  if (typeOf(value) === "object") return value as JsonObject;
  if (isMissing(value)) return {};
  throw badArgument(name, "an object", value);
}

export function number(name: string, value: unknown): number {
  if (typeof value === "number") return value;
  throw badArgument(name, "a number", value);
}

export function text(name: string, value: unknown): string {
  if (typeof value === "string") return value;
  throw badArgument(name, "a text", value);
}

export function badArgument(name: string, wanted: string, value: unknown): Failure {
  return new Failure("BAD_ARGUMENT", `${name} takes ${wanted}, not ${described(value)}`);
}

function described(value: unknown): string {
  const type = typeOf(value);
  switch (type) {
    case "undefined":
      return "a missing value";
    case "null":
      return "null";
    case "string":
      return (value as string).length > 40 ? "a text" : JSON.stringify(value);
    case "number":
    case "boolean":
      return String(value);
    case "array":
    case "object":
      return `an ${type}`;
    case "foreign":
      return "a value that is not JSON";
  }
}
