import { WAITING_STEP_TYPES } from "@millrace/contract";
import type { Expression, Json, Template } from "@millrace/expressions";
import { anything, inspect } from "@millrace/expressions";
import { defined } from "../assert.ts";
import { defaultRetryPolicy } from "../retry.ts";
import { checkEventWait, checkMatcher, checkLifecycle } from "./check-events.ts";
import { checkStartInput } from "./check-start-input.ts";
import { checkWays, choicesOf, transitionsOf } from "./check-ways.ts";
import type { DurationValue } from "./definition.ts";
import type { Fields, Outline, StepOutline } from "./outline.ts";
import { below, fieldsOf, itemsOf, textOf } from "./outline.ts";
import { guardsOfSteps } from "./guarded-steps.ts";
import { shapesOf } from "./shapes.ts";
import type { ProblemList } from "./problem.ts";
import { isUnavoidable } from "./unavoidable.ts";
import type { Check, StepContext, Surroundings, ValuesFound } from "./value-checker.ts";
import { quote, valueChecker } from "./value-checker.ts";
import {
  isRoot,
  looksEvaluated,
  namesOfItem,
  readCondition,
  readDuration,
  readEventName,
  readInput,
  readInterval,
  readItems,
  readQueue,
  readReason,
  readStartCondition,
  readStartPattern,
  readStartId,
  readStartValue,
  readTaskId,
  readUntil,
  readValue,
  readVariableName,
  readWorkflowId,
  readWorkingDuration,
} from "./values.ts";

/** Whatever concerns single values: expressions, durations, times, patterns, names. */
export function checkValues(outline: Outline, list: ProblemList): ValuesFound {
  const { fields, steps, compensationSteps } = outline;
  const roots = shapesOf(outline);
  const { checker, found } = valueChecker(outline, list);
  const check = checker(undefined, { names: [], roots });

  checkInitialVariables(fieldsOf(fields["variables"]), check, list);
  checkClock(check.text("/timeout", fields["timeout"], readDuration), "/timeout", list);
  const ending = checker({ reader: undefined, moment: "END" }, { names: [], roots });
  ending.json("/output", fields["output"], readValue);
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
    checkLifecycle(own["eventPattern"], path, check, list);
    check.text(`${path}/eventCondition`, own["eventCondition"], readStartCondition);
    check.json(`${path}/input`, own["input"], readStartValue);
    checkStartInput(own["input"] as Json | undefined, `${path}/input`, roots, list);
    check.text(`${path}/correlationId`, own["correlationId"], readStartId);
    warnOfBarePath(`${path}/correlationId`, own["correlationId"], list);
  }
  const inside: Surroundings[] = [];
  const guards = guardsOfSteps(outline);
  const closed = new Set<string>();
  const close = (paths: readonly string[]): void => paths.forEach((each) => closed.add(each));
  for (const [index, step] of steps.entries()) {
    // What is around a step comes before it.
    const around = inside[step.parent ?? -1] ?? { names: [], roots };
    const { reached, entered } = defined(guards[index], step.path);
    const before = { ...around, guards: reached };
    const after = { ...around, guards: entered };
    const asking = checker({ reader: index, moment: "ENTRY" }, before);
    const entering = checker({ reader: index, moment: "ENTRY" }, after);
    const failing = checker({ reader: index, moment: "FAILURE" }, after);
    // One that its condition skips is left as well.
    const leaving = checker({ reader: index, moment: "EXIT" }, before);
    checkStep(step, { asking, entering, failing, leaving, list, longest, outline, close });
    inside[index] = step.type === "MAP" ? insideOf(step, after) : around;
  }
  checkRecursion(outline, closed, list);
  const indexOf = new Map(steps.map(({ stepId }, index) => [stepId, index]));
  for (const { fields: own, path, compensationFor } of compensationSteps) {
    // Inside it the items are those of the execution that it undoes.
    const undone = compensationFor === undefined ? undefined : indexOf.get(compensationFor);
    const parent = undone === undefined ? undefined : steps[undone]?.parent;
    const around = inside[parent ?? -1] ?? { names: [], roots };
    const surroundings = { ...around, guards: guards[undone ?? -1]?.entered };
    const asking = checker({ reader: undone, moment: "UNDO" }, surroundings);
    const condition = asking.text(`${path}/condition`, own["condition"], readCondition);
    const told = condition?.reads.steps === "ALL" ? [] : condition?.reads.steps;
    const undoing = checker(
      { reader: undone, moment: "UNDO", ...(told && { told }) },
      surroundings,
    );
    checkTaskCall(own, path, undoing);
    checkClocks(own, path, undoing, list);
    const retry = fieldsOf(own["retry"]);
    checkRetry(retry, `${path}/retry`, longest, undoing, list);
    if (retry["onExhausted"] === "PAUSE") {
      const message = `a compensation step that fails is recorded, and the rest still run: "onExhausted" has no effect here`;
      list.warn(`${path}/retry/onExhausted`, "NO_EFFECT", message);
    }
  }
  return { ...found, closed };
}

/** Inside of a MAP there are its items. */
function insideOf({ fields }: StepOutline, { names, roots, guards }: Surroundings): Surroundings {
  const itemName = textOf(fields["itemName"]);
  const { parsed } = readItems(fields["items"] as Json, names);
  const item = (parsed && inspect(parsed, roots, guards).shape.element?.()) ?? anything;
  return {
    names: [...names, ...namesOfItem(itemName)],
    roots: { ...roots, item, ...(itemName !== undefined && { [itemName]: item }) },
  };
}

function checkStep(step: StepOutline, context: StepContext): void {
  const { fields, path, type } = step;
  const { leaving, failing, asking, entering, list, longest, close } = context;
  asking.text(`${path}/condition`, fields["condition"], readCondition);
  close(checkWays(transitionsOf(step), conditions(leaving), list));
  checkErrorHandlers(fields["onError"], `${path}/onError`, list);
  const isTask = type === undefined || type === "TASK";
  if (!isTask) checkIdleFields(step, list);
  // Where they have no effect, too: a bad duration is one wherever it stands.
  checkClocks(fields, path, entering, isTask ? list : undefined);
  checkRetry(fieldsOf(fields["retry"]), `${path}/retry`, longest, failing, list);

  switch (type) {
    case "TASK":
      checkTaskCall(fields, path, entering);
      break;
    case "EVENT_WAIT":
      checkEventWait(step, context);
      break;
    case "DELAY":
      entering.text(
        `${path}/duration`,
        fields["duration"],
        fields["calendarId"] === undefined ? readDuration : readWorkingDuration,
      );
      entering.text(`${path}/until`, fields["until"], readUntil);
      break;
    case "CHOICE":
      close(checkWays(choicesOf(step), conditions(entering), list));
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
      checkEndFields(step, list);
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

/** What an END gives beside its outcome, which each has a field of its own for. */
const endFields = { COMPLETED: "output", FAILED: "error", CANCELLED: "reason" } as const;

function checkEndFields({ fields, path }: StepOutline, list: ProblemList): void {
  const { outcome } = fields;
  if (outcome !== "COMPLETED" && outcome !== "FAILED" && outcome !== "CANCELLED") return;
  for (const key of Object.values(endFields)) {
    if (fields[key] === undefined || key === endFields[outcome]) continue;
    const message = `"${key}" has no effect on an END that is ${outcome}, which takes "${endFields[outcome]}"`;
    list.warn(`${path}/${key}`, "NO_EFFECT", message);
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

function checkSubWorkflow({ fields, path }: StepOutline, { entering }: StepContext): void {
  entering.text(`${path}/workflowId`, fields["workflowId"], readWorkflowId);
  entering.json(`${path}/input`, fields["input"], readValue);
}

/** Steps that start the workflow itself and wait for it. */
function checkRecursion(outline: Outline, closed: ReadonlySet<string>, list: ProblemList): void {
  for (const step of outline.steps) {
    const { workflowId, version, detached } = step.fields;
    const isItself = workflowId !== undefined && workflowId === outline.fields["id"];
    if (step.type !== "SUB_WORKFLOW" || !isItself || version !== undefined) continue;
    if (detached === true || !isUnavoidable(outline, step, closed)) continue;
    const message = `the workflow starts itself and waits for it, again and again: give the step a condition, lead a way past it, or make it detached`;
    list.add(`${step.path}/workflowId`, "RECURSIVE_WORKFLOW", message);
  }
}

/** What a TASK and a compensation step share. */
function checkTaskCall(fields: Fields, path: string, check: Check): void {
  check.text(`${path}/taskId`, fields["taskId"], readTaskId);
  check.text(`${path}/queue`, fields["queue"], readQueue);
  check.json(`${path}/input`, fields["input"], readInput);
}

/** @param ofTask Where to warn of those that leave a task no time; what waits may be over at once. */
function checkClocks(fields: Fields, path: string, check: Check, ofTask?: ProblemList): void {
  for (const name of [...clocks, ...taskClocks]) {
    const at = `${path}/${name}`;
    const duration = check.text(at, fields[name], readDuration);
    if (ofTask !== undefined) checkClock(duration, at, ofTask);
  }
}

function checkClock(value: DurationValue | undefined, at: string, list: ProblemList): void {
  if (value === undefined || "template" in value) return;
  const { months, ms } = value.duration;
  if (months + ms > 0) return;
  const message = "it is over before anything is done; give it time, or leave it out";
  list.warn(at, "NO_TIME", message);
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
    if (!textsIn(value).some(looksEvaluated)) continue;
    const message = `initial variables are taken as they are, and this one holds an expression; set it in a SET step`;
    list.warn(at, "NOT_EVALUATED", message);
  }
}

/** As elsewhere in a start trigger it would be read, so that it may be meant. */
function warnOfBarePath(at: string, id: unknown, list: ProblemList): void {
  if (typeof id !== "string" || id.includes("${") || !looksEvaluated(id)) return;
  const message = `${quote(id)} is the id as it stands; write "\${ ${id} }" for what the path leads to`;
  list.warn(at, "NOT_EVALUATED", message);
}

function textsIn(value: unknown): readonly string[] {
  if (typeof value === "string") return [value];
  if (typeof value !== "object" || value === null) return [];
  return [...Object.keys(value), ...Object.values(value).flatMap(textsIn)];
}

/** Clocks of every step that takes time, and those of one that a worker runs. */
const clocks = ["timeout", "totalTimeout"];
const taskClocks = ["scheduleTimeout", "heartbeatTimeout"];

const takesTime: ReadonlySet<string> = new Set(WAITING_STEP_TYPES);

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
