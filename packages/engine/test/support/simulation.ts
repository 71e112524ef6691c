import { deepStrictEqual } from "node:assert/strict";
import type { Json } from "@millrace/expressions";
import { decide, isNeeds } from "../../src/decide/decide.ts";
import { createSnapshot } from "../../src/decide/start.ts";
import type { NewInstance } from "../../src/decide/start.ts";
import { triggerPath } from "../../src/decide/listen.ts";
import { eventSatisfies } from "../../src/decide/wait.ts";
import type { Definition } from "../../src/definition/definition.ts";
import { durationToMs, isRefusal, parseDuration } from "../../src/definition/duration.ts";
import { patternMatches } from "../../src/definition/pattern.ts";
import { advanceInMemory, claimInMemory, memoryInstance, readsOf } from "../../src/fold.ts";
import type { HistoryStep, MemoryInstance } from "../../src/fold.ts";
import { resolveRetryPolicy } from "../../src/retry.ts";
import type { RetryPolicy } from "../../src/retry.ts";
import type { Command, Decision, NewWait } from "../../src/state/decision.ts";
import { takeApart } from "../../src/definition/paths.ts";
import { anywhereKey, latestOf, mergeReads, noReads } from "../../src/state/reads.ts";
import type { ExecutionRead, Needs, ReadRequest, Reads } from "../../src/state/reads.ts";
import { defined } from "../../src/assert.ts";
import type { ChildEnd, EventFact, Signal, TaskFailure } from "../../src/state/signal.ts";
import type { Snapshot } from "../../src/state/snapshot.ts";
import { executionKey } from "../../src/state/snapshot.ts";
import { signalsToKeep } from "../../src/state/stored-signal.ts";
import { knownCalendars } from "./calendars.ts";
import { deepFreeze } from "./deep-freeze.ts";
import { checkLaws, timerName } from "./laws.ts";
import type { Stored } from "./laws.ts";

/**
 * One instance and the little that it needs around it: rows, timers, waits and a clock, in memory.
 * Every decision is taken twice, once with every row at hand and once with those that it asks for, on
 * frozen values; both must agree, and whatever comes of it must keep the laws.
 */
export interface Simulation {
  readonly definition: Definition;
  readonly instance: MemoryInstance;
  readonly snapshot: Snapshot;
  readonly now: Date;
  readonly timers: ReadonlyMap<string, SetTimer>;
  readonly waits: ReadonlyMap<string, NewWait>;
  /** What has been committed so far, as the store would keep it. */
  readonly history: readonly HistoryStep[];

  send(...signals: readonly Signal[]): Decision;
  start(): Decision;
  /** A worker takes the step's row. */
  claim(stepId: string): void;
  /** The worker that has the step dies, and it is free again. */
  lose(stepId: string): void;
  /** The step, taken by a worker if it is not yet, succeeds. */
  succeed(stepId: string, output?: Json): Decision;
  fail(stepId: string, failure?: string | Partial<TaskFailure>): Decision;
  timeOut(stepId: string, clock?: "timeout" | "heartbeat"): Decision;
  /** Publishes an event; undefined where nothing of the instance is satisfied by it. */
  publish(pattern: string, payload?: Json): Decision | undefined;
  /** The other half of publishing: open waits look for events that came before them, oldest first. */
  lookBack(): Decision | undefined;
  /** The child of the step that waits for it settles; by default it completes. */
  endChild(stepId: string, end?: Partial<ChildEnd>): Decision;
  cancel(reason?: string | null, shouldCompensate?: boolean): Decision;
  /** Lets time pass, and fires what comes due in between, in order. */
  elapse(duration: string): readonly Firing[];
  /** The latest execution of a step. */
  row(stepId: string): ExecutionRead | undefined;
  /** `{ stepId: status }` of all that were reached, in order, compensation included. */
  statuses(): Readonly<Record<string, string>>;
}

export interface Firing {
  readonly timer: SetTimer;
  readonly decision: Decision;
}

export type SetTimer = Extract<Command, { kind: "setTimer" }>;

export const noon = new Date("2026-03-01T12:00:00.000Z");

export function simulate(
  definition: Definition,
  input: Json = {},
  given: Partial<NewInstance> = {},
): Simulation {
  let now = noon;
  let stored = created(definition, { input, ...given });
  const history: HistoryStep[] = [];
  const events: EventFact[] = [];

  function send(...signals: readonly Signal[]): Decision {
    const committed = commit(definition, stored, signals, now);
    stored = committed.stored;
    if (committed.logged !== undefined) history.push(committed.logged);
    return committed.decision;
  }

  function row(stepId: string): ExecutionRead | undefined {
    return [...stored.instance.executions.values()].findLast((each) => each.stepId === stepId);
  }

  function running(stepId: string): ExecutionRead {
    const taken = row(stepId);
    if (taken === undefined) throw new Error(`step ${stepId} was never reached`);
    stored = claimed(stored, executionKey(taken.path, taken.iteration));
    return taken;
  }

  function satisfied(event: EventFact): readonly NewWait[] {
    const { snapshot } = stored.instance;
    const reads = readsOf(stored.instance);
    return [...stored.waits.values()].filter(
      (wait) =>
        patternMatches(wait.pattern, event.pattern) &&
        eventSatisfies(definition, snapshot, wait, event, reads, now) === true,
    );
  }

  return {
    definition,
    get instance() {
      return stored.instance;
    },
    get snapshot() {
      return stored.instance.snapshot;
    },
    get now() {
      return now;
    },
    get timers() {
      return stored.timers;
    },
    get waits() {
      return stored.waits;
    },
    history,
    send,
    row,
    start: () => send({ kind: "started" }),
    claim(stepId) {
      running(stepId);
    },
    lose(stepId) {
      const { path, iteration } = running(stepId);
      stored = lost(stored, executionKey(path, iteration));
    },
    succeed(stepId, output = null) {
      const { path, iteration, attempt } = running(stepId);
      return send({ kind: "stepSucceeded", path, iteration, attempt, output });
    },
    fail(stepId, failure = {}) {
      const { path, iteration, attempt } = running(stepId);
      const fields = typeof failure === "string" ? { type: failure } : failure;
      return send({
        kind: "stepFailed",
        path,
        iteration,
        attempt,
        failure: { type: "Error", message: "it broke", details: null, retryable: true, ...fields },
        retry: retryOf(definition, stepId),
      });
    },
    timeOut(stepId, clock = "timeout") {
      const { path, iteration, attempt } = running(stepId);
      const retry = retryOf(definition, stepId);
      return send({ kind: "attemptTimedOut", path, iteration, attempt, clock, retry });
    },
    publish(pattern, payload = {}) {
      const at = now.toISOString();
      const id = `event-${events.length + 1}`;
      const event = { id, pattern, payload, occurredAt: at, receivedAt: at };
      events.push(event);
      const matched = satisfied(event);
      // An event that cancels the instance satisfies nothing else of it (CONTRACT 3).
      const trigger = matched.find(({ purpose }) => purpose === "CANCEL");
      if (trigger !== undefined) {
        return send({ kind: "cancelTriggered", trigger: trigger.iteration, event });
      }
      if (matched.length === 0) return undefined;
      return send(
        ...matched.map(({ path, iteration }): Signal => ({
          kind: "eventMatched",
          path,
          iteration,
          event,
        })),
      );
    },
    lookBack() {
      for (const event of events) {
        const wait = satisfied(event).find(
          ({ lookbackFrom }) => lookbackFrom !== null && lookbackFrom <= new Date(event.receivedAt),
        );
        if (wait === undefined) continue;
        const { path, iteration } = wait;
        return send({ kind: "eventMatched", path, iteration, event });
      }
      return undefined;
    },
    endChild(stepId, end = {}) {
      const { path, iteration, attempt } = defined(row(stepId), stepId);
      const { child } = defined(stored.instance.snapshot.live[executionKey(path, iteration)], path);
      const childId = defined(child, `child of ${stepId}`);
      const outcome = { status: "COMPLETED", output: null, error: null, reason: null } as const;
      return send({ kind: "childEnded", path, iteration, attempt, childId, ...outcome, ...end });
    },
    cancel: (reason = null, shouldCompensate = true) =>
      send({ kind: "cancelRequested", reason, actor: "user:ada", shouldCompensate }),
    elapse(duration) {
      const until = new Date(now.getTime() + msOf(duration));
      const firings: Firing[] = [];
      for (;;) {
        const next = earliest(stored);
        if (next === undefined || next.dueAt > until) break;
        if (next.dueAt > now) now = next.dueAt;
        firings.push({ timer: next, decision: send(fired(next)) });
      }
      now = until;
      return firings;
    },
    statuses: () =>
      Object.fromEntries(
        [...stored.instance.executions.values()].map(({ stepId, status }) => [stepId, status]),
      ),
  };
}

/** An instance that nobody has stored yet. */
export function created(definition: Definition, given: Partial<NewInstance> = {}): Stored {
  const snapshot = createSnapshot(definition, {
    id: "0195a3b0-0000-7000-8000-000000000001",
    tenantId: "default",
    input: {},
    correlationId: null,
    userId: null,
    priority: null,
    startEventId: null,
    createdAt: noon,
    ...given,
  });
  return {
    instance: memoryInstance(snapshot, knownCalendars),
    timers: new Map(),
    waits: new Map(),
    children: new Set(),
    held: new Set(),
  };
}

export interface Committed {
  readonly stored: Stored;
  readonly decision: Decision;
  /** What the history keeps of it; undefined where nothing was written. */
  readonly logged: HistoryStep | undefined;
}

/** Decides and commits, under all the laws. */
export function commit(
  definition: Definition,
  before: Stored,
  signals: readonly Signal[],
  now: Date,
): Committed {
  deepFreeze(before);
  deepFreeze(signals);
  const { instance, decision } = advanceInMemory(definition, before.instance, signals, now);
  deepStrictEqual(decideAsking(definition, before.instance, signals, now), decision);
  if (decision.snapshot === before.instance.snapshot) {
    checkLaws(definition, before, decision, before);
    return { stored: before, decision, logged: undefined };
  }
  const stored: Stored = {
    instance,
    timers: timersAfter(before.timers, decision),
    waits: waitsAfter(before.waits, decision),
    children: childrenAfter(before.children, decision, signals),
    held: heldAfter(before.held, decision),
  };
  checkLaws(definition, before, decision, stored);
  return { stored, decision, logged: { at: now, signals: signalsToKeep(decision, signals) } };
}

/** A worker takes a row. */
export function claimed(stored: Stored, key: string): Stored {
  if (stored.held.has(key)) return stored;
  return { ...stored, instance: claimInMemory(stored.instance, key) };
}

/** A worker that has a row dies: the row is free for others, at the next fence. */
export function lost(stored: Stored, key: string): Stored {
  const { instance } = stored;
  const row = instance.executions.get(key);
  if (row?.status !== "RUNNING") return stored;
  const free = { ...row, status: "PENDING", fence: row.fence + 1 } as const;
  const executions = new Map(instance.executions).set(key, free);
  return { ...stored, instance: { ...instance, executions } };
}

export function fired({ timer, path, iteration, attempt }: SetTimer): Signal {
  return { kind: "timerFired", timer, path, iteration, attempt };
}

/** Of those that nobody holds. */
function earliest({ timers, held }: Stored): SetTimer | undefined {
  return [...timers]
    .flatMap(([name, timer]) => (held.has(name) ? [] : timer))
    .toSorted((a, b) => a.dueAt.getTime() - b.dueAt.getTime())[0];
}

/**
 * Decides as the runtime does: with nothing at hand at first, then with the rows that it asks for, as often
 * as it asks for others than before.
 */
function decideAsking(
  definition: Definition,
  instance: MemoryInstance,
  signals: readonly Signal[],
  now: Date,
): Decision {
  const asked = new Set<string>();
  for (let reads = noReads; ;) {
    const answer = decide(definition, instance.snapshot, signals, reads, now);
    if (!isNeeds(answer)) return answer;
    const before = asked.size;
    for (const request of answer.needs) asked.add(JSON.stringify(request));
    if (asked.size === before) throw new Error("the decision asked for the same rows twice");
    reads = mergeReads(reads, rowsFor(instance, answer));
  }
}

/** As the store answers: large outputs come only to who asks for that very row. */
function rowsFor(instance: MemoryInstance, { needs }: Needs): Reads {
  const stored = readsOf(instance);
  return needs
    .map((request): Reads => {
      switch (request.kind) {
        case "all":
          return { ...withoutLargeOutputs(stored), all: true };
        case "latest": {
          const read = stored.latest.get(request.path) ?? null;
          return { ...noReads, latest: new Map([[request.path, read]]) };
        }
        case "execution": {
          const key = executionKey(request.path, request.iteration);
          const read = stored.executions.get(key) ?? null;
          return { ...noReads, executions: new Map([[key, read]]) };
        }
        case "input": {
          const key = executionKey(request.path, request.iteration);
          const input = stored.inputs.get(key);
          return { ...noReads, inputs: input === undefined ? new Map() : new Map([[key, input]]) };
        }
        case "items": {
          const key = executionKey(request.path, request.iteration);
          return { ...noReads, items: new Map([[key, itemRowsFor(stored, request)]]) };
        }
        case "anywhere": {
          const { path, stepId } = request;
          const rows = [...stored.executions.values()].flatMap((read) =>
            read !== null && read.stepId === stepId && read.path.startsWith(`${path}[`) ? read : [],
          );
          const read = latestOf(rows) ?? null;
          return { ...noReads, anywhere: new Map([[anywhereKey(path, stepId), read]]) };
        }
        case "calendar": {
          const calendar = stored.calendars.get(request.calendarId) ?? null;
          return { ...noReads, calendars: new Map([[request.calendarId, calendar]]) };
        }
      }
    })
    .reduce(mergeReads, noReads);
}

/** One row an item, as the store's statement chooses it. */
function itemRowsFor(
  { executions }: Reads,
  { path, after, stepIds }: Extract<ReadRequest, { kind: "items" }>,
): readonly ExecutionRead[] {
  const rows = new Map<string | number, ExecutionRead>();
  for (const read of executions.values()) {
    const place = read === null ? undefined : takeApart(read.path);
    if (read === null || place?.path !== path || typeof place.at !== "number") continue;
    if (!stepIds.includes(read.stepId) || (read.completion ?? 0) <= after) continue;
    const known = rows.get(place.at)?.completion ?? 0;
    if (known < (read.completion ?? 0)) rows.set(place.at, read);
  }
  return [...rows.values()];
}

const largeOutputBytes = 65_536;

function withoutLargeOutputs(stored: Reads): Reads {
  const { latest, executions } = stored;
  const trim = ([key, read]: [string, ExecutionRead | null]): [string, ExecutionRead | null] => {
    if (read === null || JSON.stringify(read.output ?? null).length <= largeOutputBytes) {
      return [key, read];
    }
    return [key, { ...read, output: undefined, outputLeftOut: true }];
  };
  return {
    ...stored,
    latest: new Map([...latest].map(trim)),
    // In another order than that in which they began.
    executions: new Map([...executions].map(trim).toSorted(([a], [b]) => (a < b ? -1 : 1))),
    all: true,
  };
}

function timersAfter(
  timers: ReadonlyMap<string, SetTimer>,
  { commands }: Decision,
): ReadonlyMap<string, SetTimer> {
  const next = new Map(timers);
  for (const command of commands) {
    if (command.kind === "setTimer") {
      const { held: _inItsSet, ...timer } = command;
      next.set(timerName(command), timer);
    }
    if (command.kind === "clearTimer") next.delete(timerName(command));
  }
  return next;
}

function waitsAfter(
  waits: ReadonlyMap<string, NewWait>,
  { commands }: Decision,
): ReadonlyMap<string, NewWait> {
  const next = new Map(waits);
  for (const command of commands) {
    if (command.kind === "openWait") {
      next.set(executionKey(command.wait.path, command.wait.iteration), command.wait);
    } else if (command.kind === "closeWait") {
      next.delete(executionKey(command.path, command.iteration));
    } else if (command.kind === "rekeyWait") {
      const key = executionKey(command.path, command.iteration);
      const wait = next.get(key);
      if (wait === undefined) throw new Error(`the wait ${key} has a new key and is not open`);
      next.set(key, { ...wait, key: command.key });
    }
  }
  return next;
}

function childrenAfter(
  children: ReadonlySet<string>,
  { commands }: Decision,
  signals: readonly Signal[],
): ReadonlySet<string> {
  const next = new Set(children);
  for (const command of commands) {
    if (command.kind === "startChild" && !command.detached) next.add(command.childId);
    if (command.kind === "cancelChild") next.delete(command.childId);
  }
  for (const signal of signals) if ("childId" in signal) next.delete(signal.childId);
  return next;
}

function heldAfter(
  held: ReadonlySet<string>,
  { snapshot, inserts, updates, commands }: Decision,
): ReadonlySet<string> {
  const next = new Set(held);
  const isPaused = snapshot.status === "PAUSED";
  const put = (name: string, isHeld: boolean) => (isHeld ? next.add(name) : next.delete(name));
  for (const { path, iteration } of [...inserts, ...updates]) {
    const key = executionKey(path, iteration);
    const holds = snapshot.status === "PAUSED" || snapshot.slot === "WANTED";
    put(key, holds && snapshot.live[key]?.phase === "ACTIVE");
  }
  for (const command of commands) {
    if (command.kind === "setTimer") put(timerName(command), command.held === true);
    if (command.kind === "clearTimer") put(timerName(command), false);
    if (command.kind === "closeWait") put(waitName(command), false);
    if (command.kind === "openWait") {
      put(waitName(command.wait), isPaused && command.wait.purpose === "STEP");
    }
    if (command.kind === "rekeyWait" && command.path !== triggerPath) {
      put(waitName(command), isPaused);
    }
    if (command.kind !== "hold" && command.kind !== "letGo") continue;
    const isHeld = command.kind === "hold";
    for (const { path, iteration } of command.executions)
      put(executionKey(path, iteration), isHeld);
    for (const timer of command.timers) put(timerName(timer), isHeld);
    for (const wait of command.waits) put(waitName(wait), isHeld);
  }
  return next;
}

function waitName({ path, iteration }: { path: string; iteration: number }): string {
  return `wait ${executionKey(path, iteration)}`;
}

function retryOf(definition: Definition, stepId: string): RetryPolicy {
  const step = definition.steps.get(stepId) ?? definition.compensationSteps.get(stepId);
  const own = step !== undefined && "taskId" in step ? step.retry : {};
  return resolveRetryPolicy(own, definition.retry);
}

function msOf(text: string): number {
  const duration = parseDuration(text);
  if (isRefusal(duration)) throw new Error(`${text} ${duration.problem}`);
  return durationToMs(duration, noon);
}
