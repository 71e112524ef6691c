export { openCalendar } from "./open-calendar.ts";
export type { OpenedCalendar } from "./open-calendar.ts";
export { openCalendars } from "./open-calendars.ts";
