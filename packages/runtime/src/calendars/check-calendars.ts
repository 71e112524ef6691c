import { usedCalendars } from "@millrace/engine";
import type { DefinitionDocument } from "@millrace/store";
import type { Problem } from "../errors.ts";
import type { Services } from "../services.ts";
import { loadCalendars } from "./load-calendars.ts";

/** Warnings of calendars that a definition names and that are not there: they may come later. */
export async function checkCalendars(
  { database }: Pick<Services, "database">,
  tenantId: string,
  document: DefinitionDocument,
): Promise<readonly Problem[]> {
  const used = usedCalendars(document);
  const ids = [...new Set(used.map(({ calendarId }) => calendarId))];
  const calendars = await loadCalendars(database.db, tenantId, ids);
  return used.flatMap(({ path, calendarId }) => {
    if (calendars.get(calendarId)) return [];
    const message = `there is no calendar "${calendarId}" yet; the step fails unless there is when it begins`;
    return [{ path, code: "UNKNOWN_CALENDAR", message }];
  });
}
