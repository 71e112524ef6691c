import { type CalendarView, DEFAULT_PAGE_SIZE } from "@millrace/contract";
import {
  CalendarNotFoundError,
  createCalendar,
  deleteCalendar,
  putCalendar,
  type Services,
} from "@millrace/runtime";
import { getCalendar, listCalendars, type StoredCalendar } from "@millrace/store";
import type { Runtime } from "./runtime.ts";

export function calendarsOf(
  services: Services,
): Pick<
  Runtime,
  "createCalendar" | "putCalendar" | "readCalendar" | "listCalendars" | "deleteCalendar"
> {
  const { db } = services.database;
  return {
    async createCalendar(caller, document) {
      return calendarView((await createCalendar(services, caller, document)).calendar);
    },
    async putCalendar(caller, id, document, ifMatch) {
      const { calendar, created } = await putCalendar(services, caller, id, document, ifMatch);
      return { calendar: calendarView(calendar), created };
    },
    async readCalendar({ tenantId }, id) {
      const calendar = await getCalendar(db, tenantId, id);
      if (calendar === undefined) throw new CalendarNotFoundError(id);
      return calendarView(calendar);
    },
    async listCalendars({ tenantId }, { limit = DEFAULT_PAGE_SIZE, cursor }) {
      const { items, nextCursor } = await listCalendars(db, tenantId, { limit, cursor });
      return { items: items.map(calendarView), nextCursor };
    },
    deleteCalendar: (caller, id, ifMatch) => deleteCalendar(services, caller, id, ifMatch),
  };
}

function calendarView({
  document,
  version,
  holidays,
  createdAt,
  updatedAt,
}: StoredCalendar): CalendarView {
  return {
    ...document,
    version,
    holidaysUntil: holidays?.until ?? null,
    createdAt: createdAt.toISOString(),
    updatedAt: updatedAt.toISOString(),
  };
}
