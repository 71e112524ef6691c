import { BadValueError } from "../errors.ts";
import type { Refusal } from "./duration.ts";

// Event patterns: segments joined by dots. An event is published under a name of literal segments. A
// wait listens to a pattern, in which `*` stands for one segment and `**`, at the end only, for any
// number of them, none included: `order.**` hears `order`, `order.paid` and `order.line.added`.
//
// Waits are found by equality, `pattern = any($1)`, over every pattern that could match the event's
// name. Segments and wildcards are bounded, so that this list is too: 11 patterns for `order.paid`,
// 2,379 for the longest name.

const maxLength = 255;
const maxSegments = 12;
/** `*` in one pattern, `**` not counted. Without this limit the longest name has 12,287 candidates. */
const maxWildcards = 4;

/**
 * Lifecycle events. Nobody publishes under this prefix, and only patterns that begin with it
 * literally hear them: `**` and `*.completed` do not.
 */
export const reservedPrefix = "workflow.";

/** The names of all of them (CONTRACT 3). */
export const lifecycleEvents = [
  "workflow.started",
  "workflow.completed",
  "workflow.failed",
  "workflow.cancelled",
  "workflow.paused",
  "workflow.resumed",
  "workflow.step.completed",
  "workflow.step.failed",
  "workflow.step.retrying",
  "workflow.step.skipped",
  "workflow.compensation.completed",
] as const;

/** Whether a pattern, or the text of one, listens to lifecycle events. */
export function isLifecyclePattern(pattern: unknown): pattern is string {
  return typeof pattern === "string" && pattern.startsWith(reservedPrefix);
}

/** Whether any lifecycle event is heard by a pattern that begins as they do. */
export function hearsLifecycleEvents(pattern: string): boolean {
  return lifecycleEvents.some((name) => patternMatches(pattern, name));
}

export interface Pattern {
  /** Segments without the trailing `**`. */
  readonly segments: readonly string[];
  /** It ends in `**`. */
  readonly open: boolean;
}

/** Reads the pattern of a wait or a trigger. */
export function parsePattern(text: string): Pattern | Refusal {
  if (text === "") return { problem: "is empty" };
  if (text.length > maxLength) return { problem: `is longer than ${maxLength} characters` };
  const segments = text.split(".");
  if (segments.length > maxSegments) {
    return { problem: `has more than ${maxSegments} segments (${segments.length})` };
  }
  const open = segments.at(-1) === "**";
  if (open) segments.pop();
  for (const segment of segments) {
    const problem = segmentProblem(segment);
    if (problem !== undefined) return { problem };
  }
  if (segments.filter((segment) => segment === "*").length > maxWildcards) {
    return { problem: `has more than ${maxWildcards} single "*" segments` };
  }
  return { segments, open };
}

/**
 * Why an event cannot be published under this name; undefined when it can. A name holds no wildcards
 * and does not begin with the reserved prefix.
 */
export function eventNameProblem(name: string): string | undefined {
  const pattern = parsePattern(name);
  if ("problem" in pattern) return pattern.problem;
  if (pattern.open || pattern.segments.includes("*")) {
    return "has a wildcard: an event is published under a plain name";
  }
  return isReservedName(name) ? reservedName : undefined;
}

/** Whether nobody but Millrace itself publishes under this name. */
export function isReservedName(name: string): boolean {
  return `${name}.`.startsWith(reservedPrefix);
}

export const reservedName =
  'begins with the segment "workflow", which is reserved for the events of workflows themselves';

/**
 * The name that a definition's value gave at run time for an event.
 *
 * @throws BadValueError when no event can be called so.
 */
export function eventNameFrom(value: unknown): string {
  const name = patternFrom(value);
  const problem = eventNameProblem(name);
  if (problem === undefined) return name;
  throw new BadValueError(`the event name ${JSON.stringify(name.slice(0, 80))} ${problem}`);
}

/**
 * The pattern that a definition's value gave at run time.
 *
 * @throws BadValueError when it is no text, or no pattern.
 */
export function patternFrom(value: unknown): string {
  if (typeof value !== "string") {
    throw new BadValueError(
      `an event pattern must be a text, not ${JSON.stringify(value) ?? "undefined"}`,
    );
  }
  const pattern = parsePattern(value);
  if (!("problem" in pattern)) return value;
  throw new BadValueError(
    `the event pattern ${JSON.stringify(value.slice(0, 80))} ${pattern.problem}`,
  );
}

/** Whether a wait for `pattern` hears an event published as `name`. Both are well formed. */
export function patternMatches(pattern: string, name: string): boolean {
  if (name.startsWith(reservedPrefix) && !pattern.startsWith(reservedPrefix)) return false;
  const expected = pattern.split(".");
  const actual = name.split(".");
  const open = expected.at(-1) === "**";
  if (open) expected.pop();
  if (open ? actual.length < expected.length : actual.length !== expected.length) return false;
  return expected.every((segment, index) => segment === "*" || segment === actual[index]);
}

/**
 * Every pattern that matches this name, each once, the name itself first: what to look up in the
 * index of waits. A pattern that `parsePattern` accepts is listed if and only if it matches. No name
 * gives more than some thousands, however long it is.
 */
export function candidatePatterns(name: string): string[] {
  const segments = name.split(".");
  const firstIsLiteral = name.startsWith(reservedPrefix);
  const open = firstIsLiteral ? [] : ["**"];
  /** Patterns of the segments so far, beside the wildcards that each holds. */
  let prefixes = [{ text: "", wildcards: 0 }];
  for (const [index, segment] of segments.slice(0, maxSegments).entries()) {
    const dot = index === 0 ? "" : ".";
    const longer: typeof prefixes = [];
    for (const { text, wildcards } of prefixes) {
      longer.push({ text: `${text}${dot}${segment}`, wildcards });
      if (wildcards < maxWildcards && !(index === 0 && firstIsLiteral)) {
        longer.push({ text: `${text}${dot}*`, wildcards: wildcards + 1 });
      }
    }
    prefixes = longer;
    // `**` is a segment of the pattern too.
    if (index + 1 < maxSegments) open.push(...prefixes.map(({ text }) => `${text}.**`));
  }
  const whole = segments.length > maxSegments ? [] : prefixes.map(({ text }) => text);
  return [...whole, ...open].filter((pattern) => pattern.length <= maxLength);
}

function segmentProblem(segment: string): string | undefined {
  if (segment === "*") return undefined;
  if (segment === "") return "has an empty segment: each dot stands between two names";
  if (segment === "**") return 'has "**" before its end: it may only be the last segment';
  if (segment.includes("*")) {
    return `has "*" inside the segment "${segment}": it stands for a whole segment`;
  }
  // oxlint-disable-next-line no-control-regex -- control characters are what it looks for
  if (/[\s\u0000-\u001f\u007f]/.test(segment)) return "has a space or control character in it";
  if (/\p{Surrogate}/u.test(segment)) return "has half a surrogate pair in it";
  return undefined;
}
