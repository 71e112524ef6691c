import * as z from "zod";
import { BOUNDS } from "./bounds.ts";

/** The id of a workflow definition. */
export const DEFINITION_ID_PATTERN = /^[A-Za-z][A-Za-z0-9_.-]{0,127}$/;
/** The id of a step, a compensation step or a branch; none that no expression could read. */
export const STEP_ID_PATTERN =
  /^(?!(?:__proto__|prototype|constructor)$)[A-Za-z_][A-Za-z0-9_-]{0,127}$/;
/** Words that an expression, which is JavaScript, reads as something else than a name. */
const RESERVED_WORDS =
  "break case catch class const continue debugger default delete do else enum export extends false finally for function if implements import in instanceof interface let new null package private protected public return static super switch this throw true try typeof undefined var void while with yield await";
/** A name that an expression can use as a root. */
const ROOT_NAME_PATTERN = new RegExp(
  `^(?!(?:__proto__|prototype|constructor|${RESERVED_WORDS.replaceAll(" ", "|")})$)[A-Za-z_][A-Za-z0-9_]{0,127}$`,
);
const UUID_PATTERN = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

export const DefinitionId = z.string().regex(DEFINITION_ID_PATTERN, {
  error: "must begin with a letter, then at most 127 letters, digits and _ . -",
});

/** Of a calendar; a DELAY names it as it is. */
export const CalendarId = z.string().regex(DEFINITION_ID_PATTERN, {
  error: "must begin with a letter, then at most 127 letters, digits and _ . -",
});

/** Where a workflow is asked for that may be there: also the reserved one of a task (CONTRACT 6). */
export const WorkflowId = z
  .string()
  .regex(/^(?:[A-Za-z][A-Za-z0-9_.-]{0,127}|task:[\x21-\x7e]{1,128})$/, {
    error:
      "must begin with a letter, then at most 127 letters, digits and _ . -; or be task: and the id of a task",
  });

export const StepId = z.string().regex(STEP_ID_PATTERN, {
  error:
    "must begin with a letter or _, then at most 127 letters, digits and _ -, and be no name that expressions refuse",
});

/** Where a step stands: `pay`, `checkout.card.charge`, `ship[3].label`; a branch or an item as well. */
export const StepPath = z
  .string()
  .max(4_000)
  .regex(/^[A-Za-z_][\w-]*(?:\.[A-Za-z_][\w-]*|\[\d{1,5}\])*$/, {
    error: "must be a step id or a path, as checkout.card.charge or ship[3].label",
  });

export const RootName = z.string().regex(ROOT_NAME_PATTERN, {
  error:
    "must begin with a letter or _, then at most 127 letters, digits and _, and be no name that expressions refuse and no word of JavaScript",
});

/** Ids are given out in lower case; a UUID in upper case is the same one. */
export const InstanceId = z.string().regex(UUID_PATTERN, { error: "must be a UUID" }).toLowerCase();

/** What both Postgres and ISO 8601 with four digits can say. */
const firstMs = Date.parse("0001-01-01T00:00:00Z");
const lastMs = Date.parse("9999-12-31T23:59:59.999Z");

/** Whether a time, in milliseconds, can be stored and shown. */
export function isStorable(ms: number): boolean {
  return ms >= firstMs && ms <= lastMs;
}

export const Timestamp = z.iso
  .datetime({
    offset: true,
    error: "must be an ISO 8601 time with its offset, as 2026-01-31T12:00:00Z",
  })
  .refine((text) => Number.isNaN(Date.parse(text)) || isStorable(Date.parse(text)), {
    error: "must be in the years 1 to 9999 of UTC, as its offset has it",
  })
  .meta({ description: "ISO 8601 time" });

/** An expression's source. Only its length is checked here; the engine parses it. */
export const Expression = z.string().min(1).max(BOUNDS.expression);

/** An ISO 8601 duration, or a value with expressions that becomes one. The engine checks it. */
export const DurationText = z.string().min(1).max(BOUNDS.expression);

/** Segments joined by dots; in a definition it may hold `${…}`, which the engine checks. */
export const PatternText = z.string().min(1).max(BOUNDS.pattern);

/** A task or workflow named by a step; may hold `${…}`. */
export const Reference = z.string().min(1).max(BOUNDS.expression);

export const Name = z.string().min(1).max(BOUNDS.name);
export const Description = z.string().max(BOUNDS.description);
export const ErrorName = z.string().min(1).max(BOUNDS.errorName);
export const VariableName = z
  .string()
  .min(1, { error: "a name must not be empty" })
  .max(BOUNDS.name, { error: `a name has at most ${BOUNDS.name} characters` });
/** An outside system's key: a correlation id, a user, an event id. */
export const Key = z.string().min(1).max(BOUNDS.key);
export const TenantId = z.string().min(1).max(BOUNDS.id);
export const Tags = z.array(z.string().min(1).max(BOUNDS.tag)).max(BOUNDS.tags);
export const Priority = z.int().min(-BOUNDS.priority).max(BOUNDS.priority);
