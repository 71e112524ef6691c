import { isStorable } from "@millrace/contract";
import type { Scope, Template } from "@millrace/expressions";
import { BadValueError } from "../errors.ts";
import type { Refusal } from "./duration.ts";
import { isRefusal } from "./duration.ts";

const shape =
  /^(?<date>\d{4}-\d{2}-\d{2})(?:T(?<clock>\d{2}:\d{2})(?<seconds>:\d{2}(?:\.\d{1,9})?)?(?<zone>Z|[+-]\d{2}:\d{2})?)?$/;

/**
 * Reads an ISO-8601 time, to the millisecond: a date (midnight UTC) or a date and time with an
 * offset. A time without an offset is refused, since it would mean something else on every machine.
 */
export function parseTime(text: string): Date | Refusal {
  const parts = text.length <= 64 ? shape.exec(text)?.groups : undefined;
  if (parts === undefined) {
    return { problem: 'is no time: expected ISO 8601 such as "2026-03-01T09:00:00Z"' };
  }
  const { date = "", clock, seconds = ":00", zone } = parts;
  // The date alone shows whether the month has such a day: `Date` moves February 30 to March.
  const midnight = new Date(`${date}T00:00:00Z`);
  if (Number.isNaN(midnight.getTime()) || !midnight.toISOString().startsWith(date)) {
    return { problem: "is no date of the calendar" };
  }
  if (clock === undefined) return isStorable(midnight.getTime()) ? midnight : outside;
  if (zone === undefined)
    return { problem: 'has no offset: end it with "Z" or one such as "+01:00"' };
  const time = new Date(`${date}T${clock}${seconds.slice(0, 7)}${zone}`);
  if (Number.isNaN(time.getTime())) return { problem: "is no time of the day" };
  return isStorable(time.getTime()) ? time : outside;
}

const outside: Refusal = { problem: "is outside the years 1 to 9999 of UTC" };

/**
 * The time that a definition's value gives in this scope.
 *
 * @throws BadValueError when it is not an ISO-8601 time; whatever evaluation itself throws passes
 *   through.
 */
export function resolveTime(template: Template, scope: Scope): Date {
  const result = template.evaluate(scope);
  if (typeof result !== "string") {
    throw new BadValueError(`a time must be ISO-8601 text, not ${JSON.stringify(result)}`);
  }
  const time = parseTime(result);
  if (isRefusal(time)) {
    throw new BadValueError(`the time ${JSON.stringify(result.slice(0, 80))} ${time.problem}`);
  }
  return time;
}
