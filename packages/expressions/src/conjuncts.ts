import { analyse, placeOf } from "./analyse.ts";
import { compile } from "./compile.ts";
import { originOf, toExpression } from "./expression.ts";
import type { Expression, ExpressionOptions } from "./expression.ts";
import { conjunctsOf } from "./tree.ts";
import type { Node } from "./tree.ts";

/** An equality that must hold for the whole condition to hold. */
export interface EqualityConjunct {
  /** Keys below `event`, such as ["payload", "orderId"]; `readPath` reads them from an event. */
  readonly eventPath: readonly string[];
  /** The other side. It reads neither the event nor the clock. */
  readonly value: Expression;
}

/**
 * The top-level `&&` conjuncts `<event path> === <value without event>`, in either order: what an
 * index over open waits can be built on. `==` counts where it cannot differ from `===`.
 *
 * A condition is false when one of them is, so that only the events whose keys match need the whole
 * condition. Without `undefinedNeverEqual`, two missing sides are equal as well.
 */
export function equalityConjuncts(expression: Expression): readonly EqualityConjunct[] {
  const { tree, options } = originOf(expression);
  return conjunctsOf(tree).flatMap((conjunct) => {
    if (conjunct.kind !== "binary") return [];
    const { operator, left, right } = conjunct;
    if (operator !== "===" && operator !== "==") return [];
    for (const [event, other] of [
      [left, right],
      [right, left],
    ] as const) {
      const place = placeOf(event);
      if (place?.root !== "event" || place.path.length === 0) continue;
      if (operator === "==" && !isSameAsStrict(other, options)) continue;
      const value = partOf(expression.source, other, options);
      if (value.reads.event || value.reads.now) continue;
      return [{ eventPath: place.path, value }];
    }
    return [];
  });
}

/**
 * Whether `x == literal` is `x === literal` for every x: a text that is no number equals only
 * itself, and null equals only null once undefined equals nothing.
 */
function isSameAsStrict(node: Node, { undefinedNeverEqual = false }: ExpressionOptions): boolean {
  if (node.kind !== "literal") return false;
  if (node.value === null) return undefinedNeverEqual;
  return typeof node.value === "string" && Number.isNaN(Number(node.value));
}

/** A part of an expression as an expression of its own. */
function partOf(source: string, tree: Node, options: ExpressionOptions): Expression {
  const rules = { undefinedNeverEqual: options.undefinedNeverEqual ?? false };
  const { reads, problems, warnings } = analyse(tree, source, rules);
  const code = compile(tree, rules);
  const built = { tree, end: tree.end, problems, warnings, reads, code, rules };
  return toExpression(built, source.slice(tree.start, tree.end), options);
}
