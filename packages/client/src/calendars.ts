import type {
  CalendarPage,
  CalendarSource,
  CalendarView,
  ListCalendarsQuery,
} from "@millrace/contract";
import type { ChangeOptions } from "./instances.ts";
import type { CallOptions, Transport } from "./transport.ts";

export type CalendarCalls = ReturnType<typeof calendarCalls>;

export function calendarCalls(send: Transport) {
  const pathOf = (id: string) => `/v1/calendars/${encodeURIComponent(id)}`;
  return {
    /** Creates a calendar; one that is there already is refused (CALENDAR_EXISTS). */
    async create(calendar: CalendarSource, options: CallOptions = {}): Promise<CalendarView> {
      const call = { method: "POST", path: "/v1/calendars", body: calendar, ...options } as const;
      return (await send<CalendarView>(call)).data;
    },

    /** Creates or changes a calendar, for delays that begin from then on. */
    async put(
      calendar: CalendarSource,
      { ifMatch, ...options }: ChangeOptions = {},
    ): Promise<CalendarView> {
      const headers = { "if-match": ifMatch === undefined ? undefined : `"${ifMatch}"` };
      const path = pathOf(calendar.id);
      const call = { method: "PUT", path, body: calendar, headers, ...options } as const;
      return (await send<CalendarView>(call)).data;
    },

    async get(id: string, options: CallOptions = {}): Promise<CalendarView> {
      return (await send<CalendarView>({ method: "GET", path: pathOf(id), ...options })).data;
    },

    /** In order of their ids, page by page. */
    async list({
      limit,
      cursor,
      ...options
    }: CallOptions & ListCalendarsQuery = {}): Promise<CalendarPage> {
      const query = { limit, cursor };
      const call = { method: "GET", path: "/v1/calendars", query, ...options } as const;
      return (await send<CalendarPage>(call)).data;
    },

    /** Delays that name it and begin later fail. */
    async delete(id: string, { ifMatch, ...options }: ChangeOptions = {}): Promise<void> {
      const headers = { "if-match": ifMatch === undefined ? undefined : `"${ifMatch}"` };
      await send({ method: "DELETE", path: pathOf(id), headers, ...options });
    },
  };
}
