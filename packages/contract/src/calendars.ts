import * as z from "zod";
import { BOUNDS } from "./bounds.ts";
import { pageOf, pageQueryFields } from "./pagination.ts";
import { strict } from "./schema-problems.ts";
import { CalendarId, Name, Timestamp } from "./text.ts";

/** Calendars (CONTRACT 3): in which hours of which days somebody works. */

export const WEEKDAYS = [
  "monday",
  "tuesday",
  "wednesday",
  "thursday",
  "friday",
  "saturday",
  "sunday",
] as const;
export type Weekday = (typeof WEEKDAYS)[number];

const CLOCK_TIME = /^(?:(?:[01]\d|2[0-3]):[0-5]\d|24:00)$/;
const ClockTime = z.string().regex(CLOCK_TIME, {
  error: "must be a time of the day, as 09:00 or, for the day's end, 24:00",
});

/** From the first minute up to the last one, which is not within; 24:00 is the day's end. */
const Hours = strict("working hours", { from: ClockTime, to: ClockTime }).refine(
  ({ from, to }) => isInOrder(from, to) && from !== to,
  {
    error:
      '"to" must be later than "from"; hours past midnight are "24:00" and "00:00" of two days',
    path: ["to"],
  },
);
export type Hours = z.infer<typeof Hours>;

const HoursOfDay = z
  .array(Hours)
  .max(BOUNDS.hoursOfDay)
  .superRefine((hours, context) => {
    for (const [index, { from }] of hours.entries()) {
      const before = hours[index - 1];
      if (before === undefined || isInOrder(before.to, from)) continue;
      const message = `begins at ${from}, before ${before.to}, when those before it end; list them in order`;
      context.addIssue({ code: "custom", message, path: [index, "from"] });
    }
  });

/** What is no time is reported as that alone. */
function isInOrder(one: string, other: string): boolean {
  return one <= other || ![one, other].every((text) => CLOCK_TIME.test(text));
}

const officeHours = [{ from: "09:00", to: "17:00" }];
const officeWeek = {
  monday: officeHours,
  tuesday: officeHours,
  wednesday: officeHours,
  thursday: officeHours,
  friday: officeHours,
};

const LocalDate = z.iso.date({ error: "must be a date, as 2026-12-24" });

const PublicHolidays = strict("public holidays", {
  country: z
    .string()
    .regex(/^[A-Z]{2}$/, { error: "must be an ISO 3166 code of two letters, as DE" })
    .meta({ description: "ISO 3166-1 code of two letters" }),
  region: z
    .string()
    .regex(/^[A-Z0-9]{1,4}(?:-[A-Za-z0-9]{1,10})?$/, {
      error: "must be the code of a region without that of its country, as BY",
    })
    .optional()
    .meta({ description: "of the country, as BY of DE; `BY-A` is a part of BY" }),
});
export type PublicHolidays = z.infer<typeof PublicHolidays>;

const Holiday = strict("a holiday", { date: LocalDate, name: Name.optional() });

/** A calendar as it is handed in. What is closest to a day decides: workingDays, holidays, workingHours. */
export const CalendarDocument = strict("a calendar", {
  id: CalendarId,
  name: Name.optional(),
  timeZone: z
    .string()
    .max(BOUNDS.name)
    .refine(isTimeZone, {
      error: (issue) =>
        `${JSON.stringify(issue.input)} is no IANA time zone, as Europe/Berlin or UTC`,
    })
    .meta({ description: "IANA name: the zone of all hours and days of the calendar" }),
  workingHours: strict(
    "a week's working hours",
    Object.fromEntries(WEEKDAYS.map((day) => [day, HoursOfDay.optional()])) as Record<
      Weekday,
      z.ZodOptional<typeof HoursOfDay>
    >,
  )
    .default(officeWeek)
    .meta({ description: "a day that is left out has none; default: Monday to Friday, 9 to 17" }),
  holidays: strict("holidays", {
    public: z.array(PublicHolidays).max(BOUNDS.countries).optional(),
    dates: z
      .array(z.union([LocalDate, Holiday]))
      .max(BOUNDS.holidays)
      .optional(),
  }).optional(),
  workingDays: z
    .array(strict("a working day", { date: LocalDate, name: Name.optional(), hours: HoursOfDay }))
    .max(BOUNDS.holidays)
    .superRefine((days, context) => {
      const first = new Map<string, number>();
      for (const [index, { date }] of days.entries()) {
        const earlier = first.get(date);
        if (earlier === undefined) first.set(date, index);
        else {
          const message = `has hours already, at ${earlier}; give them all there`;
          context.addIssue({ code: "custom", message, path: [index, "date"] });
        }
      }
    })
    .optional()
    .meta({ description: "single days with hours of their own, holidays or not" }),
}).meta({ id: "CalendarDocument" });
export type CalendarDocument = z.infer<typeof CalendarDocument>;
/** With what may be left out of it. */
export type CalendarSource = z.input<typeof CalendarDocument>;

export const CalendarView = CalendarDocument.extend({
  version: z.int().meta({ description: "from 1, one more with each change" }),
  holidaysUntil: LocalDate.nullable().meta({
    description: "the last day for which public holidays are known; null without any",
  }),
  createdAt: Timestamp,
  updatedAt: Timestamp,
}).meta({ id: "CalendarView" });
export type CalendarView = z.infer<typeof CalendarView>;

export const ListCalendarsQuery = strict("a calendar query", pageQueryFields);
export type ListCalendarsQuery = z.infer<typeof ListCalendarsQuery>;

export const CalendarPage = pageOf(CalendarView);
export type CalendarPage = z.infer<typeof CalendarPage>;

/** Offsets as `+01:00`, which newer platforms take too, have no rules and are refused. */
function isTimeZone(name: string): boolean {
  if (!/^[A-Za-z][\w+/-]*$/.test(name)) return false;
  try {
    return new Intl.DateTimeFormat("en", { timeZone: name }).resolvedOptions().timeZone !== "";
  } catch {
    return false;
  }
}
