import { placeOf } from "./analyse.ts";
import { compile } from "./compile.ts";
import { ExpressionError } from "./errors.ts";
import { asExpressionError, originOf } from "./expression.ts";
import type { Expression } from "./expression.ts";
import { startRun } from "./run.ts";
import type { Scope } from "./run.ts";
import { childrenOf, conjunctsOf } from "./tree.ts";
import type { Node } from "./tree.ts";

/** One part of a condition, all of which must hold for the whole to hold. */
export interface ExplainedConjunct {
  readonly source: string;
  /** The source with values in the place of what it reads. */
  readonly filledIn: string;
  /** Undefined where it reads an event and there is none. */
  readonly holds: boolean | undefined;
  /** Why it could not be evaluated; it does not hold then. */
  readonly problem?: string;
}

export interface ExplainedCondition {
  readonly filledIn: string;
  readonly conjuncts: readonly ExplainedConjunct[];
}

/** Characters of one value that is filled in. */
const maxValue = 200;

/**
 * A condition for people: with its values, and by its top-level `&&` parts. Without an event in the
 * scope what is read of the event stays as it is written.
 */
export function explainCondition(expression: Expression, scope: Scope): ExplainedCondition {
  const { source } = expression;
  const { tree, options } = originOf(expression);
  const rules = { undefinedNeverEqual: options.undefinedNeverEqual ?? false };
  const hasEvent = scope.event !== undefined;

  function evaluated(node: Node): unknown {
    try {
      return compile(node, rules)(startRun(scope));
    } catch (thrown) {
      throw asExpressionError(thrown, { source, offset: node.start });
    }
  }

  function filled(node: Node): string {
    const place = placeOf(node);
    if (place !== undefined && (hasEvent || place.root !== "event")) {
      return valueText(evaluated(node));
    }
    let text = "";
    let at = node.start;
    for (const child of place === undefined ? childrenOf(node) : []) {
      text += source.slice(at, child.start) + filled(child);
      at = child.end;
    }
    return text + source.slice(at, node.end);
  }

  function explained(node: Node): ExplainedConjunct {
    const own = { source: source.slice(node.start, node.end), filledIn: filled(node) };
    if (!hasEvent && readsEvent(node)) return { ...own, holds: undefined };
    try {
      return { ...own, holds: Boolean(evaluated(node)) };
    } catch (thrown) {
      if (!(thrown instanceof ExpressionError)) throw thrown;
      return { ...own, holds: false, problem: thrown.message };
    }
  }

  return { filledIn: filled(tree), conjuncts: conjunctsOf(tree).map(explained) };
}

function readsEvent(node: Node): boolean {
  if (node.kind === "root") return node.name === "event";
  return childrenOf(node).some(readsEvent);
}

function valueText(value: unknown): string {
  const text = JSON.stringify(value) ?? "undefined";
  return text.length <= maxValue ? text : `${text.slice(0, maxValue - 1)}…`;
}
