/**
 * What can be said of an expression's value from the shapes of its roots, and what in it is wrong
 * whatever the values are: a comparison that is always false, a property that is never there, a
 * method or function that always fails. Nothing is reported that some value could make right.
 */
import { placeOf } from "./analyse.ts";
import { guardsIn, placeKeyOf, withBoth } from "./guards.ts";
import type { Guards } from "./guards.ts";
import { findMethod } from "./methods.ts";
import { nearNames } from "./near-names.ts";
import {
  absent,
  anything,
  both,
  described,
  either,
  isOnly,
  listOf,
  memberOf,
  oneOf,
  ofType,
  optional,
  without,
} from "./shape.ts";
import type { PlainValue, Shape } from "./shape.ts";
import { functionSignatures, methodResults } from "./signatures.ts";
import type {
  ArrayNode,
  BinaryNode,
  CallNode,
  MemberNode,
  MethodNode,
  Node,
  ObjectNode,
} from "./tree.ts";

export type Roots = Readonly<Record<string, Shape>>;

/** One thing that is wrong whatever the values are. */
export interface Mismatch {
  /** NEVER_EQUAL: of values whose types agree. */
  readonly code: "TYPE_MISMATCH" | "UNKNOWN_PROPERTY" | "NEVER_EQUAL";
  readonly message: string;
  readonly offset: number;
}

export interface Report {
  mismatch(code: Mismatch["code"], message: string, offset: number): void;
  /** A step's output is read, and nothing in the expression minds whether it is there. */
  bareOutput(stepId: string): void;
  /** The same of a member of it. */
  bareMember(stepId: string, member: string): void;
}

/** What is known of the values that an expression reads. */
export interface Known {
  readonly roots: Roots;
  /** What has been asked of their types before. */
  readonly guards: Guards;
}

/** The shape of a tree's value; reports on the way. */
export function infer(
  node: Node,
  source: string,
  { roots, guards: asked }: Known,
  report: Report,
): Shape {
  let guards = asked;
  /** Above zero inside what copes with a value that is missing. */
  let coping = 0;
  return shapeOf(node);

  function coped(each: Node): Shape {
    coping += 1;
    const shape = shapeOf(each);
    coping -= 1;
    return shape;
  }

  /** Where `test` has come to true, or to false. */
  function guarded(each: Node, test: Node, holds: boolean): Shape {
    const around = guards;
    guards = withBoth(guards, guardsIn(test, holds));
    const shape = coped(each);
    guards = around;
    return shape;
  }

  function shapeOf(each: Node): Shape {
    const shape = ownShape(each);
    const guard = guards.size === 0 ? undefined : guards.get(placeKeyOf(each) ?? "");
    return guard === undefined ? shape : both(shape, ofType(...guard.types));
  }

  function ownShape(each: Node): Shape {
    switch (each.kind) {
      case "literal":
        return oneOf(each.value);
      case "root":
        return (Object.hasOwn(roots, each.name) ? roots[each.name] : undefined) ?? anything;
      case "member": {
        if (coping === 0) reportOutput(each);
        return memberNamed(each, shapeOf(each.object), each.key);
      }
      case "computed": {
        const object = shapeOf(each.object);
        // "length" is a key like an index is.
        const isIndex = isOnly(shapeOf(each.key), "number", "undefined", "null", "boolean");
        if (!isIndex || !isOnly(object, "array", "undefined", "null")) return anything;
        return optional(object.element?.() ?? anything);
      }
      case "call":
        return callOf(each);
      case "method":
        return methodOf(each);
      case "unary": {
        const operand = each.operator === "!" ? coped(each.operand) : shapeOf(each.operand);
        if (each.operator === "!") return ofType("boolean");
        refuseNumber(operand, each.operand, each.operator);
        return ofType("number");
      }
      case "binary":
        return binaryOf(each);
      case "logical": {
        const left = coped(each.left);
        const right =
          each.operator === "??"
            ? coped(each.right)
            : guarded(each.right, each.left, each.operator === "&&");
        return either(each.operator === "&&" ? left : without(left, "undefined", "null"), right);
      }
      case "conditional":
        coped(each.test);
        return either(
          guarded(each.consequent, each.test, true),
          guarded(each.alternate, each.test, false),
        );
      case "array":
        return arrayOf(each);
      case "object":
        return membersOf(each);
      case "text":
        each.values.forEach(shapeOf);
        return ofType("string");
    }
  }

  function reportOutput(each: MemberNode): void {
    const stepId = stepOfOutput(each);
    if (stepId !== undefined) report.bareOutput(stepId);
    const outer = stepOfOutput(each.object);
    if (outer !== undefined) report.bareMember(outer, each.key);
  }

  function memberNamed(each: Node, object: Shape, key: string): Shape {
    const found = memberOf(object, key);
    // Of what is missing itself it has been said already, or it is meant so.
    if (!isOnly(found, "undefined") || isOnly(object, "undefined", "null")) return found;
    const [what] = textsOf(each.kind === "member" ? each.object : each);
    const of = isOnly(object, "object", "undefined", "null")
      ? ""
      : `, which is ${described(object)},`;
    const near = nearNames(key, object.names ?? [])[0];
    const hint =
      near !== undefined
        ? `; did you mean ${JSON.stringify(near)}?`
        : object.names?.length
          ? `; it has ${object.names.slice(0, 12).join(", ")}`
          : "";
    report.mismatch(
      "UNKNOWN_PROPERTY",
      `${what}${of} has no ${JSON.stringify(key)}${hint}`,
      each.start,
    );
    return anything;
  }

  function callOf(each: CallNode): Shape {
    const given = each.arguments.map(copesWithMissing.has(each.name) ? coped : shapeOf);
    const { takes, gives } = functionSignatures.get(each.name) ?? {};
    const looked = each.name === "merge" ? given : given.slice(0, 1);
    for (const [index, shape] of looked.entries()) {
      const argument = each.arguments[index];
      if (takes === undefined || argument === undefined || shape.types.length === 0) continue;
      if (shape.types.some((type) => takes.includes(type))) continue;
      const wanted = described({ types: takes.filter((type) => type !== "null") });
      const [what] = textsOf(argument);
      const message = `${each.name}() takes ${wanted}, and ${what} is ${described(shape)}`;
      report.mismatch("TYPE_MISMATCH", message, argument.start);
    }
    return gives === undefined ? anything : ofType(...gives);
  }

  function methodOf(each: MethodNode): Shape {
    const self = shapeOf(each.object);
    each.arguments.forEach(shapeOf);
    const method = findMethod(each.name);
    const present = without(self, "undefined", "null");
    const has = (type: string): boolean =>
      (type === "string" && method?.string !== undefined) ||
      (type === "array" && method?.array !== undefined) ||
      (type === "number" && method?.number !== undefined);
    if (present.types.length > 0 && !present.types.some(has)) {
      const [what] = textsOf(each.object);
      const message = `${what} is ${described(present)}, which has no method ${each.name}`;
      report.mismatch("TYPE_MISMATCH", message, each.start);
    }
    const result = methodResults.get(each.name);
    if (result === undefined) return anything;
    const mayBeMissing = present.types.length < self.types.length;
    return mayBeMissing ? ofType(...result, "undefined") : ofType(...result);
  }

  function binaryOf(each: BinaryNode): Shape {
    const isComparison = !["+", "-", "*", "/", "%"].includes(each.operator);
    const look = isComparison ? coped : shapeOf;
    const left = look(each.left);
    const right = look(each.right);
    switch (each.operator) {
      case "===":
      case "!==":
      case "==":
      case "!=":
        checkEquality(each, left, right);
        return ofType("boolean");
      case "<":
      case "<=":
      case ">":
      case ">=":
        checkOrder(each, left, right);
        return ofType("boolean");
      case "in":
        return ofType("boolean");
      case "+": {
        const isText = [left, right].some((side) => isOnly(side, "string", "array", "object"));
        if (isText) return ofType("string");
        const isNumber = [left, right].every((side) =>
          isOnly(side, "number", "boolean", "null", "undefined"),
        );
        return isNumber ? ofType("number") : ofType("number", "string");
      }
      case "-":
      case "*":
      case "/":
      case "%":
        refuseNumber(left, each.left, each.operator);
        refuseNumber(right, each.right, each.operator);
        return ofType("number");
    }
  }

  function checkEquality(each: BinaryNode, left: Shape, right: Shape): void {
    // A guard against what the schema rules out today does no harm.
    const isGuard = [left, right].some((side) => isOnly(side, "undefined", "null"));
    if (isGuard || mayBeEqual(left, right, each.operator.length === 3)) return;
    const always = each.operator.startsWith("!") ? "true" : "false";
    const [what, that] = textsOf(each.left, each.right);
    const isOfTypes = !left.types.some((type) => right.types.includes(type));
    const why = isOfTypes ? undefined : wholeOf([what, left], [that, right]);
    const hint = hintFor(left, right) ?? hintFor(right, left) ?? "";
    const message = `this is always ${always}: ${why ?? `${what} ${isOrIsOneOf(left)}, and ${that} ${isOrIsOneOf(right)}${hint}`}`;
    report.mismatch(isOfTypes ? "TYPE_MISMATCH" : "NEVER_EQUAL", message, each.start);
  }

  function checkOrder(each: BinaryNode, left: Shape, right: Shape): void {
    for (const [side, other, at] of [
      [left, right, each.left],
      [right, left, each.right],
    ] as const) {
      const [what] = textsOf(at);
      if (isOnly(side, "array", "object")) {
        const message = `this is always false: ${what} is ${described(side)}, which has no order${side.types.includes("array") ? "; size() counts it" : ""}`;
        report.mismatch("TYPE_MISMATCH", message, at.start);
      } else if (isOnly(side, "string") && isOnly(other, "number") && noNumbers(side.values)) {
        const message = `this is always false: ${what} is no number, and it is compared with one`;
        report.mismatch("TYPE_MISMATCH", message, at.start);
      }
    }
  }

  function refuseNumber(shape: Shape, at: Node, operator: string): void {
    const isNone = isOnly(shape, "array", "object");
    if (!isNone && !(isOnly(shape, "string") && noNumbers(shape.values))) return;
    const [what] = textsOf(at);
    const message = `${what} is ${described(shape)}, and "${operator}" takes a number`;
    report.mismatch("TYPE_MISMATCH", message, at.start);
  }

  function arrayOf({ elements }: ArrayNode): Shape {
    const shapes = elements.map(({ value, spread }) => {
      const shape = shapeOf(value);
      return spread ? anything : shape;
    });
    return listOf(() => shapes.reduce(either, absent));
  }

  function membersOf({ members }: ObjectNode): Shape {
    const known = new Map<string, Shape>();
    for (const member of members) {
      if (member.kind === "computed") shapeOf(member.key);
      const shape = shapeOf(member.value);
      if (member.kind === "static") known.set(member.key, shape);
      else known.clear();
    }
    return { types: ["object"], member: (key) => known.get(key) ?? anything };
  }

  function textsOf(...nodes: readonly Node[]): readonly string[] {
    return nodes.map(({ start, end }) => {
      const text = source.slice(start, end);
      return text.length > 60 ? `${text.slice(0, 59)}…` : text;
    });
  }
}

/** Functions whose result says something also where a value is missing. */
const copesWithMissing: ReadonlySet<string> = new Set([
  "isDefined",
  "isEmpty",
  "coalesce",
  "type",
  "has",
  "equals",
  "boolean",
]);

/** The step whose output a node is: `steps.<id>.output` by any of its names. */
function stepOfOutput(node: Node): string | undefined {
  if (node.kind !== "member" || node.key !== "output" || node.object.kind !== "member") {
    return undefined;
  }
  const place = placeOf(node.object.object);
  const path = place && [place.root, ...place.path].join(".");
  return path !== undefined && stepsPaths.has(path) ? node.object.key : undefined;
}

const stepsPaths: ReadonlySet<string> = new Set([
  "steps",
  "workflow.steps",
  "workflow.instance.state.steps",
]);

function mayBeEqual(left: Shape, right: Shape, isStrict: boolean): boolean {
  if (left.types.length === 0 || right.types.length === 0) return true;
  if (isWhole(left) || isWhole(right)) return false;
  if (left.values !== undefined && right.values !== undefined) {
    const { values } = right;
    return left.values.some((value) => values.some((other) => equal(value, other, isStrict)));
  }
  const sameType = left.types.some((type) => right.types.includes(type));
  if (isStrict || sameType) return sameType;
  // Loosely, a text that is no number equals none, and no list or object equals a plain value.
  const isText = (side: Shape) => isOnly(side, "string") && noNumbers(side.values);
  if (isText(left)) return !isOnly(right, "number", "boolean", "array", "object");
  if (isText(right)) return !isOnly(left, "number", "boolean", "array", "object");
  return true;
}

function isWhole(shape: Shape): boolean {
  return isOnly(shape, "array", "object");
}

function equal(left: PlainValue, right: PlainValue, isStrict: boolean): boolean {
  return isStrict ? left === right : left == right;
}

/** Texts none of which is a number. */
function noNumbers(values: readonly PlainValue[] | undefined): boolean {
  return (
    values !== undefined &&
    values.every((value) => typeof value === "string" && Number.isNaN(Number(value)))
  );
}

/** Why values of one type are never equal, where one of them is a list or object. */
function wholeOf(...sides: readonly (readonly [string | undefined, Shape])[]): string | undefined {
  const whole = sides.find(([, shape]) => isWhole(shape));
  if (whole === undefined) return undefined;
  const [what, shape] = whole;
  return `${what} is ${described(shape)}, which equals nothing here; equals() compares what is in two of them`;
}

function isOrIsOneOf(shape: Shape): string {
  return `is ${described(shape)}`;
}

/** For a text that nearly is one of those that are possible, or that only wants its quotes off. */
function hintFor(literal: Shape, other: Shape): string | undefined {
  const [value] = literal.values ?? [];
  if (literal.values?.length !== 1 || typeof value !== "string") return undefined;
  const texts = other.values?.filter((each) => typeof each === "string") ?? [];
  const near = nearNames(value, texts)[0];
  if (near !== undefined) return `; did you mean ${JSON.stringify(near)}?`;
  const isNumber = value.trim() !== "" && !Number.isNaN(Number(value));
  return isNumber && other.types.includes("number") ? `; write ${value} without quotes` : undefined;
}
