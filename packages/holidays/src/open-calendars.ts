import type { Problem, Scenario } from "@millrace/contract";
import { startOfScenario } from "@millrace/engine";
import type { Calendar } from "@millrace/engine";
import { openCalendar } from "./open-calendar.ts";

/**
 * The calendars of a scenario, by their ids.
 *
 * @returns Or all their problems, whose paths are those of the scenario.
 */
export async function openCalendars(
  scenario: Scenario,
): Promise<
  { readonly calendars: ReadonlyMap<string, Calendar> } | { readonly problems: readonly Problem[] }
> {
  const calendars = new Map<string, Calendar>();
  const problems: Problem[] = [];
  for (const [index, document] of (scenario.calendars ?? []).entries()) {
    const at = `/calendars/${index}`;
    if (calendars.has(document.id)) {
      const message = `a calendar before it is called "${document.id}" already`;
      problems.push({ path: `${at}/id`, code: "DUPLICATE_ID", message });
    }
    const opened = await openCalendar(document, startOfScenario(scenario));
    if ("problems" in opened) {
      problems.push(...opened.problems.map((each) => ({ ...each, path: `${at}${each.path}` })));
    } else calendars.set(document.id, opened.calendar);
  }
  return problems.length > 0 ? { problems } : { calendars };
}
