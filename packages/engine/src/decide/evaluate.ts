import { ExpressionError } from "@millrace/expressions";
import type { Json } from "@millrace/expressions";
import type { Clocks, DurationValue } from "../definition/definition.ts";
import { durationMs } from "../definition/duration.ts";
import { BadValueError, LimitError } from "../errors.ts";
import type { WorkflowError } from "../state/snapshot.ts";
import { scopeFor } from "./scope.ts";
import type { Context } from "./standpoint.ts";
import type { Turn } from "./turn.ts";

/** Values of a definition that have to be of a certain kind, and what becomes of those that are not. */

/**
 * Milliseconds of a clock that starts at `from`, null where there is none.
 *
 * @throws ExpressionError, BadValueError
 */
export function clockMs(
  turn: Turn,
  value: DurationValue | undefined,
  context?: Context,
  from = turn.now,
): number | null {
  if (value === undefined) return null;
  const scope = "template" in value ? scopeFor(turn, value.template, context) : { now: "" };
  return durationMs(value, scope, from);
}

/**
 * When a step that no worker runs is out of time, null where it may take for ever: it has a single
 * attempt, so that the shorter of its clocks holds.
 *
 * @throws ExpressionError, BadValueError
 */
export function limitOf(
  turn: Turn,
  { timeout, totalTimeout }: Clocks,
  context: Context,
): Date | null {
  const clocks = [timeout, totalTimeout].flatMap((clock) => clockMs(turn, clock, context) ?? []);
  return clocks.length === 0 ? null : after(turn, Math.min(...clocks));
}

export function after({ now }: Turn, ms: number): Date {
  return new Date(now.getTime() + ms);
}

/** Text of a value that should be one; undefined for null and what is not there. */
export function textOf(value: Json | undefined): string | undefined {
  if (value === undefined || value === null) return undefined;
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** The error of a value that failed at run time; anything else goes on up. */
export function expressionError(
  thrown: unknown,
  stepId: string | null,
  where: string,
): WorkflowError {
  if (!isValueError(thrown)) throw thrown;
  const place = stepId === null ? where : `step "${stepId}", ${where}`;
  return {
    kind: thrown instanceof LimitError ? "LIMIT" : "EXPRESSION",
    type: thrown.code,
    message: `${place}: ${thrown.message}`,
    stepId,
    attempt: null,
    details: null,
  };
}

export function isValueError(thrown: unknown): thrown is ExpressionError | BadValueError {
  return thrown instanceof ExpressionError || thrown instanceof BadValueError;
}
