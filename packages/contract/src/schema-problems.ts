import * as z from "zod";

/**
 * The faults that a schema can find. Checks of meaning (targets, expressions, cycles, durations)
 * add codes of their own.
 */
export const PROBLEM_CODES = [
  "MISSING_FIELD",
  "UNKNOWN_FIELD",
  "WRONG_TYPE",
  "BAD_VALUE",
  "BAD_FORMAT",
  "OUT_OF_RANGE",
  "TOO_LONG",
  "TOO_SHORT",
  "UNKNOWN_STEP_TYPE",
  "NOT_JSON",
  "TOO_DEEP",
  "BAD_CHARACTER",
  "TOO_MANY_PROBLEMS",
] as const;
export type ProblemCode = (typeof PROBLEM_CODES)[number];

/** One fault in what was handed in: in a definition, a body or a query. */
export const Problem = z
  .object({
    path: z.string().meta({ description: "JSON pointer (RFC 6901); a missing member's own place" }),
    code: z.string().meta({ description: "stable, in upper case" }),
    message: z.string(),
  })
  .meta({ id: "Problem" });
export interface Problem {
  readonly path: string;
  readonly code: string;
  readonly message: string;
}

/** Problems listed for one document; the last one then says how many more there are. */
export const MAX_PROBLEMS = 1_000;

export function pointer(path: readonly PropertyKey[]): string {
  return path.map((key) => `/${String(key).replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
}

const ONLY = " has only these fields: ";

/** `strictObject` whose unknown keys are answered with the names that come near. */
export function strict<const Shape extends z.ZodRawShape>(what: string, shape: Shape) {
  // One text for all: the near names are looked for later, in the problems that are kept.
  const message = what + ONLY + Object.keys(shape).join(", ");
  return z.strictObject(shape, {
    error: (issue) => (issue.code === "unrecognized_keys" ? message : undefined),
  });
}

export type Parsed<T> =
  | { readonly data: T; readonly problems?: undefined }
  | { readonly data?: undefined; readonly problems: readonly Problem[] };

/**
 * Parses with a schema, all faults at once. Of a union told apart by `type` only the chosen
 * member's problems are there.
 */
export function parseWith<T>(schema: z.ZodType<T>, value: unknown): Parsed<T> {
  const parsed = safeParse(schema, value);
  if (!parsed) return { problems: [{ path: "", code: "TOO_MANY_PROBLEMS", message: COUNTLESS }] };
  if (parsed.success) return { data: parsed.data };

  const { issues } = parsed.error;
  const total = issues.reduce((count, issue) => count + countOf(issue), 0);
  if (total <= MAX_PROBLEMS) return { problems: issues.flatMap(problemsOfIssue) };

  const kept = issues
    .slice(0, MAX_PROBLEMS)
    .flatMap(problemsOfIssue)
    .slice(0, MAX_PROBLEMS - 1);
  const message = `and ${total - kept.length} more problems`;
  return { problems: [...kept, { path: "", code: "TOO_MANY_PROBLEMS", message }] };
}

const COUNTLESS = "more faults than can be listed";

/**
 * zod spreads the issues of a list's items into a call: some hundred thousand of them in one list,
 * which a megabyte of text can have, exhaust the stack. `undefined` says that this happened.
 */
function safeParse<T>(schema: z.ZodType<T>, value: unknown): z.ZodSafeParseResult<T> | undefined {
  try {
    return schema.safeParse(value, { reportInput: true });
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

function countOf(issue: z.core.$ZodIssue): number {
  return issue.code === "unrecognized_keys" ? issue.keys.length : 1;
}

function problemsOfIssue(issue: z.core.$ZodIssue): Problem[] {
  const found = inputOf(issue);
  const one = (code: ProblemCode, message: string): Problem[] => [
    { path: pointer(issue.path), code, message },
  ];

  if (issue.code === "unrecognized_keys") {
    const [what = "this", known = ""] = issue.message.split(ONLY);
    return issue.keys.slice(0, MAX_PROBLEMS).map((key) => ({
      path: pointer([...issue.path, key]),
      code: "UNKNOWN_FIELD",
      message: unknownField(what, key, known.split(", ")),
    }));
  }
  const isMissing = issue.code === "custom" && issue.params?.["isMissing"] === true;
  if (found === undefined || isMissing) return one("MISSING_FIELD", missingField(issue));

  switch (issue.code) {
    case "invalid_type":
      return one("WRONG_TYPE", `expected ${withArticle(issue.expected)}, got ${typeName(found)}`);
    case "invalid_value": {
      const allowed = oneOf(issue.values.map((each) => quote(String(each))));
      return one("BAD_VALUE", `${show(found)} is not ${allowed}${suggest(found, issue.values)}`);
    }
    case "invalid_union":
      return "options" in issue && issue.discriminator === "type"
        ? one("UNKNOWN_STEP_TYPE", unknownStepType(found, issue.options))
        : problemsOfUnion(issue, found);
    case "too_big":
      return issue.origin === "string" || issue.origin === "array"
        ? one("TOO_LONG", `at most ${issue.maximum} ${unitOf(issue.origin)}, got ${sizeOf(found)}`)
        : one("OUT_OF_RANGE", `must be at most ${issue.maximum}, got ${show(found)}`);
    case "too_small":
      return issue.origin === "string" || issue.origin === "array"
        ? one("TOO_SHORT", "must not be empty")
        : one("OUT_OF_RANGE", `must be at least ${issue.minimum}, got ${show(found)}`);
    case "invalid_format":
      return one("BAD_FORMAT", `${show(found)}: ${issue.message}`);
    case "invalid_key":
      return one("BAD_VALUE", issue.issues.map((each) => each.message).join("; "));
    case "custom":
    case "invalid_element":
    case "not_multiple_of":
      return one("BAD_VALUE", issue.message);
  }
}

/** Of a union without a message of its own: what is wrong by the one member of the value's type. */
function problemsOfUnion(issue: z.core.$ZodIssueInvalidUnion, found: unknown): Problem[] {
  const path = pointer(issue.path);
  if (issue.message !== untold) return [{ path, code: "BAD_VALUE", message: issue.message }];
  const isOtherType = ({ code, path: within }: z.core.$ZodIssue) =>
    code === "invalid_type" && within.length === 0;
  const [member, ...others] = issue.errors.filter((errors) => !errors.some(isOtherType));
  if (member !== undefined && others.length === 0) {
    return member.flatMap((each) =>
      problemsOfIssue({ ...each, path: [...issue.path, ...each.path] }),
    );
  }
  const types = issue.errors
    .flat()
    .flatMap((each) => (each.code === "invalid_type" ? [withArticle(each.expected)] : []));
  const message = `expected ${[...new Set(types)].join(" or ")}, got ${typeName(found)}`;
  return [{ path, code: "WRONG_TYPE", message }];
}

/** What zod says where nobody gave a message. */
const untold = "Invalid input";

/** The value that the issue is about; `undefined` when there is none at its path. */
function inputOf(issue: z.core.$ZodIssue): unknown {
  const { input } = issue;
  // What zod reports for a discriminator is the whole object.
  return "discriminator" in issue && issue.discriminator !== undefined && isObject(input)
    ? input[issue.discriminator]
    : input;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}

function unknownField(what: string, key: string, known: readonly string[]): string {
  const near = nearest(key, known);
  const hint =
    near.length > 0
      ? `did you mean ${near.map(quote).join(" or ")}?`
      : `known: ${known.join(", ")}`;
  return `${what} has no field ${show(key)}; ${hint}`;
}

function missingField(issue: z.core.$ZodIssue): string {
  const last = issue.path.at(-1);
  if (last === undefined) {
    const expected = issue.code === "invalid_type" ? withArticle(issue.expected) : "a value";
    return `expected ${expected}, got nothing`;
  }
  const name = quote(String(last));
  if (issue.code === "invalid_value") {
    return `${name} is missing; it must be ${oneOf(issue.values.map((each) => quote(String(each))))}`;
  }
  return issue.code === "custom" && issue.message !== "required"
    ? issue.message
    : `${name} is missing`;
}

function unknownStepType(found: unknown, types: readonly z.core.util.Primitive[]): string {
  const known = types.map(String);
  return `there is no step type ${show(found)}${suggest(found, types)}; known: ${known.join(", ")}`;
}

function suggest(found: unknown, known: readonly unknown[]): string {
  const near = typeof found === "string" ? nearest(found, known.map(String)) : [];
  return near.length > 0 ? `; did you mean ${near.map(quote).join(" or ")}?` : "";
}

/** Up to two known names that are a slip of the hand away from `name`, nearest first. */
function nearest(name: string, known: readonly string[]): string[] {
  if (name.length > 40) return [];
  return known
    .map((each) => ({ each, distance: distance(name.toLowerCase(), each.toLowerCase()) }))
    .filter(
      ({ each, distance: far }) => far <= (each.length < 4 ? 1 : Math.max(2, each.length / 3)),
    )
    .toSorted((a, b) => a.distance - b.distance)
    .slice(0, 2)
    .map(({ each }) => each);
}

/** Levenshtein's edit distance. */
function distance(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let row = 1; row <= a.length; row += 1) {
    const current = [row];
    for (let column = 1; column <= b.length; column += 1) {
      const substitution = previous[column - 1]! + (a[row - 1] === b[column - 1] ? 0 : 1);
      current.push(Math.min(previous[column]! + 1, current[column - 1]! + 1, substitution));
    }
    previous = current;
  }
  return previous[b.length]!;
}

function quote(text: string): string {
  return JSON.stringify(text);
}

function oneOf(choices: readonly string[]): string {
  return choices.length === 1 ? choices[0]! : `one of ${choices.join(", ")}`;
}

/** A value as a message shows it: at most some 60 characters. */
function show(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length <= 60 ? text : `${text.slice(0, 57)}…`;
}

function sizeOf(value: unknown): string {
  return typeof value === "string" || Array.isArray(value) ? String(value.length) : show(value);
}

function unitOf(origin: string): string {
  return origin === "string" ? "characters" : "items";
}

function typeName(value: unknown): string {
  if (value === null) return "null";
  if (Number.isNaN(value)) return "something else";
  if (typeof value === "number") return `the number ${value}`;
  return withArticle(Array.isArray(value) ? "array" : typeof value);
}

function withArticle(noun: string): string {
  const named = noun === "record" ? "object" : noun === "int" ? "whole number" : noun;
  return `${/^[aeiou]/.test(named) ? "an" : "a"} ${named}`;
}
