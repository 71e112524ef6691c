import { createHash } from "node:crypto";
import { Cron } from "croner";
import { inPlainYears } from "./plain-years.ts";
import { longestChangeMs, openWallClock } from "./wall-clock.ts";
import type { WallClock } from "./wall-clock.ts";

/**
 * When a schedule ticks: pure, given the rule and a time.
 *
 * The cron library only says which times of a calendar match an expression, as if there were no time
 * zones. Where such a time stands in the zone, whether it comes twice or not at all, and what then holds
 * is decided here, so that the rule is ours and explicit (PROMISES, Facts that bite).
 */
export type TickRule = OnceRule | CronRule | IntervalRule;

export interface OnceRule {
  readonly kind: "once";
  readonly at: Date;
}

interface Bounds {
  /** Both are part of the time in which it ticks. */
  readonly start?: Date | undefined;
  readonly end?: Date | undefined;
  /** The first working moment at or after a time: it ticks at working moments only. */
  readonly nextWorking?: ((at: Date) => Date | undefined) | undefined;
}

export interface CronRule extends Bounds {
  readonly kind: "cron";
  readonly cron: CronExpression;
  readonly clock: WallClock;
  readonly dst: DstRule;
}

/** Time that has elapsed, whatever clocks show: the first tick is at `start`, or one interval after `origin`. */
export interface IntervalRule extends Bounds {
  readonly kind: "interval";
  readonly everyMs: number;
  readonly origin: Date;
}

/** What becomes of times that a change of the clock leaves out, and of those that come twice. */
export interface DstRule {
  readonly missing: "SHIFT" | "SKIP";
  readonly duplicate: "FIRST" | "BOTH";
}

export interface CronExpression {
  /** The next time that matches, on a calendar without time zones. */
  nextWall(after: number): number | undefined;
  /** It ticks in every hour of the day, so that it measures time rather than naming times of day. */
  readonly isEveryHour: boolean;
}

/** Times in a row that no working moment meets: beyond, none ever will. */
const mostClosed = 1_000;

/** What ISO 8601 can say with four digits. */
const last = new Date("9999-12-31T23:59:59.999Z");

/** The first tick later than `after`; undefined where there is none any more. */
export function nextTick(rule: TickRule, after: Date): Date | undefined {
  if (rule.kind === "once") return rule.at > after ? rule.at : undefined;
  const { start, end, nextWorking } = rule;
  let from = start === undefined ? after : later(after, new Date(start.getTime() - 1));
  for (let closed = 0; closed < mostClosed; closed++) {
    const tick =
      rule.kind === "cron" ? nextOfCron(rule, from.getTime()) : nextOfInterval(rule, from);
    if (tick === undefined || tick > last || (end !== undefined && tick > end)) return undefined;
    const working = nextWorking === undefined ? tick : nextWorking(tick);
    if (working === undefined) return undefined;
    if (working.getTime() === tick.getTime()) return tick;
    from = new Date(working.getTime() - 1);
  }
  return undefined;
}

/** At most `count` ticks later than `after`. */
export function nextTicks(rule: TickRule, after: Date, count: number): readonly Date[] {
  const ticks: Date[] = [];
  for (let from = after; ticks.length < count;) {
    const tick = nextTick(rule, from);
    if (tick === undefined) break;
    ticks.push(tick);
    from = tick;
  }
  return ticks;
}

/**
 * When a tick starts its run: up to `jitterMs` later, and before the tick after it. The same for the same
 * names and tick, whoever asks.
 */
export function dueAt(
  tick: Date,
  following: Date | undefined,
  jitterMs: number,
  ...names: readonly string[]
): Date {
  if (jitterMs === 0) return tick;
  const gapMs = following === undefined ? jitterMs : following.getTime() - tick.getTime();
  const hash = createHash("sha256")
    .update(JSON.stringify([...names, tick.getTime()]))
    .digest();
  const fraction = hash.readUInt32BE() / 2 ** 32;
  return new Date(tick.getTime() + Math.floor(Math.min(jitterMs, gapMs) * fraction));
}

/** A pattern that ticks every hour goes on through a change of the clock, unless the rule says otherwise. */
export function dstRuleOf(cron: CronExpression, given: Partial<DstRule> = {}): DstRule {
  return {
    missing: given.missing ?? (cron.isEveryHour ? "SKIP" : "SHIFT"),
    duplicate: given.duplicate ?? (cron.isEveryHour ? "BOTH" : "FIRST"),
  };
}

export function cronRule(
  expression: string,
  timezone: string,
  dst?: Partial<DstRule>,
  bounds: Bounds = {},
): CronRule {
  const cron = parseCron(expression);
  if ("problem" in cron) throw new RangeError(`the cron expression ${cron.problem}`);
  return {
    kind: "cron",
    cron,
    clock: openWallClock(timezone),
    dst: dstRuleOf(cron, dst),
    ...bounds,
  };
}

/** @returns Why it is no cron expression, as a sentence part that follows it in quotes. */
export function parseCron(text: string): CronExpression | { readonly problem: string } {
  const fields = text.trim().split(/\s+/);
  const isNickname = fields.length === 1 && nicknames.has(text.trim().toLowerCase());
  if (!isNickname && (fields.length < 5 || fields.length > 6)) {
    return {
      problem:
        "must have five fields (minute, hour, day of the month, month, day of the week), " +
        `or six with seconds before them; or be one of ${[...nicknames].join(", ")}`,
    };
  }
  const places = fields.length === 5 ? cronFields.slice(1) : cronFields;
  const far = isNickname ? undefined : outOfRange(fields, places);
  if (far !== undefined) return { problem: `cannot be read: ${far}` };
  const cron = readCron(text.trim());
  if (typeof cron === "string") {
    const at = fields.findIndex((field, index) => isUnreadable(field, index, fields.length));
    return { problem: `cannot be read: ${placeOf(places, at, fields[at])}${cron}` };
  }
  const hour = isNickname ? undefined : fields[fields.length === 5 ? 1 : 2];
  return {
    nextWall: (after) => inPlainYears(after, (ms) => cron.nextRun(new Date(ms))?.getTime()),
    isEveryHour: hour === undefined ? /hourly/i.test(text) : /^(?:[*?](?:\/1)?|0-23)$/.test(hour),
  };
}

interface CronField {
  readonly name: string;
  readonly least: number;
  readonly most: number;
}

const cronFields: readonly CronField[] = [
  { name: "second", least: 0, most: 59 },
  { name: "minute", least: 0, most: 59 },
  { name: "hour", least: 0, most: 23 },
  { name: "day of the month", least: 1, most: 31 },
  { name: "month", least: 1, most: 12 },
  { name: "day of the week", least: 0, most: 7 },
];

/** Numbers as they are written: the library tells of them as it counts, the first day as 0. */
function outOfRange(fields: readonly string[], places: readonly CronField[]): string | undefined {
  for (const [index, { least, most }] of places.entries()) {
    const field = fields[index] ?? "";
    const wrong = numbersOf(field).find((each) => Number(each) < least || Number(each) > most);
    if (wrong !== undefined) {
      return `${placeOf(places, index, field)}${wrong} is not from ${least} to ${most}`;
    }
  }
  return undefined;
}

/** Of `1,5-8/2,31W` they are 1, 5, 8 and 31; how far apart, and the how manieth, is something else. */
function numbersOf(field: string): readonly string[] {
  return field.split(",").flatMap((part) => {
    const [range = ""] = part.split(/[/#]/);
    const ends = /^-\d+$/.test(range) ? [range] : range.split("-");
    return ends.map((end) => end.replace(/[LW]$/i, "")).filter((end) => /^-?\d+$/.test(end));
  });
}

function placeOf(places: readonly CronField[], index: number, field = ""): string {
  const place = places[index];
  return place ? `in field ${index + 1}, the ${place.name} (${JSON.stringify(field)}), ` : "";
}

/** @returns What is wrong with it, where it cannot be read. */
function readCron(text: string): Cron | string {
  try {
    return new Cron(text, { utcOffset: 0 });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return reason
      .replace(/^CronPattern: (?:Syntax error, )?/, "")
      .replace(/^configuration entry \w+ \(.*?\) /, "something ");
  }
}

/** Whether it is this field that the library cannot read. */
function isUnreadable(field: string, index: number, count: number): boolean {
  const others = Array.from({ length: count }, (_, place) => (place === index ? field : "*"));
  return typeof readCron(others.join(" ")) === "string";
}

const nicknames = new Set([
  "@yearly",
  "@annually",
  "@monthly",
  "@weekly",
  "@daily",
  "@midnight",
  "@hourly",
]);

/** Stretch by stretch of time in which the clock is not changed: in each, wall and moment go side by side. */
function nextOfCron({ cron, clock, dst }: CronRule, after: number): Date | undefined {
  let from = after + 1;
  for (;;) {
    const { offset, until, change } = clock.stretchAt(from);
    const shown = change === undefined ? 0 : change.at + change.before;
    const isRepeating = change !== undefined && change.after < change.before;
    const seen = isRepeating && dst.duplicate === "FIRST" ? shown : -Infinity;
    const wall = cron.nextWall(Math.max(from + offset, seen) - 1);
    const moments = wall === undefined ? [] : [wall - offset];
    if (change !== undefined && !isRepeating && dst.missing === "SHIFT") {
      // As if the clock had not been changed yet.
      const missed = cron.nextWall(from + change.before - 1);
      const isMissing = missed !== undefined && missed < change.at + change.after;
      if (isMissing) moments.push(missed - change.before);
    }
    const moment = Math.min(...moments);
    if (moment < until) return new Date(moment);
    // Beyond the last match there may be only what a clock that is set back shows again.
    if (wall === undefined && until - from > longestChangeMs) return undefined;
    const isFar = wall !== undefined && until - from > nearMs;
    from = isFar ? Math.max(until, wall - offset - nearMs) : until;
  }
}

/**
 * Two moments that are farther apart have clocks in the same order, wherever they have been set to. A time
 * that comes years later is not walked to: changes of the clock before it are of no concern.
 */
const nearMs = 3 * longestChangeMs;

function nextOfInterval({ everyMs, start, origin }: IntervalRule, after: Date): Date {
  const first = start?.getTime() ?? origin.getTime() + everyMs;
  const passed = Math.floor((after.getTime() - first) / everyMs) + 1;
  return new Date(first + Math.max(0, passed) * everyMs);
}

function later(a: Date, b: Date): Date {
  return a > b ? a : b;
}
