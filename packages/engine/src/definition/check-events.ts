import { endsBesideInTime, isBoundedWait } from "./ends-beside.ts";
import type { Fields, StepOutline } from "./outline.ts";
import { below, fieldsOf, itemsOf } from "./outline.ts";
import { didYouMean, nearNames } from "./near-name.ts";
import {
  hearsLifecycleEvents,
  isLifecyclePattern,
  lifecycleEvents,
  parsePattern,
  reservedPrefix,
} from "./pattern.ts";
import type { ProblemList } from "./problem.ts";
import type { Check, StepContext } from "./value-checker.ts";
import { quote } from "./value-checker.ts";
import {
  isKnownLifecyclePattern,
  knownPattern,
  readDuration,
  readLookback,
  readEventCondition,
  readEventPattern,
  readPayloadPath,
  readVariableName,
} from "./values.ts";

/** Patterns, conditions and clocks of steps and triggers that hear events. */

const nearestEvent = nearNames(lifecycleEvents);

export function checkEventWait(step: StepOutline, context: StepContext): void {
  const { fields, path, stepId } = step;
  const { entering, list, outline } = context;
  checkAwaited(fields, path, entering, list);

  const timeout = fieldsOf(fields["eventTimeout"]);
  entering.text(`${path}/eventTimeout/duration`, timeout["duration"], readDuration);
  const isBounded = isBoundedWait(step) || endsBesideInTime(step, outline.steps);
  if (!isBounded && outline.fields["timeout"] === undefined) {
    const message = `${quote(stepId ?? "the step")} waits for ever if its event never comes; give it an eventTimeout, or the workflow a timeout`;
    list.warn(path, "WAIT_WITHOUT_TIMEOUT", message);
  }

  const { lookback } = fields;
  entering.text(`${path}/lookback`, lookback, readLookback);
  const matchers = [fields, ...itemsOf(fields["events"]).map(fieldsOf)];
  const isReserved = matchers.some(({ eventPattern }) =>
    isKnownLifecyclePattern(eventPattern, entering.names),
  );
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

export function checkMatcher(fields: Fields, path: string, check: Check, list: ProblemList): void {
  const { eventPattern } = fields;
  check.text(`${path}/eventPattern`, eventPattern, readEventPattern);
  check.text(`${path}/eventCondition`, fields["eventCondition"], readEventCondition);
  checkLifecycle(eventPattern, path, check, list);
}

/** A pattern that begins as lifecycle events do, and hears none of them, would be waited for for ever. */
export function checkLifecycle(
  eventPattern: unknown,
  path: string,
  { names }: Check,
  list: ProblemList,
): void {
  if (typeof eventPattern !== "string") return;
  const pattern = knownPattern(eventPattern, names);
  if (!isLifecyclePattern(pattern) || "problem" in parsePattern(pattern)) return;
  if (hearsLifecycleEvents(pattern)) return;
  const near = didYouMean(nearestEvent(pattern));
  const message = `nothing is published under ${quote(pattern)}${near}; for an expression write "\${ … }"`;
  list.add(`${path}/eventPattern`, "RESERVED_PATTERN", message);
}
