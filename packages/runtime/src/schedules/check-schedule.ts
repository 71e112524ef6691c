import { isRefusal, parseDuration } from "@millrace/engine";
import type { Calendar } from "@millrace/engine";
import type { StoredSchedule, StoredScheduleDocument } from "@millrace/store";
import { WorkflowNotFoundError } from "../errors.ts";
import type { Problem } from "../errors.ts";
import type { Services } from "../services.ts";
import { firstTick, planOf } from "./plan.ts";
import { calendarOf } from "./scheduled-start.ts";
import { sameTiming } from "./same-timing.ts";
import { parseCron } from "./ticks.ts";
import { isTimezone } from "./wall-clock.ts";

/**
 * What is wrong with a schedule, all of it at once.
 *
 * @param value As it was handed in; what is of another type than it should be is passed over.
 * @param ofShape What whoever looked at its shape has found.
 * @param previous The schedule as it is, where it is changed.
 */
export async function scheduleProblems(
  services: Pick<Services, "definitions" | "clock" | "database">,
  tenantId: string,
  value: unknown,
  ofShape: readonly Problem[],
  previous?: StoredSchedule,
): Promise<readonly Problem[]> {
  const schedule = recordOf(value);
  if (schedule === undefined) return ofShape;
  const problems = [
    ...ofShape,
    ...timingProblems(schedule),
    ...dstProblems(schedule),
    ...durationProblems(schedule, "/catchupWindow", "catchupWindow"),
    ...durationProblems(schedule, "/jitter", "jitter"),
    ...(await targetProblems(services, tenantId, schedule)),
  ];
  const { calendar, problems: ofCalendar } = await calendarProblems(services, tenantId, schedule);
  const all = [...problems, ...ofCalendar];
  return all.length > 0 ? all : tickProblems(services, schedule, calendar, previous);
}

type Fields = Readonly<Record<string, unknown>>;

function timingProblems({ type, timing: given }: Fields): readonly Problem[] {
  const timing = recordOf(given);
  if (timing === undefined) return [];
  return [
    ...(type === "one-time" ? oneTimeProblems(timing) : []),
    ...(type === "recurring" ? recurringProblems(timing) : []),
    ...cronProblems(timing),
    ...durationProblems(timing, "/timing/interval", "interval"),
    ...shortIntervalProblems(timing),
    ...timezoneProblems(timing),
    ...rangeProblems(timing),
  ];
}

function oneTimeProblems(timing: Fields): readonly Problem[] {
  const missing = timing["executeAt"] === undefined ? [required("executeAt", "one-time")] : [];
  const odd = ["cronExpression", "interval", "startDate", "endDate"].filter(
    (name) => timing[name] !== undefined,
  );
  return [...missing, ...odd.map((name) => outOfPlace(name, "one-time"))];
}

function recurringProblems(timing: Fields): readonly Problem[] {
  const { cronExpression, interval, executeAt } = timing;
  const odd = executeAt === undefined ? [] : [outOfPlace("executeAt", "recurring")];
  if (cronExpression === undefined && interval === undefined) {
    return [...odd, required("cronExpression", "recurring", " or an interval")];
  }
  if (cronExpression === undefined || interval === undefined) return odd;
  const message = "a schedule has either a cronExpression or an interval";
  return [...odd, { path: "/timing/interval", code: "BAD_VALUE", message }];
}

function required(name: string, type: string, or = ""): Problem {
  const message = `a ${type} schedule needs ${/^[aeiou]/.test(name) ? "an" : "a"} ${name}${or}`;
  return { path: `/timing/${name}`, code: "MISSING_FIELD", message };
}

function outOfPlace(name: string, type: string): Problem {
  const message = `a ${type} schedule has no ${name}`;
  return { path: `/timing/${name}`, code: "UNKNOWN_FIELD", message };
}

function cronProblems({ cronExpression }: Fields): readonly Problem[] {
  if (typeof cronExpression !== "string" || cronExpression === "") return [];
  const cron = parseCron(cronExpression);
  if (!("problem" in cron)) return [];
  const message = `${JSON.stringify(cronExpression)} ${cron.problem}`;
  return [{ path: "/timing/cronExpression", code: "BAD_CRON", message }];
}

function timezoneProblems({ timezone }: Fields): readonly Problem[] {
  if (typeof timezone !== "string" || timezone === "" || isTimezone(timezone)) return [];
  const message = `there is no time zone ${JSON.stringify(timezone)}; name one as "Europe/Berlin"`;
  return [{ path: "/timing/timezone", code: "BAD_TIMEZONE", message }];
}

function rangeProblems({ startDate, endDate }: Fields): readonly Problem[] {
  if (typeof startDate !== "string" || typeof endDate !== "string") return [];
  if (!(Date.parse(endDate) < Date.parse(startDate))) return [];
  const message = "the endDate is before the startDate";
  return [{ path: "/timing/endDate", code: "BAD_RANGE", message }];
}

function durationProblems(within: Fields, path: string, name: string): readonly Problem[] {
  const text = within[name];
  if (typeof text !== "string" || text === "") return [];
  const parsed = parseDuration(text);
  const fault = isRefusal(parsed)
    ? parsed.problem
    : parsed.months > 0
      ? "has years or months, whose length is not fixed; give weeks, days or less"
      : undefined;
  if (fault === undefined) return [];
  return [{ path, code: "BAD_DURATION", message: `${JSON.stringify(text)} ${fault}` }];
}

const leastIntervalMs = 1_000;

function shortIntervalProblems({ interval }: Fields): readonly Problem[] {
  if (typeof interval !== "string") return [];
  const parsed = parseDuration(interval);
  if (isRefusal(parsed) || parsed.months > 0 || parsed.ms >= leastIntervalMs) return [];
  const message = `${JSON.stringify(interval)} is too short: an interval is PT1S or longer`;
  return [{ path: "/timing/interval", code: "OUT_OF_RANGE", message }];
}

function dstProblems({ dst, timing: given }: Fields): readonly Problem[] {
  if (dst === undefined) return [];
  const timing = recordOf(given);
  if (timing === undefined || timing["cronExpression"] !== undefined) return [];
  const message = "concerns a cronExpression: other ticks do not go by clocks on the wall";
  return [{ path: "/dst", code: "UNKNOWN_FIELD", message }];
}

async function calendarProblems(
  services: Pick<Services, "database">,
  tenantId: string,
  { type, calendarId }: Fields,
): Promise<{ readonly calendar: Calendar | undefined; readonly problems: readonly Problem[] }> {
  const problem = (code: string, message: string) => ({
    calendar: undefined,
    problems: [{ path: "/calendarId", code, message }],
  });
  if (typeof calendarId !== "string") return { calendar: undefined, problems: [] };
  if (type === "one-time") {
    return problem(
      "UNKNOWN_FIELD",
      "concerns a recurring schedule: what is to come once has its time",
    );
  }
  const calendar = await calendarOf(services, tenantId, { calendarId });
  if (calendar) return { calendar, problems: [] };
  return problem("UNKNOWN_CALENDAR", `there is no calendar ${JSON.stringify(calendarId)}`);
}

async function targetProblems(
  { definitions }: Pick<Services, "definitions">,
  tenantId: string,
  { target: given, input }: Fields,
): Promise<readonly Problem[]> {
  const target = recordOf(given);
  const id = target?.["id"];
  if (target === undefined || typeof id !== "string" || id === "") return [];
  if (target["type"] === "task") return taskProblems(id);
  if (target["type"] !== "workflow") return [];
  try {
    const { checkInput } = await definitions.latest(tenantId, id);
    return await checkInput(input ?? {});
  } catch (error) {
    if (!(error instanceof WorkflowNotFoundError)) throw error;
    return [{ path: "/target/id", code: "UNKNOWN_WORKFLOW", message: error.message }];
  }
}

/** It becomes part of a definition, where `${` would begin an expression. */
function taskProblems(id: string): readonly Problem[] {
  if (/^[\x21-\x7e]+$/.test(id) && !id.includes("${")) return [];
  const message = `${JSON.stringify(id)} is no task id: printable characters without blanks and "\${"`;
  return [{ path: "/target/id", code: "BAD_FORMAT", message }];
}

/** All the rest is in order: whether it ever ticks. */
function tickProblems(
  { clock }: Pick<Services, "clock">,
  schedule: Fields,
  calendar: Calendar | undefined,
  previous: StoredSchedule | undefined,
): readonly Problem[] {
  // Its shape was found to be right.
  const document = schedule as unknown as StoredScheduleDocument;
  if (previous !== undefined && sameTiming(previous.document, document)) return [];
  const now = clock.now();
  const plan = planOf(document, previous?.createdAt ?? now, calendar);
  const first = firstTick(plan, now);
  if (first !== undefined && first.getTime() >= now.getTime() - plan.catchupMs) return [];
  const { executeAt, interval } = document.timing;
  const rule =
    executeAt === undefined
      ? interval === undefined
        ? "cronExpression"
        : "interval"
      : "executeAt";
  const message =
    first === undefined
      ? "it would never tick from now on"
      : `${first.toISOString()} is further back than the catchupWindow`;
  return [{ path: `/timing/${rule}`, code: "NO_TICK", message }];
}

function recordOf(value: unknown): Fields | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as Fields)
    : undefined;
}
