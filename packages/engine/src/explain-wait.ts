import { explainCondition } from "@millrace/expressions";
import type { ExplainedCondition } from "@millrace/expressions";
import { isValueError } from "./decide/evaluate.ts";
import { MissingReads } from "./decide/read-rows.ts";
import { scopeFor } from "./decide/scope.ts";
import { openTurn } from "./decide/turn.ts";
import { liveOf, matcherOf } from "./decide/wait.ts";
import type { WaitRef } from "./decide/wait.ts";
import type { Definition } from "./definition/definition.ts";
import type { Needs, Reads } from "./state/reads.ts";
import type { EventFact } from "./state/signal.ts";
import type { Snapshot } from "./state/snapshot.ts";

/**
 * A wait's condition with the values that it has for the instance as it is now, alone or for an event.
 * Undefined where the wait has no condition, or where it cannot be evaluated.
 */
export function explainWait(
  definition: Definition,
  snapshot: Snapshot,
  wait: WaitRef,
  event: EventFact | undefined,
  reads: Reads,
  now: Date,
): ExplainedCondition | undefined | Needs {
  const condition = matcherOf(definition, wait)?.eventCondition;
  if (condition === undefined) return undefined;
  try {
    const turn = openTurn(definition, snapshot, reads, now);
    const { within } = liveOf(snapshot, wait) ?? {};
    const context = { ...(event && { event }), ...(within && { within }) };
    return explainCondition(condition, scopeFor(turn, condition, context));
  } catch (thrown) {
    if (thrown instanceof MissingReads) return { needs: thrown.requests };
    if (isValueError(thrown)) return undefined;
    throw thrown;
  }
}
