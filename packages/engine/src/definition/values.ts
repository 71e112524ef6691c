import type { Expression, Json, Template } from "@millrace/expressions";
import { ExpressionSyntaxError, parseExpression, parseSoundParts } from "@millrace/expressions";
import type { DurationValue } from "./definition.ts";
import { isRefusal, monthsInInterval, parseDuration, parseWorkingDuration } from "./duration.ts";
import type { Refusal, WorkingDuration } from "./duration.ts";
import { knownValue } from "./known-values.ts";
import { namedProblem } from "./named.ts";
import type { NamedKind } from "./named.ts";
import {
  eventNameProblem,
  isLifecyclePattern,
  isReservedName,
  parsePattern,
  reservedName,
} from "./pattern.ts";
import { faulty, readExpression, readTemplate, sound } from "./readings.ts";
import type { Options, Reading } from "./readings.ts";
import { parseTime } from "./time.ts";

// How each kind of place in a definition is read: what a text there means, and what can be wrong with
// it. `validate` reports the findings, `compile` takes the values, so that the two cannot disagree.

const roots = ["workflow", "input", "variables", "steps"];

/** Roots beyond these: those of the items that a place is inside of. */
export type Names = readonly string[];
const noNames: Names = [];

export const defaultItemName = "item";

/** Whether a text would be an expression where values may hold some: one in `${…}`, or a bare path. */
export function looksEvaluated(text: string): boolean {
  return (
    text.includes("${") ||
    parseSoundParts(text, { barePaths: true, roots: withEvent(noNames) }).template.reads.roots
      .length > 0
  );
}

/** A name that is taken in every expression, or inside every MAP. */
export function isRoot(name: string): boolean {
  return [...roots, "event", "index"].includes(name);
}

/** The roots that a MAP adds for its steps. */
export function namesOfItem(itemName = defaultItemName): Names {
  return [defaultItemName, "index", itemName];
}

const withEvent = (names: Names): readonly string[] => [...roots, "event", ...names];

/** A condition of a step, a transition, a choice or a compensation. */
export function readCondition(text: string, names = noNames): Reading<Expression> {
  return { ...readExpression(text, { roots: [...roots, ...names] }), isCondition: true };
}

/** A condition on an event: an equality with a missing side is false. */
export function readEventCondition(text: string, names = noNames): Reading<Expression> {
  return readExpression(text, { roots: withEvent(names), undefinedNeverEqual: true });
}

/** A value with expressions, in which a bare path below `workflow.` or `event.` is one too. */
export function readValue(value: Json, names = noNames): Reading<Template> {
  return readTemplate(value, { roots: [...roots, ...names], barePaths: true });
}

/** Why a cancellation trigger cancels: a value with expressions that may read the event. */
export function readReason(text: string, names = noNames): Reading<Template> {
  return readTemplate(text, { roots: withEvent(names), barePaths: true });
}

/** The event is all there is when a start trigger is looked at. */
const eventAlone: Options = { roots: ["event"] };

export function readStartCondition(text: string): Reading<Expression> {
  return readExpression(text, { ...eventAlone, undefinedNeverEqual: true });
}

/** The input of an instance that an event starts. */
export function readStartValue(value: Json): Reading<Template> {
  return readTemplate(value, { ...eventAlone, barePaths: true });
}

/** Its correlation id: of ids only `${…}` is an expression (CONTRACT 1.2). */
export function readStartId(text: string): Reading<Template> {
  return readTemplate(text, eventAlone);
}

/** Without expressions: it is listened to before there is an instance that they could read. */
export function readStartPattern(text: string): Reading<string> {
  if (text.includes("${")) {
    const why =
      'has an expression, and there is no instance yet that it could read; use wildcards and the "eventCondition"';
    return faulty("BAD_PATTERN", `${quote(text)} ${why}`);
  }
  const pattern = parsePattern(text);
  return isRefusal(pattern)
    ? faulty("BAD_PATTERN", `${quote(text)} ${pattern.problem}`)
    : sound(text);
}

/** The input of a task: a value with expressions, or one expression. */
export function readInput(value: Json, names = noNames): Reading<Template> {
  return readTemplate(value, {
    roots: [...roots, ...names],
    barePaths: true,
    stringIsExpression: true,
  });
}

/** The items of a MAP: an array, or an expression that gives one. */
export function readItems(value: Json, names = noNames): Reading<Template> {
  return { ...readInput(value, names), wants: "array" };
}

/** An ISO-8601 duration, in which `${…}` may give the whole or a part. */
export function readDuration(text: string, names = noNames): Reading<DurationValue> {
  return readDurationAs(parseDuration, text, names);
}

/** The same where days are working days. */
export function readWorkingDuration(
  text: string,
  names = noNames,
): Reading<DurationValue<WorkingDuration>> {
  return readDurationAs(parseWorkingDuration, text, names);
}

function readDurationAs<D extends object>(
  parse: (text: string) => D | Refusal,
  text: string,
  names: Names,
): Reading<DurationValue<D>> {
  if (text.includes("${")) {
    const { value, ...rest } = readTemplate(text, { roots: [...roots, ...names] });
    if (value === undefined) return rest;
    const known = knownValue(value);
    const problem = known && durationProblem(known.value, parse);
    if (problem !== undefined) return faulty("BAD_DURATION", problem);
    const alien = /[^PYMWDTHS\d.]+/.exec(withStandIns(text, names, "") ?? "")?.[0];
    if (known === undefined && alien !== undefined) {
      const why = `holds ${quote(alien)}, which no ISO-8601 duration does, as in PT5M`;
      return faulty("BAD_DURATION", `${quote(text)} ${why}`);
    }
    return { ...rest, wants: "string", value: { template: value } };
  }
  const duration = parse(text);
  if (!isRefusal(duration)) return sound({ duration });
  const hint = /^(?:workflow|input|variables|steps|event)\b/.test(text)
    ? `; an expression is written ${quote(`\${ ${text} }`)} here`
    : "";
  return faulty("BAD_DURATION", `${quote(text)} ${duration.problem}${hint}`);
}

/** How far a wait looks back: a duration, or for as long as the instance has been there. */
export function readLookback(text: string, names = noNames): Reading<DurationValue | "instance"> {
  const { value } = readTemplate(text, { roots: [...roots, ...names] });
  const isWhole = value !== undefined && knownText(value) === "instance";
  return isWhole ? sound("instance") : readDuration(text, names);
}

/** Milliseconds of a retry interval, which counts in weeks at most, or the expression that gives it. */
export function readInterval(text: string, names = noNames): Reading<number | Template> {
  const { value, ...rest } = readDuration(text, names);
  if (value === undefined) return rest;
  const known = "template" in value ? knownValue(value.template) : undefined;
  const duration = "duration" in value ? value.duration : parseDuration(String(known?.value));
  const isKnown = "duration" in value || known !== undefined;
  if (isKnown && !isRefusal(duration) && duration.months > 0) {
    return faulty("BAD_DURATION", `${quote(text)} ${monthsInInterval}`);
  }
  return { ...rest, value: "duration" in value ? value.duration.ms : value.template };
}

/** An ISO-8601 time, a text with `${…}` that gives one, or an expression that does. */
export function readUntil(text: string, names = noNames): Reading<Template> {
  if (/^\s*(?:\d|[+-]\d{4})/.test(text) && !text.includes("${")) {
    const time = parseTime(text);
    if (isRefusal(time)) return faulty("BAD_TIME", `${quote(text)} ${time.problem}`);
    return readTemplate({ $literal: text }, { roots: [...roots, ...names] });
  }
  const reading = readTemplate(text, { roots: [...roots, ...names], stringIsExpression: true });
  const known = reading.value && knownValue(reading.value);
  if (known === undefined) return { ...reading, wants: "string" };
  const time = typeof known.value === "string" ? parseTime(known.value) : undefined;
  if (time !== undefined && !isRefusal(time)) return reading;
  const why = time === undefined ? "is no text" : time.problem;
  return faulty("BAD_TIME", `${quote(known.value)} ${why}`);
}

/** The pattern that a wait listens to, in which `${…}` may give the whole or a part. */
export function readEventPattern(text: string, names = noNames): Reading<Template> {
  const reading = readTemplate(text, { roots: [...roots, ...names] });
  if (reading.value === undefined) return reading;
  const plain = knownText(reading.value) ?? withStandIns(text, names);
  const pattern = plain === undefined ? {} : parsePattern(plain);
  if (isRefusal(pattern)) return faulty("BAD_PATTERN", `${quote(text)} ${pattern.problem}`);
  return { ...reading, wants: "string" };
}

/**
 * Whether a pattern listens to lifecycle events, as far as is known before it runs: by the text that
 * its expressions come to where they read nothing.
 */
export function isKnownLifecyclePattern(text: unknown, names = noNames): boolean {
  if (typeof text !== "string") return false;
  return isLifecyclePattern(text.includes("${") ? (withStandIns(text, names) ?? text) : text);
}

/** The pattern as it will be; undefined where something that is read has a part in it. */
export function knownPattern(text: string, names = noNames): string | undefined {
  if (!text.includes("${")) return text;
  const pattern = withStandIns(text, names);
  return pattern === withStandIns(text, names, "y") ? pattern : undefined;
}

/** The name that an event is emitted under, in which `${…}` may give the whole or a part. */
export function readEventName(text: string, names = noNames): Reading<Template> {
  const reading = readTemplate(text, { roots: [...roots, ...names] });
  if (reading.value === undefined) return reading;
  const plain = knownText(reading.value) ?? withStandIns(text, names);
  if (plain === undefined) return { ...reading, wants: "string" };
  if (isReservedName(plain)) return faulty("RESERVED_PATTERN", `${quote(text)} ${reservedName}`);
  const problem = eventNameProblem(plain);
  if (problem === undefined) return { ...reading, wants: "string" };
  return faulty("BAD_PATTERN", `${quote(text)} ${problem}`);
}

/** Keys of a path into an event's payload: `id`, `address.city`, `lines[0].sku`, `a["b c"]`. */
export function readPayloadPath(text: string): Reading<readonly string[]> {
  const refuse = (why: string): Reading<readonly string[]> =>
    faulty("BAD_PATH", `${quote(text)} ${why}`);
  if (text.includes("${")) {
    return refuse('is an expression; a path such as "order.id" is expected, below the payload');
  }
  const prefix = /^(?:event\.payload|\$)\./.exec(text)?.[0];
  if (prefix !== undefined) {
    return refuse(
      `begins below the event; write ${quote(text.slice(prefix.length))}, below the payload`,
    );
  }
  const keys: string[] = [];
  const part = /(?:^|\.)([^.[\]"'\s]+)|\[(\d+)\]|\["([^"\\]+)"\]|\['([^'\\]+)'\]/y;
  while (part.lastIndex < text.length) {
    const match = part.exec(text);
    if (match === null) return refuse('is no path; write names and indices as in "lines[0].sku"');
    keys.push(match[1] ?? match[2] ?? match[3] ?? match[4] ?? "");
  }
  const forbidden = keys.find(isForbiddenName);
  if (forbidden !== undefined) return refuse(`names ${quote(forbidden)}, which is refused`);
  return keys.length === 0 ? refuse("is empty") : sound(keys);
}

/** Undefined where the name is refused. */
export function readVariableName(name: string): Reading<string> {
  if (!isForbiddenName(name)) return sound(name);
  return faulty(
    "BAD_VARIABLE",
    `a variable cannot be called ${quote(name)}: expressions refuse it`,
  );
}

/** The id of the task that a step calls, in which `${…}` may give the whole or a part. */
export function readTaskId(text: string, names = noNames): Reading<string | Template> {
  return readNamed("taskId", text, names);
}

/** The same of the queue that it waits in. */
export function readQueue(text: string, names = noNames): Reading<string | Template> {
  return readNamed("queue", text, names);
}

/** The same of the workflow that it starts. */
export function readWorkflowId(text: string, names = noNames): Reading<string | Template> {
  return readNamed("workflowId", text, names);
}

function readNamed(kind: NamedKind, text: string, names: Names): Reading<string | Template> {
  if (!text.includes("${")) return sound(text);
  const reading = readTemplate(text, { roots: [...roots, ...names] });
  if (reading.value === undefined) return reading;
  const known = knownText(reading.value);
  // What nobody knows may be something, or nothing.
  const texts =
    known === undefined ? [withStandIns(text, names), withStandIns(text, names, "")] : [known];
  const problems = texts.flatMap((each) => (each === undefined ? [] : [namedProblem(kind, each)]));
  const [problem] = problems;
  const isNone = problem !== undefined && !problems.includes(undefined);
  if (isNone) return faulty("BAD_ID", `${quote(text)} ${problem}`);
  return { ...reading, wants: "string" };
}

function knownText(template: Template): string | undefined {
  const value = knownValue(template)?.value;
  return typeof value === "string" ? value : undefined;
}

/**
 * The text with what each `${…}` comes to, and something else for it where nobody knows; undefined where
 * the end of an expression is not found soon.
 */
function withStandIns(text: string, names: Names, unknown = "x"): string | undefined {
  let result = "";
  let position = 0;
  for (;;) {
    const opening = text.indexOf("${", position);
    if (opening < 0) return result + text.slice(position);
    const found = expressionAt(text, opening + 2, names);
    if (found === undefined) return undefined;
    const { value } = knownValue(found.expression) ?? {};
    result += `${text.slice(position, opening)}${typeof value === "string" ? value : unknown}`;
    position = found.end;
  }
}

/**
 * Up to the first `}` with which what stands before it is an expression: a few of them may belong to
 * objects and texts inside it, and hundreds are only there to cost time.
 */
function expressionAt(
  text: string,
  start: number,
  names: Names,
): { readonly expression: Expression; readonly end: number } | undefined {
  let closing = text.indexOf("}", start);
  for (let tries = 0; closing >= 0 && tries < 16; tries += 1) {
    try {
      const source = text.slice(start, closing);
      const expression = parseExpression(source, { roots: [...roots, ...names] });
      return { expression, end: closing + 1 };
    } catch (error) {
      if (!(error instanceof ExpressionSyntaxError)) throw error;
    }
    closing = text.indexOf("}", closing + 1);
  }
  return undefined;
}

function durationProblem(
  value: unknown,
  parse: (text: string) => object | Refusal,
): string | undefined {
  if (typeof value !== "string") return `${quote(value)} is no ISO-8601 text`;
  const duration = parse(value);
  return isRefusal(duration) ? `${quote(value)} ${duration.problem}` : undefined;
}

function isForbiddenName(name: string): boolean {
  return name === "__proto__" || name === "constructor" || name === "prototype";
}

function quote(value: unknown): string {
  const text = JSON.stringify(value) ?? "undefined";
  return text.length > 80 ? `${text.slice(0, 79)}…` : text;
}
