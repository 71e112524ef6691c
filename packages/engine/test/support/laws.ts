import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import type { Definition } from "../../src/definition/definition.ts";
import { hasOpenDeadLetter } from "../../src/decide/dead-letter.ts";
import { triggerPath } from "../../src/decide/listen.ts";
import { waitPathsOf } from "../../src/decide/open-waits.ts";
import { isInItem } from "../../src/definition/paths.ts";
import type { MemoryInstance } from "../../src/fold.ts";
import type { Command, Decision, NewWait } from "../../src/state/decision.ts";
import type { LiveExecution } from "../../src/state/snapshot.ts";
import { executionKey, isSettled } from "../../src/state/snapshot.ts";
import { instanceChanges, isStepSettled, isTerminal, stepChanges } from "../../src/state/status.ts";
import type { InstanceStatus } from "../../src/state/status.ts";

/**
 * What holds of every decision and of whatever state it leads to, whichever signals came in whichever
 * order. The simulation checks all of it after each decision, in every test.
 */

export interface Stored {
  readonly instance: MemoryInstance;
  readonly timers: ReadonlyMap<string, Extract<Command, { kind: "setTimer" }>>;
  readonly waits: ReadonlyMap<string, NewWait>;
  /** Ids of children that were started and neither settled nor cancelled. */
  readonly children: ReadonlySet<string>;
  /** Executions that nobody takes, timers that nobody fires, and waits of a paused instance. */
  readonly held: ReadonlySet<string>;
}

export function checkLaws(
  definition: Definition,
  before: Stored,
  decision: Decision,
  after: Stored,
): void {
  if (decision.snapshot === before.instance.snapshot) {
    nothingIsWritten(decision);
    return;
  }
  versionRisesByOne(before, decision);
  rowsAreNamedOnce(decision);
  statusesFollowTheTables(before, decision);
  onlyCompensationStartsAfterTheEnd(definition, decision);
  settledIsFinal(before, after, decision);
  timersAreThoseOfTheSnapshot(after);
  waitsAreThoseOfTheSnapshot(definition, after);
  childrenAreThoseOfTheSnapshot(before, decision, after);
  rowsAgreeWithTheSnapshot(after);
  everyBranchHasOneToken(definition, after);
  somethingCanWakeIt(after);
  aPauseHoldsEverything(before, decision, after);
  itRunsWithASlot(definition, before, decision, after);
  compensationIsTheReverseOfCompletion(definition, after);
  progressIsOfWhatIsDoneAndLeft(definition, after);
}

function nothingIsWritten({ inserts, updates, commands, guards, entries }: Decision): void {
  deepStrictEqual(
    { inserts, updates, commands, guards, entries },
    { inserts: [], updates: [], commands: [], guards: [], entries: [] },
  );
}

function versionRisesByOne({ instance }: Stored, { snapshot }: Decision): void {
  strictEqual(snapshot.version, instance.snapshot.version + 1);
}

function rowsAreNamedOnce({ inserts, updates, commands }: Decision): void {
  const rows = [...inserts, ...updates].map(({ path, iteration }) => executionKey(path, iteration));
  strictEqual(new Set(rows).size, rows.length, `a row is named twice: ${rows.join(" ")}`);
  const named = commands.map(nameOf);
  strictEqual(new Set(named).size, named.length, `a command is given twice: ${named.join(" ")}`);
}

/** Opening and closing a wait, or setting and clearing a timer, touch one row. */
function nameOf(command: Command): string {
  switch (command.kind) {
    case "openWait":
      return `wait ${executionKey(command.wait.path, command.wait.iteration)}`;
    case "closeWait":
    case "rekeyWait":
      return `wait ${executionKey(command.path, command.iteration)}`;
    case "setTimer":
    case "clearTimer":
      return timerName(command);
    case "dispatch":
    case "abort":
      return `${command.kind} ${executionKey(command.path, command.iteration)}`;
    case "startChild":
    case "cancelChild":
      return `${command.kind} ${command.childId}`;
    case "openDeadLetter":
    case "resolveDeadLetter":
      return "dead letter";
    case "emitEvent":
      return `event ${command.event.id}`;
    case "reportEnd":
    case "hold":
    case "letGo":
    case "placeSlot":
    case "settle":
      return command.kind;
  }
}

export function timerName(timer: { timer: string; path: string; iteration: number }): string {
  return `timer ${timer.timer} ${executionKey(timer.path, timer.iteration)}`;
}

function statusesFollowTheTables({ instance }: Stored, { snapshot, entries, updates }: Decision) {
  let status = instance.snapshot.status;
  for (const { type, data } of entries) {
    if (type !== "workflow.status") continue;
    const { from, to } = data as { from: InstanceStatus; to: InstanceStatus };
    strictEqual(from, status);
    ok(instanceChanges[from].includes(to), `${from} to ${to}`);
    status = to;
  }
  strictEqual(snapshot.status, status, "the history tells of every change of the status");
  for (const update of updates) {
    const row = instance.executions.get(executionKey(update.path, update.iteration));
    ok(row !== undefined, `${update.path}#${update.iteration} is updated and not stored`);
    const allowed = row.status === update.status || stepChanges[row.status].includes(update.status);
    // Only what has completed changes once more, and keeps its number: by whether it could be left.
    const isLeft = row.completion !== null && row.completion === update.completion;
    ok(
      allowed && (!isStepSettled(row.status) || isLeft),
      `${row.stepId}: ${row.status} to ${update.status}`,
    );
  }
}

function onlyCompensationStartsAfterTheEnd(
  { compensationSteps }: Definition,
  { snapshot, commands }: Decision,
): void {
  if (!isTerminal(snapshot.status)) return;
  for (const command of commands) {
    if (command.kind === "dispatch") ok(compensationSteps.has(command.path), command.path);
    ok(command.kind !== "openWait" && command.kind !== "rekeyWait", "a wait after the end");
  }
}

function settledIsFinal(before: Stored, { instance, timers, waits }: Stored, decision: Decision) {
  const wasSettled = isSettled(before.instance.snapshot);
  // Only an operator's retry or cancel leads out of it, or what becomes of a dead letter.
  const { status: was } = before.instance.snapshot;
  ok(!wasSettled || was === "FAILED", "a settled instance changed");
  const { snapshot } = instance;
  const settles = decision.commands.some(({ kind }) => kind === "settle");
  // A dead letter is discarded where there is nothing to undo: it stays as it settled before.
  const hasMoved = decision.entries.some(({ type }) => type === "workflow.status");
  const stays = wasSettled && !hasMoved && snapshot.compensation === null;
  strictEqual(settles, isSettled(snapshot) && !stays);
  strictEqual(snapshot.completedAt !== null, isSettled(snapshot));
  if (!settles) return;
  deepStrictEqual(
    { live: snapshot.live, timers: [...timers.keys()], waits: [...waits.keys()] },
    { live: {}, timers: [], waits: [] },
  );
  for (const { stepId, status } of instance.executions.values()) {
    ok(isStepSettled(status), `${stepId} is ${status} after the end`);
  }
}

function timersAreThoseOfTheSnapshot({ instance, timers }: Stored): void {
  const { snapshot } = instance;
  const listed = [
    ...snapshot.timers.map((timer) => timerName({ timer, path: "", iteration: 0 })),
    ...liveOf(instance).flatMap(({ path, iteration, timers: own }) =>
      own.map((timer) => timerName({ timer, path, iteration })),
    ),
  ];
  deepStrictEqual([...timers.keys()].toSorted(), listed.toSorted());
}

function waitsAreThoseOfTheSnapshot(definition: Definition, { instance, waits }: Stored): void {
  const { snapshot } = instance;
  const triggers = isTerminal(snapshot.status) ? [] : definition.cancellationTriggers;
  const listed = [
    ...triggers.map((_trigger, index) => executionKey(triggerPath, index + 1)),
    ...liveOf(instance)
      .filter(({ stepId }) => definition.steps.get(stepId)?.type === "EVENT_WAIT")
      .filter(({ phase }) => phase === "WAITING")
      .flatMap((live) => waitPathsOf(live).map((path) => executionKey(path, live.iteration))),
  ];
  deepStrictEqual([...waits.keys()].toSorted(), listed.toSorted());
  for (const { waitKey, path, iteration } of liveOf(instance)) {
    if (waitKey !== undefined) {
      deepStrictEqual(waits.get(executionKey(path, iteration))?.key, waitKey);
    }
  }
  for (const [index, key] of Object.entries(snapshot.triggerKeys)) {
    deepStrictEqual(waits.get(executionKey(triggerPath, Number(index)))?.key, key);
  }
}

/** No child is forgotten: it is waited for, has settled, or is told to stop. */
function childrenAreThoseOfTheSnapshot(
  before: Stored,
  { commands }: Decision,
  { instance, children }: Stored,
): void {
  const begins = commands.some(({ kind }) => kind === "startChild");
  const { status } = before.instance.snapshot;
  // A retry begins anew what has failed.
  ok(!begins || !isTerminal(status) || status === "FAILED", "a child after the end");
  const listed = liveOf(instance).flatMap(({ phase, child }) =>
    phase === "AWAITED" || child === undefined ? [] : [child],
  );
  deepStrictEqual([...children].toSorted(), listed.toSorted());
}

const statusesIn: Readonly<Record<LiveExecution["phase"], readonly (string | undefined)[]>> = {
  ACTIVE: ["PENDING", "RUNNING", "RETRYING"],
  WAITING: ["WAITING", "RETRYING"],
  AWAITED: ["RUNNING", "WAITING"],
  READY: [undefined],
  OPEN: ["RUNNING"],
  HELD: ["COMPLETED", "FAILED"],
};

function rowsAgreeWithTheSnapshot({ instance }: Stored): void {
  const { executions, snapshot } = instance;
  for (const [key, { stepId, phase, attempt, path, iteration }] of Object.entries(snapshot.live)) {
    strictEqual(key, executionKey(path, iteration));
    const row = executions.get(key);
    ok(statusesIn[phase].includes(row?.status), `${stepId} is ${phase}, its row ${row?.status}`);
    if (row !== undefined) strictEqual(row.attempt, attempt);
  }
  for (const [key, { status, completion, error }] of executions) {
    ok(isStepSettled(status) || Object.hasOwn(snapshot.live, key), `${key} is ${status}, not live`);
    ok(
      completion === null || status === "COMPLETED" || status === "FAILED",
      `${key} is ${status} with a completion`,
    );
    if (isStepSettled(status)) strictEqual(error !== null, status === "FAILED", `${key} ${status}`);
  }
  const numbers = [...executions.values()].flatMap(({ completion }) => completion ?? []);
  deepStrictEqual(
    numbers.toSorted((a, b) => a - b),
    Array.from({ length: snapshot.completions }, (_, index) => index + 1),
  );
}

/** PROMISES P8: what has settled and what is live of a PARALLEL or MAP add up to all of it. */
function everyBranchHasOneToken({ steps }: Definition, { instance }: Stored): void {
  const { live } = instance.snapshot;
  const tokens = new Map<string, (string | number)[]>();
  for (const { within, phase, path } of liveOf(instance)) {
    if (within === undefined || phase === "AWAITED") continue;
    const key = executionKey(within.path, within.iteration);
    strictEqual(live[key]?.phase, "OPEN", `${path} is live, and ${key} is not open`);
    tokens.set(key, [...(tokens.get(key) ?? []), within.at]);
  }
  for (const [key, { phase, stepId, branches, items }] of Object.entries(live)) {
    if (phase !== "OPEN") continue;
    const own = tokens.get(key) ?? [];
    const current = steps.get(stepId);
    strictEqual(new Set(own).size, own.length, `${key} has a branch that is live twice`);
    ok(own.length > 0, `${key} is open, and nothing of it is live`);
    if (current?.type === "PARALLEL") {
      const completed = Object.keys(branches?.completed ?? {});
      ok(!own.some((name) => completed.includes(String(name))), `${key}: a settled branch is live`);
      const settled = completed.length + (branches?.failed ?? 0);
      strictEqual(own.length + settled, current.branches.length);
    } else if (current?.type === "MAP" && items !== undefined) {
      strictEqual(own.length, items.next - items.completed - items.failed);
      ok(own.length <= current.maxConcurrency && items.failed <= current.tolerate);
    } else {
      ok(false, `${key} is open, and no PARALLEL or MAP`);
    }
  }
}

/** PROMISES P12. */
function somethingCanWakeIt({ instance }: Stored): void {
  const { snapshot } = instance;
  // An operator can.
  if (isSettled(snapshot) || hasOpenDeadLetter(snapshot)) return;
  const live = liveOf(instance);
  const isQueued = snapshot.slot === "WANTED" || snapshot.status === "PAUSED";
  const begins = snapshot.timers.includes("start") || (snapshot.status === "CREATED" && isQueued);
  ok(live.length > 0 || begins || snapshot.status === "PAUSED", "stuck: nothing is live");
  for (const { phase, timers, stepId } of live) {
    if (phase === "AWAITED") ok(timers.length > 0, `${stepId} never ends`);
    if (phase === "READY") ok(timers.length > 0 || isQueued, `${stepId} never begins`);
  }
  const { compensation } = snapshot;
  if (compensation?.frozen === true) {
    strictEqual(live.length, 1);
    strictEqual(live[0]?.compensates, compensation.targets[compensation.next]);
  }
}

/** CONTRACT 2: no step of a paused instance starts and none of its timers fires, and later all do. */
function aPauseHoldsEverything(before: Stored, decision: Decision, after: Stored): void {
  const { snapshot } = after.instance;
  strictEqual(snapshot.pause !== null, snapshot.status === "PAUSED");
  const runOn = new Set(["grace", "resume"]);
  const timers = [...after.timers].flatMap(([name, { timer }]) => (runOn.has(timer) ? [] : name));
  const steps = Object.entries(snapshot.live).flatMap(([key, { phase }]) =>
    phase === "ACTIVE" ? key : [],
  );
  const waits = [...after.waits].flatMap(([key, { purpose }]) =>
    purpose === "STEP" ? `wait ${key}` : [],
  );
  const isQueued = snapshot.slot === "WANTED";
  const isPaused = snapshot.status === "PAUSED";
  const held = isPaused ? [...timers, ...steps, ...waits] : isQueued ? steps : [];
  deepStrictEqual([...after.held].toSorted(), held.toSorted());
  for (const { phase, path } of liveOf(after.instance)) {
    ok(phase !== "HELD" || snapshot.status === "PAUSED", `${path} is held, and nothing is paused`);
  }
  if (snapshot.status !== "PAUSED") return;
  const wasPaused = before.instance.snapshot.status === "PAUSED";
  if (wasPaused)
    strictEqual(decision.inserts.length, 0, "a step begins while the instance is paused");
  ok(!decision.commands.some(({ kind }) => kind === "dispatch"), "a job is asked for");
}

/** CONTRACT 6: a slot is held while RUNNING, and asked for whenever it could be. */
function itRunsWithASlot(
  { concurrency }: Definition,
  before: Stored,
  { commands }: Decision,
  { instance: { snapshot, executions } }: Stored,
): void {
  const { limits, slot, slotRequests, slotWantedAt, status, timers, live } = snapshot;
  if (concurrency === undefined && limits === null) {
    // It may have had limits, and asks for nothing any more.
    const { slotRequests: asked } = before.instance.snapshot;
    deepStrictEqual([slot, slotRequests, slotWantedAt], [null, asked, null]);
    return;
  }
  // A pause keeps the place.
  if (status !== "PAUSED") strictEqual(slotWantedAt !== null, slot === "WANTED");
  strictEqual(slot === "HELD", status === "RUNNING", `${status} with slot ${slot}`);
  const phases = Object.values(live).map(({ phase }) => phase);
  const canRun =
    status === "CREATED"
      ? !timers.includes("start")
      : status === "WAITING_FOR_EVENT" && phases.some((each) => runs.has(each));
  strictEqual(slot === "WANTED", canRun, `${status} with slot ${slot}, ${phases.join(" ")}`);
  if (slot === "HELD") return;
  for (const command of commands) {
    if (command.kind !== "dispatch") continue;
    const row = executions.get(executionKey(command.path, command.iteration));
    ok(isTerminal(status), `${row?.stepId} is given to workers without a slot`);
  }
}

const runs: ReadonlySet<LiveExecution["phase"]> = new Set(["ACTIVE", "READY", "HELD"]);

/** PROMISES P9: latest completion first, each execution at most once, none left out unseen. */
function compensationIsTheReverseOfCompletion(definition: Definition, { instance }: Stored): void {
  const { compensation } = instance.snapshot;
  if (compensation?.frozen !== true) return;
  const { plan, targets, completed, failed, next } = compensation;
  const numbers = targets.map((key) => instance.executions.get(key)?.completion ?? 0);
  ok(
    numbers.every((number, index) => number > 0 && number < (numbers[index - 1] ?? Infinity)),
    `undone in the order of completion ${numbers.join(", ")}`,
  );
  const undoable = [...instance.executions.values()].filter(
    ({ stepId, completion }) => completion !== null && definition.compensationFor.has(stepId),
  );
  ok(plan.length <= undoable.length);
  ok(next <= completed.length + failed.length, "a compensation step is neither done nor failed");
}

function liveOf({ snapshot }: MemoryInstance): readonly LiveExecution[] {
  return Object.values(snapshot.live);
}

/** Steps that have completed, each once, and items that have settled; while it runs, what is left of MAPs. */
function progressIsOfWhatIsDoneAndLeft({ steps }: Definition, { instance }: Stored): void {
  const { completedSteps, begunItems, status } = instance.snapshot;
  const completed = [...instance.executions.values()].filter(
    ({ stepId, path, completion }) => steps.has(stepId) && completion !== null && !isInItem(path),
  );
  const settledItems = completedSteps - new Set(completed.map(({ path }) => path)).size;
  ok(settledItems >= 0 && settledItems <= begunItems, `${settledItems} of ${begunItems} items`);
  if (isTerminal(status)) return;
  const left = liveOf(instance).filter(({ phase, path }) => phase === "OPEN" && !isInItem(path));
  const unsettled = left.map(({ items }) =>
    items === undefined ? 0 : items.count - items.completed - items.failed,
  );
  strictEqual(
    begunItems - settledItems,
    unsettled.reduce((sum, each) => sum + each, 0),
    "items",
  );
}
