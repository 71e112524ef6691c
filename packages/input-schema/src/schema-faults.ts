import type { Problem } from "@millrace/contract";
import { below, everyMember, valueAt } from "@millrace/engine";
import type { SchemaMember } from "@millrace/engine";
import type { ErrorObject } from "ajv/dist/2020.js";
import { ajvForSchema } from "./ajv.ts";
import { compileInputSchema, mostViolations } from "./check-input.ts";
import type { CheckInput } from "./check-input.ts";
import { lackOfInput } from "./known-input.ts";

/**
 * What is wrong with the `inputSchema` of a definition, each at its place as far as that is known.
 *
 * @param found What is known to be wrong with the definition. A schema that is too large, or that cannot be
 *   stored, is not compiled.
 */
export function faultsOfInputSchema(
  definition: unknown,
  found: readonly Problem[],
): readonly Problem[] {
  const isSpoiled = found.some(
    ({ path, code }) => code === "SCHEMA_TOO_LARGE" || path.startsWith("/inputSchema/"),
  );
  const inputSchema = isRecord(definition) ? definition["inputSchema"] : undefined;
  // Of any other type it is a problem of the document's shape.
  const isSchema = typeof inputSchema === "boolean" || isRecord(inputSchema);
  if (!isSchema || isSpoiled) return [];
  const read = readSchema(inputSchema);
  if ("problems" in read) return read.problems;
  if (found.some(({ path }) => path === "/inputSchema")) return [];
  const lack = lackOfInput(inputSchema, read.check);
  return lack === undefined
    ? []
    : [{ path: "/inputSchema", code: "NO_KNOWN_INPUT", message: lack }];
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function readSchema(
  inputSchema: object | boolean,
): { readonly check: CheckInput } | { readonly problems: readonly Problem[] } {
  const bad = ([path, message]: Told): Problem => ({
    path: `/inputSchema${path}`,
    code: "BAD_SCHEMA",
    message,
  });
  const ajv = ajvForSchema(inputSchema);
  try {
    if (ajv.validateSchema(inputSchema) !== true) {
      return { problems: [...toldOf(ajv.errors ?? []), ...badPatterns(inputSchema)].map(bad) };
    }
    const check = compileInputSchema({ inputSchema });
    // A keyword of the validator's own: it would answer later.
    const isAsync = isRecord(inputSchema) && Boolean(inputSchema["$async"]);
    const told = isAsync ? [bad(["/$async", "is no keyword of JSON Schema; leave it out"])] : [];
    return told.length > 0 ? { problems: told } : { check };
  } catch (error) {
    return { problems: toldOfFailure(error, inputSchema).map(bad) };
  }
}

/** A JSON pointer below the schema, and what is wrong there. */
type Told = readonly [path: string, message: string];

/** Of each place what it must be: several errors there are those of alternatives. */
function toldOf(errors: readonly ErrorObject[]): readonly Told[] {
  const told = new Map<string, Set<string>>();
  for (const error of errors) {
    const { instancePath, keyword } = error;
    if (keyword === "anyOf" || told.size >= mostViolations) continue;
    const messages = told.get(instancePath) ?? new Set();
    told.set(instancePath, messages.add(messageOf(error)));
  }
  return [...told].map(([path, messages]) => [path, [...messages].join(", or ")]);
}

function messageOf({ message = "is not what it must be", params }: ErrorObject): string {
  const { allowedValues, type } = params as Readonly<Record<string, unknown>>;
  if (Array.isArray(allowedValues)) return `must be one of ${allowedValues.join(", ")}`;
  return Array.isArray(type) ? `must be ${type.join(" or ")}` : message;
}

/** Why it cannot be compiled: references and patterns of it are looked for. */
function toldOfFailure(error: unknown, schema: unknown): readonly Told[] {
  if (error instanceof RangeError) {
    const round = everyMember(schema).filter(
      ({ key, value }) => key === "$ref" && isRound(schema, value),
    );
    const message = "refers to itself, by nothing else than $ref";
    if (round.length > 0) return round.map(({ path }) => [path, message]);
    return [["", "is nested too deep, or has too many alternatives, to be compiled"]];
  }
  const patterns = error instanceof SyntaxError ? badPatterns(schema) : [];
  if (patterns.length > 0) return patterns;
  const message = `is no JSON Schema: ${error instanceof Error ? error.message : String(error)}`;
  const { missingRef } = error as { readonly missingRef?: unknown };
  if (/no schema with key or ref|\$schema must be/.test(message)) return [["/$schema", message]];
  const isCause = causes.find(([text]) => text.test(message))?.[1];
  const places = everyMember(schema).filter((member) => {
    const { key, value } = member;
    return missingRef === undefined
      ? isCause?.(member, message)
      : value === missingRef && (key === "$ref" || key === "$dynamicRef");
  });
  return places.length === 0 ? [["", message]] : places.map(({ path }) => [path, message]);
}

/** Which members a failure comes from, by the words of the validator, which does not name the place. */
const causes: readonly (readonly [
  text: RegExp,
  isCause: (member: SchemaMember, message: string) => boolean,
])[] = [
  [
    /"nullable" cannot be used without "type"/,
    ({ key, beside }) => key === "nullable" && !Object.hasOwn(beside, "type"),
  ],
  [
    /resolves to more than one schema/,
    ({ key, value }, message) => {
      const name = key === "$id" ? String(value) : `#${String(value)}`;
      const isName = key === "$id" || key === "$anchor" || key === "$dynamicAnchor";
      return isName && message.includes(`reference "${name}" `);
    },
  ],
  [
    /malformed percent-encoding/,
    ({ key, value }) => key === "$ref" && /%(?![\da-f]{2})/i.test(String(value)),
  ],
  [
    /only supports hash fragment/,
    ({ key, value }, message) => message.includes(`"${key}"`) && !String(value).startsWith("#"),
  ],
  [
    /enum must have non-empty array/,
    ({ key, value }) => key === "enum" && Array.isArray(value) && value.length === 0,
  ],
  [/keyword "id"/, ({ key, value }) => key === "id" && typeof value === "string"],
  [
    /must have dependencies of \w+: format/,
    ({ key, beside }, message) =>
      message.includes(` of ${key}:`) && !Object.hasOwn(beside, "format"),
  ],
  [
    /\w+ value must be \["string"\]/,
    ({ key, value }, message) => message.includes(`${key} value`) && typeof value !== "string",
  ],
];

/** Texts that stand where a schema has its patterns and are none. */
function badPatterns(schema: unknown): readonly Told[] {
  return everyMember(schema).flatMap(({ path, key, value }): Told[] => {
    if (key === "pattern") return toldOfPattern(path, value);
    if (key !== "patternProperties" || typeof value !== "object" || value === null) return [];
    return Object.keys(value).flatMap((each) => toldOfPattern(below(path, each), each));
  });
}

function toldOfPattern(path: string, text: unknown): Told[] {
  if (typeof text !== "string") return [];
  try {
    return RegExp(text, "u") && [];
  } catch (error) {
    return [[path, `is no pattern: ${error instanceof Error ? error.message : String(error)}`]];
  }
}

/** Whether a reference leads to another one, and so on without an end. */
function isRound(schema: unknown, reference: unknown): boolean {
  const seen = new Set<unknown>();
  let next = reference;
  while (typeof next === "string" && next.startsWith("#/")) {
    if (seen.has(next)) return true;
    seen.add(next);
    const target = valueAt(next.slice(1), schema);
    next = isRecord(target) ? target["$ref"] : undefined;
  }
  return false;
}
