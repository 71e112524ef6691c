import type { Scope, Template } from "@millrace/expressions";
import { BadValueError } from "../errors.ts";
import type { DurationValue } from "./definition.ts";

/**
 * An ISO-8601 duration. Months and years have no fixed length, so they are kept apart until the date
 * is known from which they count; weeks and days are exact, since all times are UTC.
 */
export interface Duration {
  readonly months: number;
  readonly ms: number;
}

/** A duration that counts by a calendar. Weeks are seven days of everybody's calendar, days working days. */
export interface WorkingDuration {
  readonly months: number;
  readonly weeks: number;
  readonly days: number;
  readonly ms: number;
}

/** Why a text is not what it should be: a sentence part that follows the text in quotes. */
export interface Refusal {
  readonly problem: string;
}

const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;
const day = 24 * hour;
const week = 7 * day;
/** A twelfth of the mean Gregorian year; measures against the limit only. */
const meanMonth = 2_629_746_000;

/** Anything longer is a slip, and dates stay far from where `Date` ends. */
const maxMs = 12_000 * meanMonth;
const maxLength = 64;

const amount = (name: string, letter: string): string =>
  String.raw`(?:(?<${name}>\d{1,15}(?:\.\d{1,9})?)${letter})?`;
const date =
  amount("years", "Y") + amount("months", "M") + amount("weeks", "W") + amount("days", "D");
const time = amount("hours", "H") + amount("minutes", "M") + amount("seconds", "S");
const shape = new RegExp(`^P${date}(?<time>T${time})?$`);
/** In the order in which they may be written. */
const units = [
  { name: "years", months: 12 },
  { name: "months", months: 1 },
  { name: "weeks", ms: week },
  { name: "days", ms: day },
  { name: "hours", ms: hour },
  { name: "minutes", ms: minute },
  { name: "seconds", ms: second },
] as const;

/**
 * Reads an ISO-8601 duration: `PT0.2S`, `P1W`, `P3W3D`, `P1Y2M10DT2H30M`.
 *
 * Upper case, no sign, no spaces, units in ISO order and each once. The last unit may have a decimal
 * fraction unless it is a month or a year. Zero is a duration; what is left below a millisecond is
 * rounded up, so that nothing above zero becomes zero and no timer is early.
 */
export function parseDuration(text: string): Duration | Refusal {
  const parsed = parseAmounts(text);
  if (isRefusal(parsed)) return parsed;
  const { months, weeks, days, ms } = parsed;
  return { months, ms: sum(weeks, week) + sum(days, day) + ms };
}

/**
 * A duration whose days are working days (CONTRACT 1.1, `calendarId`): what is no whole number of them
 * has no meaning.
 */
export function parseWorkingDuration(text: string): WorkingDuration | Refusal {
  const parsed = parseAmounts(text);
  if (isRefusal(parsed)) return parsed;
  const { months, weeks, days, ms } = parsed;
  if (weeks.fraction !== undefined || days.fraction !== undefined) {
    return { problem: "has a fraction of a week or day, of which a calendar has whole ones only" };
  }
  return { months, weeks: weeks.whole, days: days.whole, ms };
}

interface Amount {
  readonly whole: number;
  readonly fraction?: string | undefined;
}

interface Amounts {
  readonly months: number;
  readonly weeks: Amount;
  readonly days: Amount;
  readonly ms: number;
}

function parseAmounts(text: string): Amounts | Refusal {
  const amounts = text.length <= maxLength ? shape.exec(text)?.groups : undefined;
  if (amounts === undefined) return { problem: describeFault(text) };
  if (amounts["time"] === "T") return { problem: "has nothing after its T" };

  const used = units.filter((unit) => amounts[unit.name] !== undefined);
  if (used.length === 0) return { problem: "names no amount" };

  let months = 0;
  let ms = 0;
  const parts: { weeks: Amount; days: Amount } = { weeks: { whole: 0 }, days: { whole: 0 } };
  let dateMs = 0;
  for (const unit of used) {
    const [digits = "", fraction] = (amounts[unit.name] ?? "").split(".");
    const part = { whole: Number(digits), fraction };
    if (fraction !== undefined && unit !== used.at(-1)) {
      return { problem: "has a fraction before its last unit" };
    }
    if ("months" in unit) {
      if (fraction !== undefined) {
        return { problem: "has a fraction of a year or month, whose length is not fixed" };
      }
      months += part.whole * unit.months;
    } else if (unit.name === "weeks" || unit.name === "days") {
      parts[unit.name] = part;
      dateMs += sum(part, unit.ms);
    } else {
      ms += sum(part, unit.ms);
    }
  }
  if (months * meanMonth + dateMs + ms > maxMs) return { problem: "is longer than 1,000 years" };
  return { months, ...parts, ms };
}

function sum({ whole, fraction }: Amount, unitMs: number): number {
  return whole * unitMs + fractionMs(fraction, unitMs);
}

/** Narrows the answer of the parsers of this folder. */
export function isRefusal(value: object): value is Refusal {
  return "problem" in value;
}

/**
 * Milliseconds that a duration lasts when it begins at `from`: months first, with the day clamped to
 * the end of the month as Postgres does (January 31 + P1M = February 28 or 29), then the rest. UTC.
 */
export function durationToMs(duration: Duration, from: Date): number {
  if (duration.months === 0) return duration.ms;
  return addMonths(from, duration.months).getTime() - from.getTime() + duration.ms;
}

/** Milliseconds, a whole number, as an ISO-8601 duration in days, hours, minutes and seconds. */
export function formatDuration(ms: number): string {
  const days = Math.floor(ms / day);
  const hours = Math.floor((ms % day) / hour);
  const minutes = Math.floor((ms % hour) / minute);
  const seconds = (ms % minute) / second;
  const datePart = days > 0 ? `${days}D` : "";
  const timePart =
    (hours > 0 ? `${hours}H` : "") +
    (minutes > 0 ? `${minutes}M` : "") +
    (seconds > 0 ? `${seconds}S` : "");
  if (datePart === "" && timePart === "") return "PT0S";
  return `P${datePart}${timePart === "" ? "" : `T${timePart}`}`;
}

/**
 * The duration that a definition's value gives in this scope.
 *
 * @throws BadValueError when a template's value is not an ISO-8601 duration; whatever evaluation
 *   itself throws passes through.
 */
export function resolveDuration(value: DurationValue, scope: Scope): Duration {
  return "duration" in value ? value.duration : evaluated(value.template, scope, parseDuration);
}

/** The same of a duration that counts by a calendar. */
export function resolveWorkingDuration(
  value: DurationValue<WorkingDuration>,
  scope: Scope,
): WorkingDuration {
  return "duration" in value
    ? value.duration
    : evaluated(value.template, scope, parseWorkingDuration);
}

function evaluated<D extends object>(
  template: Template,
  scope: Scope,
  parse: (text: string) => D | Refusal,
): D {
  const result = template.evaluate(scope);
  if (typeof result !== "string") {
    throw new BadValueError(
      `a duration must be ISO-8601 text such as "PT30S", not ${show(result)}`,
    );
  }
  const duration = parse(result);
  if (isRefusal(duration)) {
    throw new BadValueError(`the duration ${show(result)} ${duration.problem}`);
  }
  return duration;
}

/** Milliseconds that a definition's duration lasts from `from`; see `resolveDuration`. */
export function durationMs(value: DurationValue, scope: Scope, from: Date): number {
  return durationToMs(resolveDuration(value, scope), from);
}

export const monthsInInterval =
  "has years or months, whose length is not fixed; give a retry interval in weeks, days or less";

/**
 * Milliseconds of a retry interval that is an expression.
 *
 * @throws ExpressionError, BadValueError
 */
export function intervalMs(template: Template, scope: Scope): number {
  const duration = resolveDuration({ template }, scope);
  if (duration.months === 0) return duration.ms;
  throw new BadValueError(`the retry interval ${monthsInInterval}`);
}

/** Ceiling of `0.<digits>` units, exact where floating point is not (`1.1 * 1000`). */
function fractionMs(digits: string | undefined, unitMs: number): number {
  if (digits === undefined) return 0;
  const scale = 10n ** BigInt(digits.length);
  return Number((BigInt(digits) * BigInt(unitMs) + scale - 1n) / scale);
}

/** Months later in UTC, with the day clamped to the end of the month. */
export function addMonths(from: Date, months: number): Date {
  const index = from.getUTCFullYear() * 12 + from.getUTCMonth() + months;
  const year = Math.floor(index / 12);
  const month = index - year * 12;
  const moved = new Date(from);
  // Day 0 of the next month is the last of this one. `setUTCFullYear` takes years below 100 as they are.
  const lastDay = new Date(0);
  lastDay.setUTCFullYear(year, month + 1, 0);
  moved.setUTCFullYear(year, month, Math.min(from.getUTCDate(), lastDay.getUTCDate()));
  return moved;
}

function describeFault(text: string): string {
  const expected = 'expected ISO 8601 such as "PT30S", "P3D" or "P1Y2M10DT2H30M"';
  if (text === "") return `is empty: ${expected}`;
  if (text.length > maxLength) return `is longer than ${maxLength} characters: ${expected}`;
  if (/\s/.test(text)) return `has a space in it: ${expected}`;
  if (/^\d{4}-\d\d/.test(text)) return `is a time, and a duration is asked for: ${expected}`;
  if (/[+-]/.test(text)) return "has a sign: a duration is zero or more";
  if (/^[a-z0-9.,]+$/i.test(text) && shape.test(text.toUpperCase())) {
    return `has lower-case letters: write "${text.toUpperCase()}"`;
  }
  if (text.includes(",")) return 'has a comma: a fraction is written with a point, as in "PT0.5S"';
  if (/^P\d+(\.\d+)?[HS]$/.test(text)) {
    return `lacks the T before hours, minutes and seconds: write "PT${text.slice(1)}"`;
  }
  if (/\d{16}/.test(text)) return "has a number that is too long";
  return `is no duration: ${expected}`;
}

function show(value: unknown): string {
  const text = value === undefined ? "undefined" : JSON.stringify(value);
  return text.length > 80 ? `${text.slice(0, 79)}…` : text;
}
