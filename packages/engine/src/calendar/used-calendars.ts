import type { WorkflowDefinition } from "@millrace/contract";
import { pointer } from "@millrace/contract";
import { everyStep } from "../definition/every-step.ts";

/** A calendar that a step of a definition counts by. */
export interface UsedCalendar {
  /** JSON pointer of its name in the document. */
  readonly path: string;
  readonly calendarId: string;
}

/** In the order of the document. */
export function usedCalendars({ steps }: WorkflowDefinition): readonly UsedCalendar[] {
  return [...everyStep(steps)].flatMap(({ step, place }): readonly UsedCalendar[] => {
    if (step.type !== "DELAY" || step.calendarId === undefined) return [];
    return [{ path: pointer([...place, "calendarId"]), calendarId: step.calendarId }];
  });
}
