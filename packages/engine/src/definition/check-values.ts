import type { Expression, Json, Roots, Template } from "@millrace/expressions";
import { anything, described, inspect } from "@millrace/expressions";
import { defaultRetryPolicy } from "../retry.ts";
import type { ReadsFound } from "./check-reads.ts";
import { sources } from "./check-reads.ts";
import { checkStartInput } from "./check-start-input.ts";
import { checkWays } from "./check-ways.ts";
import { didYouMean, nearNames } from "./near-name.ts";
import type { Fields, Outline, StepOutline } from "./outline.ts";
import { below, fieldsOf, itemsOf, textOf } from "./outline.ts";
import { shapesOf } from "./shapes.ts";
import { isLifecyclePattern, lifecycleEvents, patternMatches, reservedPrefix } from "./pattern.ts";
import type { ProblemList } from "./problem.ts";
import type { Names, Reading } from "./values.ts";
import {
  isRoot,
  namesOfItem,
  notYet,
  readCondition,
  readDuration,
  readEventCondition,
  readEventName,
  readEventPattern,
  readInput,
  readInterval,
  readItems,
  readPayloadPath,
  readPlainName,
  readReason,
  readStartCondition,
  readStartPattern,
  readStartValue,
  readUntil,
  readValue,
  readVariableName,
} from "./values.ts";

/** Values that are evaluated on entering or leaving a step, and the steps that they read. */
export interface StepRead {
  /** Index of the step that is entered or left. */
  readonly reader: number;
  /** It is left: it has run. */
  readonly isAfter: boolean;
  readonly stepIds: readonly string[];
  /** Those of which the output is read. */
  readonly outputs: readonly string[];
  /** Where an output is read without a care whether it is there. */
  readonly bare: readonly { readonly stepId: string; readonly path: string }[];
  /** JSON pointers of the expressions that read this one of them. */
  readonly where: (stepId: string) => readonly string[];
}

/** Whatever concerns single values: expressions, durations, times, patterns, names. */
export function checkValues(outline: Outline, list: ProblemList): ReadsFound {
  const { fields, steps, compensationSteps } = outline;
  const roots = shapesOf(outline);
  const { checker, found } = valueChecker(outline, list);
  const check = checker(undefined, { names: [], roots });

  if (fields["concurrency"] !== undefined) {
    list.add("/concurrency", "NOT_SUPPORTED_YET", notYet('"concurrency"'));
  }
  checkInitialVariables(fieldsOf(fields["variables"]), check, list);
  check.text("/timeout", fields["timeout"], readDuration);
  check.json("/output", fields["output"], readValue);
  checkRetry(fieldsOf(fields["retry"]), "/retry", defaultRetryPolicy.maxIntervalMs, check, list);
  const longest = longestInterval(fields);

  for (const [index, trigger] of itemsOf(fields["cancellationTriggers"]).entries()) {
    const path = `/cancellationTriggers/${index}`;
    const own = fieldsOf(trigger);
    checkMatcher(own, path, check, list);
    check.text(`${path}/reason`, own["reason"], readReason);
  }
  for (const [index, trigger] of itemsOf(fields["startTriggers"]).entries()) {
    const path = `/startTriggers/${index}`;
    const own = fieldsOf(trigger);
    check.text(`${path}/eventPattern`, own["eventPattern"], readStartPattern);
    warnOfUnheard(own["eventPattern"], path, list);
    check.text(`${path}/eventCondition`, own["eventCondition"], readStartCondition);
    check.json(`${path}/input`, own["input"], readStartValue);
    checkStartInput(own["input"] as Json | undefined, `${path}/input`, roots, list);
    check.text(`${path}/correlationId`, own["correlationId"], readStartValue);
  }
  const inside: Surroundings[] = [];
  for (const [index, step] of steps.entries()) {
    // What is around a step comes before it.
    const around = inside[step.parent ?? -1] ?? { names: [], roots };
    const entering = checker({ reader: index, isAfter: false }, around);
    const leaving = checker({ reader: index, isAfter: true }, around);
    checkStep(step, { leaving, entering, list, longest, outline });
    inside[index] = step.type === "MAP" ? insideOf(step, around) : around;
  }
  const indexOf = new Map(steps.map(({ stepId }, index) => [stepId, index]));
  for (const { fields: own, path, compensationFor } of compensationSteps) {
    // Inside it the items are those of the execution that it undoes.
    const undone = compensationFor === undefined ? undefined : indexOf.get(compensationFor);
    const parent = undone === undefined ? undefined : steps[undone]?.parent;
    const undoing = checker(undefined, inside[parent ?? -1] ?? { names: [], roots });
    undoing.text(`${path}/condition`, own["condition"], readCondition);
    checkTaskCall(own, path, longest, undoing, list);
  }
  return found;
}

/** The roots that expressions have in a place, beside those that they have everywhere. */
interface Surroundings {
  readonly names: Names;
  /** What is known of them, and of all others. */
  readonly roots: Roots;
}

/** Inside of a MAP there are its items. */
function insideOf({ fields }: StepOutline, { names, roots }: Surroundings): Surroundings {
  const itemName = textOf(fields["itemName"]);
  const { parsed } = readItems(fields["items"] as Json, names);
  const item = (parsed && inspect(parsed, roots).shape.element?.()) ?? anything;
  return {
    names: [...names, ...namesOfItem(itemName)],
    roots: { ...roots, item, ...(itemName !== undefined && { [itemName]: item }) },
  };
}

type Reader<V, T> = (value: V, names?: Names) => Reading<T>;

/** Reads values and reports what is found; what is absent or of the wrong type is passed over. */
interface Check {
  text<T>(path: string, value: unknown, read: Reader<string, T>): T | undefined;
  json<T>(path: string, value: unknown, read: Reader<Json, T>): T | undefined;
}

function valueChecker(outline: Outline, list: ProblemList) {
  const reads: StepRead[] = [];
  const asked = new Map<number, Set<string>>();
  const near = nearNames(outline.byId.keys());

  /**
   * @param at The step that is being entered or left, where there is one.
   * @param around The items that the values are inside of.
   */
  const checker = (
    at: Pick<StepRead, "reader" | "isAfter"> | undefined,
    { names, roots }: Surroundings,
  ): Check => {
    const take = <T>(path: string, reading: Reading<T>): T | undefined => {
      for (const each of reading.problems) list.add(path + each.at, each.code, each.message);
      for (const each of reading.warnings) list.warn(path + each.at, each.code, each.message);
      const bareOutputs = checkTypes(path, reading, roots, list);
      if (at !== undefined && reading.isCondition === true) noteAsked(asked, at.reader, reading);
      const { steps: stepIds } = reading;
      if (stepIds === undefined || stepIds === "ALL" || stepIds.length === 0) return reading.value;

      let places: ReadonlyMap<string, readonly string[]> | undefined;
      const where = (stepId: string): readonly string[] => {
        places ??= reading.placesOfSteps?.();
        return (places?.get(stepId) ?? []).map((pointer) => path + pointer);
      };
      for (const stepId of stepIds) {
        if (outline.byId.has(stepId)) continue;
        const message = `there is no step ${quote(stepId)}${didYouMean(near(stepId))}`;
        for (const place of where(stepId)) list.add(place, "UNKNOWN_STEP", message);
      }
      if (at !== undefined) {
        const outputs = reading.parsed?.reads.stepOutputs ?? [];
        const bare = reading.isCondition === true ? [] : bareOutputs;
        reads.push({ ...at, stepIds, outputs, bare, where });
      }
      return reading.value;
    };
    return {
      text: (path, value, read) =>
        typeof value === "string" ? take(path, read(value, names)) : undefined,
      // The whole document has been found to be JSON.
      json: (path, value, read) =>
        value === undefined ? undefined : take(path, read(value as Json, names)),
    };
  };
  return { checker, found: { reads, asked } satisfies ReadsFound };
}

function noteAsked(
  asked: Map<number, Set<string>>,
  reader: number,
  { parsed }: Reading<unknown>,
): void {
  if (parsed === undefined) return;
  const { steps, variables, input, item, instance } = parsed.reads;
  const known = asked.get(reader) ?? new Set();
  asked.set(reader, known);
  for (const stepId of steps === "ALL" ? [] : steps) known.add(stepId);
  if (variables || steps === "ALL") known.add(sources.variables);
  if (input || item) known.add(sources.input);
  if (instance) known.add(sources.instance);
}

/**
 * What the schemas and the types of steps prove of an expression, and of what its place needs.
 *
 * @returns The outputs that it reads without a care whether they are there.
 */
function checkTypes(
  path: string,
  { parsed, wants }: Reading<unknown>,
  roots: Roots,
  list: ProblemList,
): StepRead["bare"] {
  if (parsed === undefined || parsed.reads.roots.length === 0) return [];
  const { shape, mismatches, bareOutputs } = inspect(parsed, roots);
  const bare = bareOutputs.map(({ stepId, pointer }) => ({ stepId, path: path + pointer }));
  for (const { pointer, code, message } of mismatches) list.add(path + pointer, code, message);
  if (wants === undefined || mismatches.length > 0) return bare;
  if (shape.types.length === 0 || shape.types.includes(wants)) return bare;
  const message = `${described({ types: [wants] })} is wanted here, and this is ${described(shape)}`;
  list.add(path, "TYPE_MISMATCH", message);
  return bare;
}

interface StepContext {
  /** For what is evaluated when the step has run. */
  readonly leaving: Check;
  /** For what is evaluated when it is entered. */
  readonly entering: Check;
  readonly list: ProblemList;
  readonly longest: number | Template;
  readonly outline: Outline;
}

function checkStep(step: StepOutline, context: StepContext): void {
  const { fields, path, type } = step;
  const { leaving, entering, list } = context;
  entering.text(`${path}/condition`, fields["condition"], readCondition);
  const transitions = fieldsOf(fields["transitions"]);
  checkWays(transitions["conditions"], `${path}/transitions/conditions`, conditions(leaving), list);
  checkErrorHandlers(fields["onError"], `${path}/onError`, list);
  if (type !== undefined && type !== "TASK") checkIdleFields(step, list);
  if (takesTime.has(type ?? "")) checkClocks(fields, path, clocks, entering);

  switch (type) {
    case "TASK":
      checkTaskCall(fields, path, context.longest, entering, list);
      break;
    case "EVENT_WAIT":
      checkEventWait(step, context);
      break;
    case "DELAY":
      entering.text(`${path}/duration`, fields["duration"], readDuration);
      entering.text(`${path}/until`, fields["until"], readUntil);
      if (fields["calendarId"] !== undefined) {
        list.add(`${path}/calendarId`, "NOT_SUPPORTED_YET", notYet('"calendarId"'));
      }
      break;
    case "CHOICE":
      checkWays(fields["choices"], `${path}/choices`, conditions(entering), list);
      break;
    case "SET":
      for (const [name, value] of Object.entries(fieldsOf(fields["variables"]))) {
        const at = below(`${path}/variables`, name);
        entering.text(at, name, readVariableName);
        entering.json(at, value, readValue);
      }
      break;
    case "END":
      for (const key of ["output", "error", "reason"]) {
        entering.json(`${path}/${key}`, fields[key], readValue);
      }
      break;
    case "PARALLEL":
      checkBranches(step, list);
      break;
    case "MAP":
      entering.json(`${path}/items`, fields["items"], readItems);
      checkItemName(step, list);
      break;
    case "SUB_WORKFLOW":
      checkSubWorkflow(step, context);
      break;
    case "EMIT_EVENT":
      entering.text(`${path}/eventPattern`, fields["eventPattern"], readEventName);
      entering.json(`${path}/payload`, fields["payload"], readValue);
      break;
    case undefined:
    default:
      // The contract's schema reports a type that is missing or unknown.
      break;
  }
}

function checkBranches({ fields, path }: StepOutline, list: ProblemList): void {
  const branches = itemsOf(fields["branches"]);
  const taken = new Map<string, number>();
  for (const [index, branch] of branches.entries()) {
    const name = textOf(fieldsOf(branch)["name"]);
    const first = name === undefined ? undefined : taken.get(name);
    if (name !== undefined && first === undefined) taken.set(name, index);
    if (first === undefined) continue;
    const message = `the branch at ${first} is called ${quote(name)} already`;
    list.add(`${path}/branches/${index}/name`, "DUPLICATE_BRANCH", message);
  }
  const { count } = fieldsOf(fields["join"]);
  if (typeof count === "number" && count > branches.length) {
    const message = `${count} branches can never complete: there are ${branches.length}`;
    list.add(`${path}/join/count`, "BAD_JOIN", message);
  }
  if (fields["join"] !== undefined && fields["join"] !== "ALL" && fields["onBranchError"]) {
    const message = "this only matters where all branches are joined; others may always fail";
    list.warn(`${path}/onBranchError`, "NO_EFFECT", message);
  }
}

function checkItemName({ fields, path }: StepOutline, list: ProblemList): void {
  const name = textOf(fields["itemName"]);
  if (name === undefined || !isRoot(name)) return;
  const message = `${quote(name)} stands for something else in expressions; call the items another name`;
  list.add(`${path}/itemName`, "BAD_VARIABLE", message);
}

function checkSubWorkflow({ fields, path }: StepOutline, context: StepContext): void {
  const { entering, list, longest, outline } = context;
  const { workflowId, version, condition, detached } = fields;
  entering.text(`${path}/workflowId`, workflowId, readPlainName("a workflowId"));
  entering.json(`${path}/input`, fields["input"], readValue);
  checkRetry(fieldsOf(fields["retry"]), `${path}/retry`, longest, entering, list);
  const isItself = workflowId !== undefined && workflowId === outline.fields["id"];
  if (!isItself || version !== undefined || condition !== undefined || detached === true) return;
  const message = `the workflow starts itself and waits for it, again and again: give the step a condition, or make it detached`;
  list.add(`${path}/workflowId`, "RECURSIVE_WORKFLOW", message);
}

/** What a TASK and a compensation step share. */
function checkTaskCall(
  fields: Fields,
  path: string,
  longest: number | Template,
  check: Check,
  list: ProblemList,
): void {
  check.text(`${path}/taskId`, fields["taskId"], readPlainName("a taskId"));
  check.text(`${path}/queue`, fields["queue"], readPlainName("a queue"));
  check.json(`${path}/input`, fields["input"], readInput);
  checkClocks(fields, path, [...clocks, ...taskClocks], check);
  checkRetry(fieldsOf(fields["retry"]), `${path}/retry`, longest, check, list);
}

function checkClocks(fields: Fields, path: string, names: readonly string[], check: Check): void {
  for (const name of names) check.text(`${path}/${name}`, fields[name], readDuration);
}

function checkEventWait({ fields, path, stepId }: StepOutline, context: StepContext): void {
  const { entering, list, outline } = context;
  checkAwaited(fields, path, entering, list);

  const timeout = fieldsOf(fields["eventTimeout"]);
  entering.text(`${path}/eventTimeout/duration`, timeout["duration"], readDuration);
  const isBounded = ["eventTimeout", ...clocks].some((name) => fields[name] !== undefined);
  if (!isBounded && outline.fields["timeout"] === undefined) {
    const message = `${quote(stepId ?? "the step")} waits for ever if its event never comes; give it an eventTimeout, or the workflow a timeout`;
    list.warn(path, "WAIT_WITHOUT_TIMEOUT", message);
  }

  const { lookback } = fields;
  const matchers = [fields, ...itemsOf(fields["events"]).map(fieldsOf)];
  if (lookback !== "instance") entering.text(`${path}/lookback`, lookback, readDuration);
  const isReserved = matchers.some(({ eventPattern }) => isLifecyclePattern(eventPattern));
  if (lookback !== undefined && isReserved) {
    const message = `events under "${reservedPrefix}" are not looked back for; take the lookback out`;
    list.add(`${path}/lookback`, "RESERVED_PATTERN", message);
  }

  for (const [name, value] of Object.entries(fieldsOf(fields["eventPayloadMapping"]))) {
    const at = below(`${path}/eventPayloadMapping`, name);
    entering.text(at, name, readVariableName);
    entering.text(at, value, readPayloadPath);
  }
}

/** One event that the step names itself, or a list of them. */
function checkAwaited(fields: Fields, path: string, check: Check, list: ProblemList): void {
  const { events, mode } = fields;
  if (events === undefined) {
    checkMatcher(fields, path, check, list);
    if (mode === undefined) return;
    list.warn(`${path}/mode`, "NO_EFFECT", '"mode" has no effect without a list of "events"');
    return;
  }
  if (fields["eventCondition"] !== undefined) {
    const message = 'each of the "events" has a condition of its own; put this one there';
    list.add(`${path}/eventCondition`, "MISPLACED", message);
  }
  for (const [index, event] of itemsOf(events).entries()) {
    const own = fieldsOf(event);
    checkMatcher(own, `${path}/events/${index}`, check, list);
    if (mode !== "ALL" || own["to"] === undefined) continue;
    const message =
      'under "ALL" no event alone decides where to go; use the "transitions" of the step';
    list.add(`${path}/events/${index}/to`, "MISPLACED", message);
  }
}

function checkMatcher(fields: Fields, path: string, check: Check, list: ProblemList): void {
  const { eventPattern } = fields;
  const pattern = check.text(`${path}/eventPattern`, eventPattern, readEventPattern);
  check.text(`${path}/eventCondition`, fields["eventCondition"], readEventCondition);
  if (pattern?.isConstant === true) warnOfUnheard(eventPattern, path, list);
}

function warnOfUnheard(eventPattern: unknown, path: string, list: ProblemList): void {
  if (!isLifecyclePattern(eventPattern)) return;
  if (lifecycleEvents.some((name) => patternMatches(eventPattern, name))) return;
  const message = `no event is called so: those under "${reservedPrefix}" are ${lifecycleEvents.join(", ")}; for an expression write "\${ … }"`;
  list.warn(`${path}/eventPattern`, "NEVER_MATCHES", message);
}

/** Reads conditions as a check does. */
function conditions(check: Check) {
  return (at: string, when: unknown): Expression | undefined => check.text(at, when, readCondition);
}

function checkErrorHandlers(handlers: unknown, path: string, list: ProblemList): void {
  const caught = new Map<unknown, number>();
  for (const [index, handler] of itemsOf(handlers).entries()) {
    for (const [position, name] of itemsOf(fieldsOf(handler)["errors"]).entries()) {
      const earlier = caught.get("*") ?? caught.get(name);
      if (earlier !== undefined && earlier !== index) {
        const message = `${quote(name)} never comes here: the handler at ${earlier} takes it`;
        list.warn(`${path}/${index}/errors/${position}`, "NEVER_TAKEN", message);
      }
      if (!caught.has(name)) caught.set(name, index);
    }
  }
}

function checkRetry(
  fields: Fields,
  path: string,
  longest: number | Template,
  check: Check,
  list: ProblemList,
): void {
  const initial = check.text(`${path}/initialInterval`, fields["initialInterval"], readInterval);
  const max = check.text(`${path}/maxInterval`, fields["maxInterval"], readInterval) ?? longest;
  if (typeof initial === "number" && typeof max === "number" && initial > max) {
    const message = `this is longer than maxInterval, which is ${max / 1_000} s and holds; raise maxInterval too`;
    list.warn(`${path}/initialInterval`, "INTERVAL_CAPPED", message);
  }
}

/** Milliseconds of the definition's own `maxInterval`, else of the default. */
function longestInterval(fields: Fields): number | Template {
  const { maxInterval } = fieldsOf(fields["retry"]);
  const own = typeof maxInterval === "string" ? readInterval(maxInterval).value : undefined;
  return own ?? defaultRetryPolicy.maxIntervalMs;
}

/** Initial variables are taken as they are: there is nothing yet that an expression could read. */
function checkInitialVariables(variables: Fields, check: Check, list: ProblemList): void {
  for (const [name, value] of Object.entries(variables)) {
    const at = below("/variables", name);
    check.text(at, name, readVariableName);
    if (!quote(value).includes("${")) continue;
    const message = `initial variables are taken as they are, and this one holds "\${"; set it in a SET step`;
    list.warn(at, "NOT_EVALUATED", message);
  }
}

/** Clocks of every step that takes time, and those of one that a worker runs. */
const clocks = ["timeout", "totalTimeout"];
const taskClocks = ["scheduleTimeout", "heartbeatTimeout"];

/** Steps that take time and that no worker runs. */
const takesTime: ReadonlySet<string> = new Set([
  "EVENT_WAIT",
  "DELAY",
  "PARALLEL",
  "MAP",
  "SUB_WORKFLOW",
]);

/**
 * Clocks and retries that a step of this type has no use for. One that waits and is never queued would
 * wait on, against what the clock says it should: that is refused.
 */
function checkIdleFields({ fields, path, type }: StepOutline, list: ProblemList): void {
  const waits = takesTime.has(type ?? "");
  for (const key of ["retry", ...taskClocks, ...clocks]) {
    if (fields[key] === undefined || (waits && clocks.includes(key))) continue;
    if (key === "retry" && type === "SUB_WORKFLOW" && fields["detached"] !== true) continue;
    if (waits && taskClocks.includes(key)) {
      const what = key === "scheduleTimeout" ? "a queue" : "a heartbeat";
      const message = `only a TASK has ${what}; a step of type ${type} takes "timeout"`;
      list.add(`${path}/${key}`, "CLOCK_OF_TASKS", message);
    } else {
      const message = `"${key}" has no effect on a step of type ${type}`;
      list.warn(`${path}/${key}`, "NO_EFFECT", message);
    }
  }
}

function quote(value: unknown): string {
  return JSON.stringify(value) ?? "undefined";
}
