import type { Problem, WorkflowDefinition } from "@millrace/contract";
import type { Json, PlainValue, Roots, Shape, Template } from "@millrace/expressions";
import {
  anything,
  both,
  described,
  inspect,
  isOnly,
  ofType,
  oneOf,
  optional,
} from "@millrace/expressions";
import type { ChildWorkflow } from "./child-workflows.ts";
import { didYouMean, nearNames } from "./near-name.ts";
import { below, outlineOf, textOf } from "./outline.ts";
import { problemList } from "./problem.ts";
import type { ProblemList } from "./problem.ts";
import { shapeOfSchema } from "./schema/shape.ts";
import { shapesOf } from "./shapes.ts";
import { knownValue } from "./known-values.ts";
import { namesOfItem, readStartValue, readValue } from "./values.ts";
import type { Reading } from "./readings.ts";

/**
 * What the definition's own inputSchema proves wrong of the input that a start trigger gives, whatever
 * the event is: such a trigger would never start anything (CONTRACT 1).
 */
export function checkStartInput(
  value: Json | undefined,
  path: string,
  roots: Roots,
  list: ProblemList,
): void {
  const { input: wanted = anything } = roots;
  const place = { roots, list, whose: "the inputSchema", read: readStartValue };
  if (value !== undefined) checkPart({ value, path, wanted: orNull(wanted) }, place);
}

/** The same of what a SUB_WORKFLOW step gives its child, by the child's inputSchema. */
export function childInputProblems(
  document: WorkflowDefinition,
  child: ChildWorkflow,
  inputSchema: unknown,
): readonly Problem[] {
  if (inputSchema === undefined) return [];
  const outline = outlineOf(document);
  const stepPath = child.path.slice(0, -"/workflowId".length);
  const step = outline.steps.find((each) => each.path === stepPath);
  if (step === undefined) return [];
  const list = problemList([]);
  // The input of the instance by default; the problem is then one of the step.
  const { input = "${ input }" } = step.fields;
  const path = step.fields["input"] === undefined ? child.path : `${stepPath}/input`;
  const names: string[] = [];
  for (let at = step.parent; at !== undefined; at = outline.steps[at]?.parent) {
    const around = outline.steps[at];
    if (around?.type === "MAP") names.push(...namesOfItem(textOf(around.fields["itemName"])));
  }
  checkPart(
    { value: input as Json, path, wanted: orNull(shapeOfSchema(inputSchema)) },
    {
      roots: shapesOf(outline),
      list,
      whose: `the inputSchema of ${quote(child.workflowId)}`,
      read: (value) => readValue(value, names),
    },
  );
  return list.problems;
}

interface Part {
  readonly value: Json;
  readonly path: string;
  /** What the schema allows in its place. */
  readonly wanted: Shape;
  /** It is inside of a `$literal`, where a text is only that. */
  readonly isLiteral?: boolean;
}

interface Place {
  readonly roots: Roots;
  readonly list: ProblemList;
  /** The schema, as messages call it. */
  readonly whose: string;
  readonly read: (value: Json) => Reading<Template>;
}

function checkPart(part: Part, place: Place): void {
  const { value, path, wanted, isLiteral } = part;
  if (wanted === anything) return;
  if (isLiteral !== true && isObject(value) && Object.hasOwn(value, "$literal")) {
    const inside = { ...part, value: value["$literal"] ?? null, path: `${path}/$literal` };
    return checkPart({ ...inside, isLiteral: true }, place);
  }
  const given = shapeOf(part, place);
  const { types, values } = both(given, wanted);
  if (types.length === 0 || values?.length === 0) {
    const message = `${place.whose} allows ${described(wanted)} here, and this is ${described(given)}`;
    return place.list.add(path, "TYPE_MISMATCH", message);
  }
  if (Array.isArray(value)) checkElements(part, value as readonly Json[], place);
  else if (isObject(value)) checkMembers(part, value, place);
}

function checkElements(part: Part, elements: readonly Json[], place: Place): void {
  const element = part.wanted.element?.();
  if (element === undefined) return;
  for (const [index, value] of elements.entries()) {
    checkPart({ ...part, value, path: below(part.path, index), wanted: orNull(element) }, place);
  }
}

function checkMembers(part: Part, members: Readonly<Record<string, Json>>, place: Place): void {
  const { member, names = [] } = part.wanted;
  if (member === undefined) return;
  const near = nearNames(names);
  for (const [name, value] of Object.entries(members)) {
    const wanted = member(name);
    const path = below(part.path, name);
    if (isOnly(wanted, "undefined")) {
      const message = `${place.whose} allows no ${quote(name)} here${didYouMean(near(name))}`;
      place.list.add(path, "UNKNOWN_PROPERTY", message);
    } else checkPart({ ...part, value, path, wanted }, place);
  }
  const missing = names.filter(
    (name) => !Object.hasOwn(members, name) && !member(name).types.includes("undefined"),
  );
  if (missing.length === 0) return;
  const message = `${place.whose} requires ${missing.map(quote).join(" and ")} here`;
  place.list.add(part.path, "TYPE_MISMATCH", message);
}

function shapeOf({ value, isLiteral }: Part, { roots, read }: Place): Shape {
  if (!isPlain(value)) return ofType(Array.isArray(value) ? "array" : "object");
  if (typeof value !== "string" || isLiteral === true) return oneOf(value);
  // What is wrong with the text itself is reported where it is read.
  const { value: parsed } = read(value);
  if (parsed === undefined) return anything;
  const { shape, mismatches } = inspect(parsed, roots);
  if (mismatches.some(({ code }) => code !== "NEVER_EQUAL")) return anything;
  const known = knownValue(parsed);
  return known !== undefined && isPlain(known.value) ? oneOf(known.value) : shape;
}

/** A value that is missing is null where there is nothing to leave out. */
function orNull(shape: Shape): Shape {
  return shape.types.includes("null") ? optional(shape) : shape;
}

function isObject(value: Json): value is Readonly<Record<string, Json>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isPlain(value: unknown): value is PlainValue {
  return value === null || ["undefined", "boolean", "number", "string"].includes(typeof value);
}

function quote(name: string): string {
  return JSON.stringify(name);
}
