import { BOUNDS, DEFINITION_ID_PATTERN } from "@millrace/contract";
import { BadValueError } from "../errors.ts";

/** What a step calls by an id, or a name, which may be an expression. */
export type NamedKind = "taskId" | "queue" | "workflowId";

/**
 * What an expression may come to there. A text that holds none is taken as it stands, since documents of old
 * may hold others.
 */
const forms: Readonly<Record<NamedKind, { readonly pattern: RegExp; readonly says: string }>> = {
  taskId: {
    pattern: new RegExp(`^[^\\p{Cc}\\p{Cs}]{1,${BOUNDS.name}}$`, "u"),
    says: `a task's id has 1 to ${BOUNDS.name} characters, none of them a control character`,
  },
  // As MILLRACE_QUEUES has them: no worker could serve another one.
  queue: {
    pattern: /^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$/,
    says: "a queue's name begins with a letter or digit, then at most 127 letters, digits and _ . -",
  },
  workflowId: {
    pattern: DEFINITION_ID_PATTERN,
    says: "a workflow's id begins with a letter, then at most 127 letters, digits and _ . -",
  },
};

/** Why nothing is called so; undefined where something may be. */
export function namedProblem(kind: NamedKind, text: string): string | undefined {
  const { pattern, says } = forms[kind];
  return pattern.test(text) ? undefined : `is none: ${says}`;
}

/**
 * What the expression of a definition gave at run time.
 *
 * @throws BadValueError when it is no text, or nothing can be called so.
 */
export function namedFrom(kind: NamedKind, value: unknown): string {
  if (typeof value !== "string") {
    const shown = JSON.stringify(value)?.slice(0, 80) ?? "undefined";
    throw new BadValueError(`the ${kind} must be a text, not ${shown}`);
  }
  const problem = namedProblem(kind, value);
  if (problem === undefined) return value;
  throw new BadValueError(`the ${kind} ${JSON.stringify(value.slice(0, 80))} ${problem}`);
}
