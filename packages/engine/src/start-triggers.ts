import type { Json, Scope } from "@millrace/expressions";
import { ExpressionError } from "@millrace/expressions";
import type { WorkflowDefinition } from "@millrace/contract";
import { textOf } from "./decide/evaluate.ts";
import { isScalar, pathText } from "./decide/listen.ts";
import type { WaitKey } from "./decide/listen.ts";
import { eventView } from "./decide/scope.ts";
import { tellsOf } from "./decide/wait.ts";
import { compileStartTrigger } from "./definition/compile.ts";
import type { Definition, StartTrigger } from "./definition/definition.ts";
import type { EventFact } from "./state/signal.ts";

/** Start triggers (CONTRACT 1): what they listen to, and what an event makes of them. */

/** What a trigger is found by, as the waits of instances are (`NewWait`). */
export interface StartListener {
  /** Its place among the definition's start triggers, from 0. */
  readonly trigger: number;
  readonly pattern: string;
  readonly eventPaths: readonly string[];
  /** "NEVER": a side of an equality is missing, so that no event can match. */
  readonly key: WaitKey;
}

/** @throws DefinitionError for a document that `validateDefinition` would not have passed. */
export function startListeners({
  startTriggers = [],
}: Pick<WorkflowDefinition, "startTriggers">): readonly StartListener[] {
  return startTriggers.map((document, trigger) => {
    const { eventPattern, conjuncts } = compileStartTrigger(document);
    const key = conjuncts.map(({ value }) => evaluated(() => value.evaluate({ now: "" })));
    return {
      trigger,
      pattern: eventPattern,
      eventPaths: conjuncts.map(({ eventPath }) => pathText(eventPath)),
      key: key.every(isScalar) ? key : "NEVER",
    };
  });
}

/** What an instance is to be started with; or why a value of its trigger cannot be had. */
export type TriggeredStart =
  | { readonly input: Json; readonly correlationId: string | null }
  | { readonly failed: "input" | "correlationId"; readonly error: ExpressionError };

/**
 * What a definition makes of an event: the first of these triggers whose condition holds decides, so
 * that an event starts at most one instance of it. A condition that cannot be evaluated does not hold.
 *
 * @param triggers Places of triggers that may match, from 0.
 * @returns Undefined where none does.
 */
export function triggeredStart(
  { id, startTriggers }: Definition,
  triggers: readonly number[],
  event: EventFact,
  now: Date,
): TriggeredStart | undefined {
  if (tellsOf(event, id)) return undefined;
  const scope = { now: now.toISOString(), event: eventView(event) };
  const trigger = triggers
    .toSorted((a, b) => a - b)
    .flatMap((place) => startTriggers[place] ?? [])
    .find(({ eventCondition }) => holds(eventCondition, scope));
  return trigger && startBy(trigger, event, scope);
}

function holds(condition: StartTrigger["eventCondition"], scope: Scope): boolean {
  return condition === undefined || Boolean(evaluated(() => condition.evaluate(scope)));
}

function startBy(
  { input, correlationId }: StartTrigger,
  event: EventFact,
  scope: Scope,
): TriggeredStart {
  let failed: "input" | "correlationId" = "input";
  try {
    const value = input === undefined ? event.payload : (input.evaluate(scope) ?? null);
    failed = "correlationId";
    const text = textOf(correlationId?.evaluate(scope) as Json | undefined);
    return { input: value as Json, correlationId: text ?? null };
  } catch (thrown) {
    if (thrown instanceof ExpressionError) return { failed, error: thrown };
    throw thrown;
  }
}

/** Undefined where it fails: a side that cannot be evaluated equals nothing, and holds nowhere. */
function evaluated(evaluate: () => unknown): unknown {
  try {
    return evaluate();
  } catch (thrown) {
    if (thrown instanceof ExpressionError) return undefined;
    throw thrown;
  }
}
