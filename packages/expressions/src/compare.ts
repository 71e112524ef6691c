/**
 * What follows from the sources of two conditions on the same values. Only what is certain is said:
 * conditions are taken apart into comparisons with literals, and whatever else they hold counts as
 * one thing that is true or not.
 */
import { originOf } from "./expression.ts";
import type { Expression } from "./expression.ts";
import type { BinaryNode, BinaryOperator, Node } from "./tree.ts";

type Comparison = "===" | "!==" | "<" | "<=" | ">" | ">=";

/** One comparison of something, by its source, with a literal. `truthy`: it holds by itself. */
type Atom =
  | { readonly subject: string; readonly operator: Comparison; readonly value: Literal }
  | { readonly subject: string; readonly operator: "truthy" | "falsy" };
type Literal = undefined | null | boolean | number | string;

/** All of its atoms hold. */
type Conjunction = readonly Atom[];

/** Whether the second condition holds wherever the first does. */
export function implies(first: Expression, second: Expression): boolean {
  const cases = casesOf(second);
  return casesOf(first).every((given) =>
    cases.some((wanted) => wanted.every((atom) => given.some((each) => follows(each, atom)))),
  );
}

/** Whether the condition holds for no values at all, by what its own parts say of one another. */
export function isContradiction(condition: Expression): boolean {
  const exclude = (atom: Atom, other: Atom): boolean => follows(atom, opposite(other));
  return casesOf(condition).every((atoms) =>
    atoms.some((atom, index) =>
      atoms.slice(index + 1).some((other) => exclude(atom, other) || exclude(other, atom)),
    ),
  );
}

/**
 * A number for which both conditions hold, where each also holds for numbers for which the other does
 * not, as for `x <= 100` and `x >= 100`. Undefined where this is not certain.
 */
export function overlapOf(first: Expression, second: Expression): number | undefined {
  const left = rangeOf(casesOf(first));
  const right = rangeOf(casesOf(second));
  if (left === undefined || right === undefined || left.subject !== right.subject) return undefined;
  if (contains(left, right) || contains(right, left)) return undefined;
  const least = Math.max(left.least, right.least);
  const most = Math.min(left.most, right.most);
  return least <= most ? (Number.isFinite(least) ? least : most) : undefined;
}

/** Whole numbers from `least` to `most`, both included. */
interface Range {
  readonly subject: string;
  readonly least: number;
  readonly most: number;
}

function contains(outer: Range, inner: Range): boolean {
  return outer.least <= inner.least && outer.most >= inner.most;
}

/** Whole numbers alone: between 5 and 6 there is nothing where things are counted. */
function rangeOf([atoms = [], ...others]: readonly Conjunction[]): Range | undefined {
  const [first] = atoms;
  if (first === undefined || others.length > 0) return undefined;
  const range = { subject: first.subject, least: -Infinity, most: Infinity };
  for (const atom of atoms) {
    if (atom.subject !== range.subject || !("value" in atom)) return undefined;
    const { operator, value } = atom;
    if (typeof value !== "number" || operator === "===" || operator === "!==") return undefined;
    if (operator === ">") range.least = Math.max(range.least, Math.floor(value) + 1);
    if (operator === ">=") range.least = Math.max(range.least, Math.ceil(value));
    if (operator === "<") range.most = Math.min(range.most, Math.ceil(value) - 1);
    if (operator === "<=") range.most = Math.min(range.most, Math.floor(value));
  }
  return range;
}

/** A list of choices compares each with many. */
const known = new WeakMap<Expression, readonly Conjunction[]>();

function casesOf(condition: Expression): readonly Conjunction[] {
  const cases = known.get(condition) ?? takenApart(condition);
  known.set(condition, cases);
  return cases;
}

function takenApart(condition: Expression): readonly Conjunction[] {
  return split(originOf(condition).tree, "||").map((each) =>
    split(each, "&&").map((part) => atomOf(part, condition.source)),
  );
}

function split(node: Node, operator: "&&" | "||"): readonly Node[] {
  if (node.kind !== "logical" || node.operator !== operator) return [node];
  return [...split(node.left, operator), ...split(node.right, operator)];
}

function atomOf(node: Node, source: string): Atom {
  if (node.kind === "unary" && node.operator === "!") {
    return { subject: textOf(node.operand, source), operator: "falsy" };
  }
  const compared = node.kind === "binary" ? comparisonOf(node, source) : undefined;
  return compared ?? { subject: textOf(node, source), operator: "truthy" };
}

function comparisonOf({ operator, left, right }: BinaryNode, source: string): Atom | undefined {
  const own = comparisons.get(operator);
  if (own === undefined) return undefined;
  const onRight = literalOf(right);
  if (onRight !== undefined) {
    return { subject: textOf(left, source), operator: own, value: onRight.value };
  }
  const onLeft = literalOf(left);
  if (onLeft === undefined) return undefined;
  return { subject: textOf(right, source), operator: mirrored[own], value: onLeft.value };
}

function literalOf(node: Node): { readonly value: Literal } | undefined {
  if (node.kind === "literal") return { value: node.value };
  const isNegative = node.kind === "unary" && node.operator === "-";
  const operand = isNegative ? literalOf(node.operand)?.value : undefined;
  return typeof operand === "number" ? { value: -operand } : undefined;
}

function textOf({ start, end }: Node, source: string): string {
  return source.slice(start, end).replaceAll(/\s+/g, " ");
}

const comparisons: ReadonlyMap<BinaryOperator, Comparison> = new Map<BinaryOperator, Comparison>([
  ["===", "==="],
  ["!==", "!=="],
  ["<", "<"],
  ["<=", "<="],
  [">", ">"],
  [">=", ">="],
]);

const mirrored: Readonly<Record<Comparison, Comparison>> = {
  "===": "===",
  "!==": "!==",
  "<": ">",
  "<=": ">=",
  ">": "<",
  ">=": "<=",
};

const opposites: Readonly<Record<Atom["operator"], Atom["operator"]>> = {
  "===": "!==",
  "!==": "===",
  "<": ">=",
  "<=": ">",
  ">": "<=",
  ">=": "<",
  truthy: "falsy",
  falsy: "truthy",
};

/** What is false where the atom holds; of two comparisons that hold only for numbers, at least. */
function opposite(atom: Atom): Atom {
  return { ...atom, operator: opposites[atom.operator] } as Atom;
}

function follows(given: Atom, wanted: Atom): boolean {
  if (given.subject !== wanted.subject) return false;
  if (given.operator === wanted.operator && valueOf(given) === valueOf(wanted)) return true;
  if (!("value" in given)) return false;
  if (given.operator === "===") return holds(given.value, wanted);
  if (!("value" in wanted)) return false;
  const { value: from } = given;
  const { value: to } = wanted;
  if (typeof from !== "number" || typeof to !== "number") return false;
  switch (given.operator) {
    case ">":
      return wanted.operator === ">" || wanted.operator === ">=" || wanted.operator === "!=="
        ? from >= to
        : false;
    case ">=":
      return wanted.operator === ">=" ? from >= to : isBeyond(wanted.operator, ">") && from > to;
    case "<":
      return wanted.operator === "<" || wanted.operator === "<=" || wanted.operator === "!=="
        ? from <= to
        : false;
    case "<=":
      return wanted.operator === "<=" ? from <= to : isBeyond(wanted.operator, "<") && from < to;
    case "!==":
      return false;
  }
}

function isBeyond(operator: Comparison, strict: "<" | ">"): boolean {
  return operator === strict || operator === "!==";
}

function valueOf(atom: Atom): Literal {
  return "value" in atom ? atom.value : undefined;
}

/** Whether an atom is true of one value; false also where it is not certain. */
function holds(value: Literal, atom: Atom): boolean {
  if (!("value" in atom)) return Boolean(value) === (atom.operator === "truthy");
  const { operator, value: other } = atom;
  if (operator === "===") return value === other;
  if (operator === "!==") return value !== other;
  if (typeof value !== "number" || typeof other !== "number") return false;
  if (operator === "<") return value < other;
  if (operator === "<=") return value <= other;
  return operator === ">" ? value > other : value >= other;
}
