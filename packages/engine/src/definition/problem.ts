import type { Problem } from "@millrace/contract";
import { MAX_PROBLEMS } from "@millrace/contract";
import type {
  ProblemCode as ExpressionProblemCode,
  WarningCode as ExpressionWarningCode,
} from "@millrace/expressions";

/**
 * What can be wrong with a definition beyond its shape, and what each code means. The codes of the
 * shape are the contract's `PROBLEM_CODES`.
 */
export const definitionCodes = {
  DUPLICATE_ID: "an id that another step or compensation step already has",
  UNKNOWN_STEP: "a step id that the definition does not have",
  OTHER_LIST: "a way into a branch or MAP, or out of it",
  DUPLICATE_BRANCH: "a name that another branch of the step already has",
  CLOCK_OF_TASKS: "a clock that only a TASK has, on a step that waits",
  BAD_JOIN: "a join of more branches than there are",
  UNREACHABLE_STEP: "a step to which no way leads from the first one of its list",
  JOIN_NEVER_REACHED: "a join of branches that cannot complete, with steps behind it",
  OUTPUT_NEVER_THERE: "a read of the output of a step that cannot have run before",
  CYCLE_WITHOUT_WAIT: "a loop that nothing delays and no way leaves",
  DUPLICATE_COMPENSATION: "a second compensation step for one step",
  RECURSIVE_WORKFLOW: "a workflow that waits for itself, whatever its input",
  NOT_COMPENSABLE: "a compensation for a step that has no effect outside",
  EVENT_NOT_AT_HAND: "an expression that reads the event where there is none",
  BAD_DURATION: "a text that is no ISO-8601 duration",
  BAD_TIME: "a text that is no ISO-8601 time",
  BAD_ID: "an id of a task or workflow, or a name of a queue, that none of them can have",
  BAD_PATTERN: "an event pattern that is not well formed",
  RESERVED_PATTERN: 'a use of patterns under "workflow." that they do not allow',
  MISPLACED: "a field that cannot stand where it does",
  BAD_PATH: "a path into an event's payload that is not well formed",
  BAD_VARIABLE: "a variable's name that is refused",
  SCHEMA_TOO_LARGE: "an inputSchema of more keywords and names than are compiled in good time",
  PATTERN_TOO_COSTLY: "a pattern that is not compiled in good time",
  BAD_SCHEMA: "an inputSchema that is no JSON Schema",
  NOTHING_FITS: "an inputSchema that no input fits",
  NO_KNOWN_INPUT: "an inputSchema of which no input is found, nor given in examples",

  // Of expressions
  EMPTY: "an expression that is empty",
  SYNTAX: "a text that is no expression",
  UNCLOSED: "a ${ without its }",
  NOT_ALLOWED: "JavaScript that expressions leave out",
  UNKNOWN_ROOT: "a name that stands for nothing here",
  UNKNOWN_PROPERTY: "a member that the input, the workflow, a step or an event never has",
  TYPE_MISMATCH: "a value whose type the schema or the step proves wrong where it is used",
  UNKNOWN_FUNCTION: "a function that is not in the table",
  UNKNOWN_METHOD: "a method that no value has",
  WRONG_ARGUMENTS: "too few or too many arguments",
  FORBIDDEN_PROPERTY: "a read of `__proto__`, `prototype` or `constructor`",
  COMPUTED_STEPS: "a step that is not named in the source",
  TOO_LONG: "an expression that is too long",
  TOO_MANY: "a value with too many expressions in it",
  TOO_DEEP: "an expression or value that is nested too deep",
  BAD_LITERAL: "a $literal beside other keys",
} as const satisfies Record<string, string> & Record<ExpressionProblemCode, string>;
export type ProblemCode = keyof typeof definitionCodes;

/** What is allowed in a definition and yet likely not what its author meant. */
export const definitionWarningCodes = {
  WAIT_WITHOUT_TIMEOUT: "a wait that may last for ever",
  ENDLESS_CYCLE:
    "a loop that nothing in it ends: one that waits and that nothing else ends, or one that does not and that another branch may end",
  UNKNOWN_WORKFLOW: "a child workflow that is not registered yet",
  CHILD_INPUT: "an input that the latest version of the child workflow refuses",
  UNKNOWN_CALENDAR: "a calendar that is not there yet",
  NEVER_TAKEN: "a transition, choice, default or error handler that is never taken",
  OVERLAPPING: "two conditions that are both true for some numbers, neither of them for all",
  NEVER_THERE: "a read of a step, its output apart, that cannot have run before",
  OUTPUT_MAY_BE_MISSING: "a read of the output of a step that has not run on every way",
  UNCOMPENSATED:
    "a task that nothing undoes, where what others do is undone, and that does more than find out by its name",
  ALWAYS_FAILS: "an expression of which a part fails each time, whatever it reads elsewhere",
  NO_EFFECT: "a field that means nothing where it stands",
  INTERVAL_CAPPED: "a retry interval above the longest one",
  NO_TIME: "a clock of the workflow or of a task that is over at once",
  NOT_EVALUATED: "an expression in a place that takes values as they are",

  // Of expressions
  NEVER_EQUAL: "an equality of values that are never equal, though of one type",
  LOOKS_LIKE_PATH: "a text that looks like a path and is none",
} as const satisfies Record<string, string> &
  Record<Exclude<ExpressionWarningCode, "UNKNOWN_PROPERTY">, string>;
export type WarningCode = keyof typeof definitionWarningCodes;

/** Problems as they are found, bounded in number. */
export interface ProblemList {
  add(path: string, code: ProblemCode, message: string): void;
  warn(path: string, code: WarningCode, message: string): void;
  readonly problems: readonly Problem[];
  readonly warnings: readonly Problem[];
}

/**
 * @param known Problems of the document's shape, listed first. What is found at one of their places,
 *   or below it, only follows from them and is left out.
 */
export function problemList(known: readonly Problem[]): ProblemList {
  const spoiled = new Set(known.map(({ path }) => path));
  const problems = boundedList(known);
  const warnings = boundedList([]);
  const isSpoiled = (path: string): boolean => {
    if (spoiled.size === 0) return false;
    for (let end = path.length; end > 0; end = path.lastIndexOf("/", end - 1)) {
      if (spoiled.has(path.slice(0, end))) return true;
    }
    return spoiled.has("");
  };
  return {
    add: (path, code, message) => {
      if (!isSpoiled(path)) problems.push({ path, code, message });
    },
    warn: (path, code, message) => {
      if (!isSpoiled(path)) warnings.push({ path, code, message });
    },
    get problems() {
      return problems.all();
    },
    get warnings() {
      return warnings.all();
    },
  };
}

function boundedList(first: readonly Problem[]) {
  const kept = [...first];
  let dropped = 0;
  return {
    push: (problem: Problem): void => {
      if (kept.length < MAX_PROBLEMS - 1) kept.push(problem);
      else dropped += 1;
    },
    all: (): readonly Problem[] =>
      dropped === 0
        ? kept
        : [
            ...kept,
            { path: "", code: "TOO_MANY_PROBLEMS", message: `and ${dropped} more problems` },
          ],
  };
}

/** Some problems, and of others those at places where there is none yet: the rest only follows. */
export function besides(first: readonly Problem[], others: readonly Problem[]): Problem[] {
  const places = new Set(first.map(({ path }) => path));
  return [...first, ...others.filter(({ path }) => !places.has(path))];
}

/** Sorts problems by the places in the document that they are about. */
export function inDocumentOrder(problems: readonly Problem[], document: unknown): Problem[] {
  return problems
    .map((problem) => ({ problem, place: placeOf(problem.path, document) }))
    .toSorted((a, b) => comparePlaces(a.place, b.place))
    .map(({ problem }) => problem);
}

/** The position of each key of a pointer among its object's keys; a missing one comes last. */
function placeOf(path: string, document: unknown): readonly number[] {
  let current: unknown = document;
  return keysOf(path).map((key) => {
    const parent = typeof current === "object" && current !== null ? current : {};
    current = memberOf(current, key);
    if (Array.isArray(parent)) return Number(key);
    const keys = Object.keys(parent);
    const position = keys.indexOf(key);
    return position < 0 ? keys.length : position;
  });
}

/** What a JSON pointer names; undefined where there is nothing. */
export function valueAt(path: string, document: unknown): unknown {
  return keysOf(path).reduce(memberOf, document);
}

function keysOf(path: string): readonly string[] {
  return path
    .split("/")
    .slice(1)
    .map((escaped) => escaped.replaceAll("~1", "/").replaceAll("~0", "~"));
}

function memberOf(parent: unknown, key: string): unknown {
  if (typeof parent !== "object" || parent === null) return undefined;
  return Object.hasOwn(parent, key) ? Reflect.get(parent, key) : undefined;
}

function comparePlaces(a: readonly number[], b: readonly number[]): number {
  const index = a.findIndex((place, depth) => place !== b[depth]);
  if (index < 0) return a.length - b.length;
  return (a[index] ?? 0) - (b[index] ?? -1);
}
