import { isRefusal, nextWorkingTime, parseDuration } from "@millrace/engine";
import type { Calendar } from "@millrace/engine";
import type { StoredOverlapPolicy, StoredScheduleDocument } from "@millrace/store";
import { cronRule, dueAt, nextTick } from "./ticks.ts";
import type { TickRule } from "./ticks.ts";

/** What a schedule's document says, ready for use. */
export interface SchedulePlan {
  readonly rule: TickRule;
  readonly jitterMs: number;
  readonly catchupMs: number;
  readonly overlapPolicy: StoredOverlapPolicy;
}

export const defaultCatchup = "P1D";
export const defaultJitter = "PT0S";
export const defaultTimezone = "UTC";

/** A tick that comes later than this by the ordinary way of things is no missed one. */
export const leastCatchupMs = 10_000;

/**
 * @param origin When the schedule was made: an interval without a start counts from it.
 * @param calendar That which the document names.
 */
export function planOf(
  document: StoredScheduleDocument,
  origin: Date,
  calendar: Calendar | undefined,
): SchedulePlan {
  const { catchupWindow, jitter, overlapPolicy = "SKIP" } = document;
  return {
    rule: ruleOf(document, origin, calendar),
    jitterMs: msOf(jitter ?? defaultJitter),
    catchupMs: Math.max(leastCatchupMs, msOf(catchupWindow ?? defaultCatchup)),
    overlapPolicy,
  };
}

export function ruleOf(
  { timing, dst = {} }: Pick<StoredScheduleDocument, "timing" | "dst">,
  origin: Date,
  calendar?: Calendar,
): TickRule {
  const { executeAt, cronExpression, interval, timezone, startDate, endDate } = timing;
  if (executeAt !== undefined) return { kind: "once", at: new Date(executeAt) };
  const nextWorking = calendar && workingTimeOf(calendar);
  const bounds = { start: dateOf(startDate), end: dateOf(endDate), nextWorking };
  if (interval !== undefined) {
    return { kind: "interval", everyMs: msOf(interval), origin, ...bounds };
  }
  const { missing, duplicate } = dst;
  const rule = {
    ...(missing !== undefined && { missing }),
    ...(duplicate !== undefined && { duplicate }),
  };
  return cronRule(cronExpression ?? "", timezone ?? defaultTimezone, rule, bounds);
}

function workingTimeOf(calendar: Calendar): (at: Date) => Date | undefined {
  return (at) => {
    const working = nextWorkingTime(calendar, at);
    return isRefusal(working) ? undefined : working;
  };
}

/** When a rule that holds from `now` on ticks first; what is to come once may also be overdue. */
export function firstTick({ rule }: Pick<SchedulePlan, "rule">, now: Date): Date | undefined {
  return rule.kind === "once" ? rule.at : nextTick(rule, now);
}

/** When the run of a tick starts. @param uid Of the schedule. */
export function dueAtOf({ rule, jitterMs }: SchedulePlan, uid: string, tick: Date): Date {
  return dueAt(tick, jitterMs === 0 ? undefined : nextTick(rule, tick), jitterMs, uid);
}

/** Checked before: no months, and readable. */
function msOf(duration: string): number {
  const parsed = parseDuration(duration);
  if (isRefusal(parsed)) throw new RangeError(`the duration ${duration} ${parsed.problem}`);
  return parsed.ms;
}

function dateOf(text: string | undefined): Date | undefined {
  return text === undefined ? undefined : new Date(text);
}
