import { defined } from "../assert.ts";
import { addWorkingTime, workingTimeFrom } from "../calendar/working-time.ts";
import type { DelayStep } from "../definition/definition.ts";
import { isRefusal, resolveWorkingDuration } from "../definition/duration.ts";
import type { WorkingDuration } from "../definition/duration.ts";
import { resolveTime } from "../definition/time.ts";
import { BadValueError } from "../errors.ts";
import type { WorkingTime } from "../state/signal.ts";
import { executionKey } from "../state/snapshot.ts";
import type { JsonObject, LiveExecution } from "../state/snapshot.ts";
import { after, clockMs } from "./evaluate.ts";
import { MissingReads } from "./read-rows.ts";
import { scopeFor } from "./scope.ts";
import type { Turn } from "./turn.ts";

/** When a delay is over, and for the audit by which calendar. */
export interface EndOfDelay {
  readonly until: Date;
  readonly counted?: JsonObject;
}

/** @throws ExpressionError, BadValueError, MissingReads */
export function endOfDelay(turn: Turn, step: DelayStep, execution: LiveExecution): EndOfDelay {
  if (step.calendar !== undefined) return workingEnd(turn, step, step.calendar, execution);
  const ms = clockMs(turn, step.duration, execution);
  return { until: ms === null ? untilTime(turn, step, execution) : after(turn, ms) };
}

function untilTime(turn: Turn, { until, stepId }: DelayStep, execution: LiveExecution): Date {
  const template = defined(until, `until of step ${stepId}`);
  return resolveTime(template, scopeFor(turn, template, execution));
}

/** A time that has passed already is moved on from now: the delay ends in working hours. */
function workingEnd(
  turn: Turn,
  step: DelayStep,
  { id, duration }: NonNullable<DelayStep["calendar"]>,
  execution: LiveExecution,
): EndOfDelay {
  const scope =
    duration !== undefined && "template" in duration
      ? scopeFor(turn, duration.template, execution)
      : { now: "" };
  const what =
    duration === undefined
      ? untilTime(turn, step, execution)
      : resolveWorkingDuration(duration, scope);

  const key = executionKey(execution.path, execution.iteration);
  const told = turn.reads.workingTimes.get(key) ?? askCalendar(turn, id, what);
  turn.workingTimes.set(key, told);
  if ("problem" in told) throw new BadValueError(`the calendar "${id}" ${told.problem}`);
  const { calendarId, calendarVersion, until } = told;
  return { until: new Date(until), counted: { calendarId, calendarVersion } };
}

function askCalendar(turn: Turn, calendarId: string, what: Date | WorkingDuration): WorkingTime {
  const calendar = turn.reads.calendars.get(calendarId);
  if (calendar === undefined) throw new MissingReads([{ kind: "calendar", calendarId }]);
  if (calendar === null) return { calendarId, problem: "does not exist" };
  const until =
    what instanceof Date
      ? workingTimeFrom(calendar, turn.now, what)
      : addWorkingTime(calendar, turn.now, what);
  if (isRefusal(until)) return { calendarId, problem: until.problem };
  return { calendarId, calendarVersion: calendar.version, until: until.toISOString() };
}
