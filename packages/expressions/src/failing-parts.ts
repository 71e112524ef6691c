/**
 * Parts of an expression that fail whatever the values are. What reads no root comes to the same in
 * each run, so that it can be found out beforehand; and where it fails and is evaluated in each run,
 * so does all that is around it.
 */
import { compile } from "./compile.ts";
import type { CompileOptions } from "./compile.ts";
import { findFunction } from "./functions.ts";
import { Failure } from "./run.ts";
import type { Run } from "./run.ts";
import { childrenOf } from "./tree.ts";
import type { Node } from "./tree.ts";

/** What one part fails with. */
export interface FailingPart {
  readonly failure: Failure;
  /** Source offset of the operation that fails. */
  readonly offset: number;
}

/**
 * The first such part, in the order of evaluation. What is evaluated only at times is not looked at:
 * branches of `?:`, right sides of `&&`, `||` and `??`, and what is passed over where a value is missing.
 *
 * @param run Of no values. Once its work is spent nothing more is found.
 */
export function failingPart(
  tree: Node,
  options: CompileOptions,
  run: Run,
): FailingPart | undefined {
  if (isFixed(tree)) return failureOf(tree, options, run);
  for (const part of partsOf(tree)) {
    const found = failingPart(part, options, run);
    if (found !== undefined) return found;
  }
  return undefined;
}

function failureOf(tree: Node, options: CompileOptions, run: Run): FailingPart | undefined {
  if (tree.kind === "literal" || run.work <= 0) return undefined;
  run.at = tree.start;
  try {
    compile(tree, options)(run);
    return undefined;
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    return error.code === "WORK_LIMIT" ? undefined : { failure: error, offset: run.at };
  }
}

/** It reads neither a root nor the time, and comes to the same each time. */
export function isFixed(node: Node): boolean {
  const known = fixed.get(node);
  if (known !== undefined) return known;
  const isClock = node.kind === "call" && findFunction(node.name)?.clock === true;
  const reads = node.kind === "root" || isClock;
  const is = !reads && childrenOf(node).every(isFixed);
  fixed.set(node, is);
  return is;
}

/** Each node is asked for by all that is around it. */
const fixed = new WeakMap<Node, boolean>();

/** What is evaluated whenever the node is. */
function partsOf(node: Node): readonly Node[] {
  const children = childrenOf(node);
  return mayPassOver.has(node.kind) ? children.slice(0, 1) : children;
}

/** The first of these says whether the rest is evaluated. */
const mayPassOver: ReadonlySet<Node["kind"]> = new Set([
  "computed",
  "method",
  "logical",
  "conditional",
]);
