import { placeOf } from "./analyse.ts";
import { originOf } from "./expression.ts";
import type { Expression } from "./expression.ts";
import { anyType } from "./shape.ts";
import type { KnownType } from "./shape.ts";
import type { BinaryNode, MethodNode, Node } from "./tree.ts";

/**
 * What conditions say of the types of what they read, as `type(input.x) === 'string'` does: behind such a
 * guard a value is read as what it is there, and not as all that it could be. Where it could never be that,
 * nothing behind the guard is ever evaluated, and nothing there is wrong.
 */

/** By the key of a place, what its value can be. */
export type Guards = ReadonlyMap<string, Guard>;

export interface Guard {
  readonly root: string;
  readonly types: readonly KnownType[];
}

export const noGuards: Guards = new Map();

/** More places are not kept in mind: tables of thousands of conditions may each speak of another one. */
const maxPlaces = 16;

/** What is known where a condition has come to true, or where it has come to false. */
export function guardsOf(condition: Expression, holds: boolean): Guards {
  return guardsIn(originOf(condition).tree, holds);
}

/** @param holds Whether the node has come to something that counts as true. */
export function guardsIn(node: Node, holds: boolean): Guards {
  if (node.kind === "unary" && node.operator === "!") return guardsIn(node.operand, !holds);
  if (node.kind === "binary") return guardsOfEquality(node, holds);
  if (node.kind === "method") return guardsOfMembership(node, holds);
  if (node.kind !== "logical" || node.operator === "??") return noGuards;
  const [left, right] = [guardsIn(node.left, holds), guardsIn(node.right, holds)];
  return holds === (node.operator === "&&") ? withBoth(left, right) : withEither(left, right);
}

/** Both hold. */
export function withBoth(left: Guards, right: Guards): Guards {
  if (left.size === 0 || right.size === 0) return left.size === 0 ? right : left;
  const guards = new Map(left);
  for (const [key, { root, types }] of right) {
    const known = guards.get(key)?.types;
    if (known === undefined && guards.size >= maxPlaces) continue;
    guards.set(key, { root, types: known ? types.filter((type) => known.includes(type)) : types });
  }
  return guards;
}

/** One of the two holds. */
export function withEither(left: Guards, right: Guards): Guards {
  const guards = new Map<string, Guard>();
  for (const [key, { root, types }] of left) {
    const other = right.get(key)?.types;
    if (other !== undefined) guards.set(key, { root, types: [...new Set([...types, ...other])] });
  }
  return guards;
}

/** The key of the place that a node reads, the same by all of its names. */
export function placeKeyOf(node: Node): string | undefined {
  const place = placeOf(node);
  return place && keyOf(namesOf(place));
}

function guardsOfEquality({ operator, left, right }: BinaryNode, holds: boolean): Guards {
  if (!equalities.has(operator)) return noGuards;
  const isSame = holds !== operator.startsWith("!");
  const [asked, name] = left.kind === "literal" ? [right, left] : [left, right];
  if (name.kind !== "literal") return noGuards;
  return guardOf(asked, (type) => (type === name.value) === isSame);
}

const equalities: ReadonlySet<string> = new Set(["===", "!==", "==", "!="]);

/** `['string', 'number'].includes(type(input.x))` */
function guardsOfMembership(
  { object, name, arguments: given }: MethodNode,
  holds: boolean,
): Guards {
  const [asked] = given;
  if (name !== "includes" || object.kind !== "array" || given.length !== 1) return noGuards;
  const names = object.elements.flatMap(({ value, spread }) =>
    value.kind === "literal" && !spread ? [value.value] : [],
  );
  if (names.length < object.elements.length || asked === undefined) return noGuards;
  return guardOf(asked, (type) => names.includes(type) === holds);
}

/** @param node `type(…)` of a place, else nothing is known. */
function guardOf(node: Node, isLeft: (type: KnownType) => boolean): Guards {
  const [asked] = node.kind === "call" && node.name === "type" ? node.arguments : [];
  const place = asked && placeOf(asked);
  if (place === undefined) return noGuards;
  const names = namesOf(place);
  return new Map([[keyOf(names), { root: names[0] ?? "", types: anyType.filter(isLeft) }]]);
}

/** `workflow.input.x` and what else it is called are `input.x`. */
function namesOf({ root, path }: { readonly root: string; readonly path: readonly string[] }) {
  const names = [root, ...path];
  const around = wholes.find((whole) => whole.every((name, index) => name === names[index]));
  const rest = names.slice(around?.length ?? 0);
  return parts.has(rest[0] ?? "") ? rest : names;
}

function keyOf(names: readonly string[]): string {
  return JSON.stringify(names);
}

const wholes = [["workflow", "instance", "state"], ["workflow", "instance"], ["workflow"]];
const parts: ReadonlySet<string> = new Set(["input", "variables", "steps"]);
