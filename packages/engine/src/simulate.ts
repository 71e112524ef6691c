import type { MockResult, Scenario, SimulationView } from "@millrace/contract";
import type { Json } from "@millrace/expressions";
import type { Calendar } from "./calendar/calendar.ts";
import { coverageOf, edgesOf } from "./coverage.ts";
import { createSnapshot } from "./decide/start.ts";
import { attemptsMade } from "./decide/step-views.ts";
import { eventSatisfies } from "./decide/wait.ts";
import type { Definition } from "./definition/definition.ts";
import { stepIdOf } from "./definition/paths.ts";
import { patternMatches } from "./definition/pattern.ts";
import { advanceInMemory, claimInMemory, memoryInstance, readsOf } from "./fold.ts";
import { resolveRetryPolicy } from "./retry.ts";
import { callOf, mockOf, msOf, startOfScenario } from "./scenario.ts";
import type { Command, Decision, NewWait } from "./state/decision.ts";
import type { ChildRef, EventFact, ExecutionRef, Signal } from "./state/signal.ts";
import { executionKey, isSettled } from "./state/snapshot.ts";
import type { WorkflowError } from "./state/snapshot.ts";

/**
 * A whole instance on a virtual clock, with the engine's own decisions and no store. Tasks do not run:
 * the scenario says what they answer. An agenda holds what is still to happen, in order of time; what
 * happens is decided upon, and the commands of the decision put the next things onto the agenda.
 */

/** Decisions and executions of one simulation, which is done in one go and must not take long. */
const maxDecisions = 1_000;
const maxExecutions = 2_000;

const defaultTaskMs = 1_000;
const defaultUntil = "P10Y";

export type SimulationResult = Omit<SimulationView, "workflowId" | "workflowVersion">;

type Happening =
  | { readonly kind: "signal"; readonly what: string; readonly signal: Signal }
  | { readonly kind: "take"; readonly ref: ExecutionRef }
  | { readonly kind: "event"; readonly index: number }
  | { readonly kind: "emitted"; readonly event: EventFact; readonly deaf: ReadonlySet<string> };

interface Due {
  readonly at: number;
  readonly happening: Happening;
}

/**
 * @param scenario One of which `scenarioProblems` finds nothing.
 * @param calendars By id, those of the scenario among them; any other does not exist.
 */
export function simulate(
  definition: Definition,
  scenario: Scenario,
  calendars: ReadonlyMap<string, Calendar> = new Map(),
): SimulationResult {
  const start = startOfScenario(scenario);
  const atOf = (text: string) => start.getTime() + msOf(text, start);
  const until = atOf(scenario.until ?? defaultUntil);

  const agenda: Due[] = [];
  const timers = new Map<string, Due>();
  const waits = new Map<string, NewWait>();
  const timeouts = new Map<string, number | null>();
  const published: EventFact[] = [];
  const delivered = new Set<string>();
  const unmocked = new Set<string>();
  const transcript: SimulationView["transcript"] = [];
  const path: string[] = [];
  const taken = new Map<string, number>();
  let decisions = 0;
  let now = start.getTime();
  let instance = memoryInstance(
    createSnapshot(definition, {
      id: "01900000-0000-7000-8000-000000000000",
      tenantId: "default",
      input: scenario.input ?? {},
      correlationId: scenario.correlationId ?? null,
      userId: null,
      priority: null,
      startEventId: null,
      createdAt: start,
    }),
    calendarsOf(definition, calendars),
  );

  function send(what: string, signals: readonly Signal[]): void {
    decisions++;
    const { decision, instance: next } = advanceInMemory(
      definition,
      instance,
      signals,
      new Date(now),
    );
    if (decision.snapshot === instance.snapshot) return;
    instance = next;
    follow(decision);
    transcript.push(entryOf(what, decision, now));
    for (const row of decision.inserts) path.push(executionKey(row.path, row.iteration));
    for (const edge of edgesOf(definition, decision)) taken.set(edge, (taken.get(edge) ?? 0) + 1);
    if (decision.commands.some(({ kind }) => kind === "openWait")) lookBack();
  }

  function follow({ inserts, commands }: Decision): void {
    for (const row of inserts) timeouts.set(executionKey(row.path, row.iteration), row.timeoutMs);
    for (const command of commands) carryOut(command);
    emit(commands);
  }

  /** What a decision emits arrives after it; waits that it opened after that do not hear it. */
  function emit(commands: readonly Command[]): void {
    const at = new Date(now).toISOString();
    const opened = commands.flatMap((command) => (command.kind === "openWait" ? command.wait : []));
    const emitted = commands.flatMap((command) =>
      command.kind === "emitEvent" ? command.event : [],
    );
    for (const [index, event] of emitted.entries()) {
      const later = opened.filter(
        ({ emittedBefore = 0, lookbackFrom }) => emittedBefore > index && lookbackFrom === null,
      );
      const deaf = new Set(
        later.map(({ path: place, iteration }) => executionKey(place, iteration)),
      );
      const fact = { ...event, occurredAt: at, receivedAt: at };
      agenda.push({ at: now, happening: { kind: "emitted", event: fact, deaf } });
    }
  }

  function carryOut(command: Command): void {
    switch (command.kind) {
      case "dispatch": {
        const { path: place, iteration, attempt, delayMs } = command;
        const ref = { path: place, iteration, attempt };
        agenda.push({ at: now + delayMs, happening: { kind: "take", ref } });
        return;
      }
      case "setTimer": {
        const { timer, path: place, iteration, attempt, dueAt } = command;
        const signal = { kind: "timerFired", timer, path: place, iteration, attempt } as const;
        const what = `the ${timer} timer of ${place === "" ? "the instance" : place} is due`;
        const due: Due = { at: dueAt.getTime(), happening: { kind: "signal", what, signal } };
        forgetTimer(timerKey(command));
        timers.set(timerKey(command), due);
        agenda.push(due);
        return;
      }
      case "clearTimer":
        return forgetTimer(timerKey(command));
      case "startChild": {
        const { path: place, iteration, attempt, childId, detached } = command;
        if (!detached) endChild({ path: place, iteration, attempt, childId });
        return;
      }
      case "openWait": {
        const { wait } = command;
        waits.set(executionKey(wait.path, wait.iteration), wait);
        return;
      }
      case "closeWait":
        waits.delete(executionKey(command.path, command.iteration));
        return;
      case "settle":
        waits.clear();
        return;
      default:
        return;
    }
  }

  function forgetTimer(key: string): void {
    const due = timers.get(key);
    if (due === undefined) return;
    timers.delete(key);
    const index = agenda.indexOf(due);
    if (index >= 0) agenda.splice(index, 1);
  }

  /** A worker takes the step at once; the scenario says what comes of it, and when. */
  function take(ref: ExecutionRef): void {
    const key = executionKey(ref.path, ref.iteration);
    const live = instance.snapshot.live[key];
    if (live?.attempt !== ref.attempt || live.phase !== "ACTIVE") return;
    instance = claimInMemory(instance, key);
    const { stepId } = live;
    const mock = mockOf(scenario, stepId, ref.attempt);
    if (mock === undefined) unmocked.add(stepId);
    const ms = mock?.duration === undefined ? defaultTaskMs : msOf(mock.duration, new Date(now));
    const timeoutMs = timeouts.get(key) ?? undefined;
    const retry = resolveRetryPolicy(callOf(definition, stepId)?.retry, definition.retry);
    const attempt = ref.attempt === 1 ? "" : `, attempt ${ref.attempt},`;
    if (timeoutMs !== undefined && ms > timeoutMs) {
      agenda.push({
        at: now + timeoutMs,
        happening: {
          kind: "signal",
          what: `${stepId}${attempt} times out`,
          signal: { kind: "attemptTimedOut", ...ref, clock: "timeout", retry },
        },
      });
      return;
    }
    const error = mock?.error;
    const signal: Signal =
      error === undefined
        ? { kind: "stepSucceeded", ...ref, output: mock?.output ?? null }
        : {
            kind: "stepFailed",
            ...ref,
            retry,
            failure: {
              type: error.type,
              message: error.message ?? error.type,
              details: error.details ?? null,
              retryable: error.retryable ?? true,
            },
          };
    const ending = error === undefined ? "succeeds" : `fails with ${error.type}`;
    const what = `${stepId}${attempt} ${ending}`;
    agenda.push({ at: now + ms, happening: { kind: "signal", what, signal } });
  }

  /** A child starts at once; the scenario says how it settles, and when. */
  function endChild(ref: ChildRef): void {
    const stepId = stepIdOf(ref.path);
    const mock = mockOf(scenario, stepId, ref.attempt);
    if (mock === undefined) unmocked.add(stepId);
    const { output = null, error, duration } = mock ?? {};
    const ms = duration === undefined ? defaultTaskMs : msOf(duration, new Date(now));
    const signal: Signal = {
      kind: "childEnded",
      ...ref,
      status: error === undefined ? "COMPLETED" : "FAILED",
      output,
      error: error === undefined ? null : mockedError(error),
      reason: null,
    };
    const ending = error === undefined ? "completes" : `fails with ${error.type}`;
    const what = `the child of ${stepId} ${ending}`;
    agenda.push({ at: now + ms, happening: { kind: "signal", what, signal } });
  }

  function satisfied(event: EventFact, deaf: ReadonlySet<string> = new Set()): readonly NewWait[] {
    return [...waits].flatMap(([key, wait]) =>
      !deaf.has(key) &&
      patternMatches(wait.pattern, event.pattern) &&
      eventSatisfies(
        definition,
        instance.snapshot,
        wait,
        event,
        readsOf(instance),
        new Date(now),
      ) === true
        ? wait
        : [],
    );
  }

  function publish(index: number): void {
    const given = scenario.events?.[index];
    if (given === undefined) return;
    const at = new Date(now).toISOString();
    const { pattern, id = `event-${index + 1}` } = given;
    if (given.id !== undefined && published.some((event) => event.id === id)) {
      const what = `event ${pattern} arrives again as ${id}, a duplicate`;
      transcript.push({ at, what, changes: [], status: instance.snapshot.status });
      return;
    }
    const payload = (given.payload ?? {}) as Json;
    deliver(`event ${pattern} arrives`, {
      id,
      pattern,
      payload,
      occurredAt: at,
      receivedAt: at,
    });
  }

  function deliver(what: string, event: EventFact, deaf?: ReadonlySet<string>): void {
    published.push(event);
    const matched = satisfied(event, deaf);
    if (matched.length > 0) delivered.add(event.id);
    // An event that cancels the instance satisfies nothing else of it (CONTRACT 3).
    const trigger = matched.find(({ purpose }) => purpose === "CANCEL");
    if (trigger !== undefined) {
      send(what, [{ kind: "cancelTriggered", trigger: trigger.iteration, event }]);
    } else if (matched.length > 0) {
      send(
        what,
        matched.map((wait) => matchedSignal(wait, event)),
      );
    } else {
      const { status } = instance.snapshot;
      const at = new Date(now).toISOString();
      transcript.push({ at, what: `${what}, and nothing waits for it`, changes: [], status });
    }
  }

  /** The other half of publishing: an open wait looks for events that came before it, oldest first. */
  function lookBack(): void {
    for (const event of published) {
      if (delivered.has(event.id)) continue;
      const received = new Date(event.receivedAt);
      const wait = satisfied(event).find(
        ({ purpose, lookbackFrom }) =>
          purpose === "STEP" && lookbackFrom !== null && lookbackFrom <= received,
      );
      if (wait === undefined) continue;
      delivered.add(event.id);
      send(`event ${event.pattern} had come before`, [matchedSignal(wait, event)]);
      return;
    }
  }

  function happen({ happening }: Due): void {
    switch (happening.kind) {
      case "signal":
        return send(happening.what, [happening.signal]);
      case "take":
        return take(happening.ref);
      case "event":
        return publish(happening.index);
      case "emitted": {
        const { event, deaf } = happening;
        return deliver(`event ${event.pattern}, which it has emitted, arrives`, event, deaf);
      }
    }
  }

  scenario.events?.forEach(({ at }, index) => {
    agenda.push({ at: atOf(at), happening: { kind: "event", index } });
  });
  if (scenario.cancel !== undefined) {
    const { at, reason = null, shouldCompensate = true } = scenario.cancel;
    const signal = {
      kind: "cancelRequested",
      reason,
      actor: "simulation",
      shouldCompensate,
    } as const;
    agenda.push({
      at: atOf(at),
      happening: { kind: "signal", what: "a cancel is asked for", signal },
    });
  }

  send("the instance starts", [{ kind: "started" }]);
  let outcome: SimulationResult["outcome"] = "STUCK";
  for (let turn = 0; ; turn++) {
    if (isSettled(instance.snapshot)) {
      outcome = "SETTLED";
      break;
    }
    const next = earliest(agenda);
    if (next === undefined) break;
    if (next.at > until) {
      outcome = "TIME_LIMIT";
      break;
    }
    const isLong = decisions >= maxDecisions || instance.executions.size >= maxExecutions;
    if (isLong || turn >= 10 * maxDecisions) {
      outcome = "STEP_LIMIT";
      break;
    }
    agenda.splice(agenda.indexOf(next), 1);
    now = Math.max(now, next.at);
    happen(next);
  }

  const { snapshot, executions } = instance;
  const steps = Object.fromEntries(
    [...executions.values()].map((row) => [
      row.stepId,
      {
        status: row.status,
        output: row.output ?? null,
        error: row.error && { ...row.error },
        attempts: attemptsMade(row.status, row.attempt),
        iteration: row.iteration,
      },
    ]),
  );
  const reached = new Set([...executions.values()].map(({ stepId }) => stepId));
  return {
    outcome,
    instance: {
      status: snapshot.status,
      output: snapshot.output,
      error: snapshot.error && { ...snapshot.error },
      variables: snapshot.variables,
      steps,
      waitingFor: [...waits.values()].flatMap(({ purpose, stepId, pattern }) =>
        purpose === "STEP" && stepId !== null ? [{ stepId, eventPattern: pattern }] : [],
      ),
      cancellation: snapshot.cancellation,
      compensation: snapshot.compensation && {
        status: snapshot.compensation.status,
        plan: [...snapshot.compensation.plan],
        completed: [...snapshot.compensation.completed],
        failed: snapshot.compensation.failed.map(({ stepId, error }) => ({
          stepId,
          error: error.message,
        })),
        uncertain: [...snapshot.compensation.uncertain],
      },
      createdAt: start.toISOString(),
      completedAt: snapshot.completedAt?.toISOString() ?? null,
    },
    path,
    transcript,
    coverage: coverageOf(definition, taken, reached),
    unmocked: [...unmocked],
    events: published.map(({ id, pattern }) => ({ id, pattern, delivered: delivered.has(id) })),
  };
}

/** Nothing can be loaded: those that are not there are known not to be. */
function calendarsOf(
  { steps }: Definition,
  calendars: ReadonlyMap<string, Calendar>,
): ReadonlyMap<string, Calendar | null> {
  const ids = [...steps.values()].flatMap((step) =>
    step.type === "DELAY" && step.calendar !== undefined ? step.calendar.id : [],
  );
  return new Map(ids.map((id) => [id, calendars.get(id) ?? null]));
}

/** The first of those that are due earliest. */
function earliest(agenda: readonly Due[]): Due | undefined {
  let first: Due | undefined;
  for (const due of agenda) if (first === undefined || due.at < first.at) first = due;
  return first;
}

function mockedError({
  type,
  message = type,
  details = null,
}: NonNullable<MockResult["error"]>): WorkflowError {
  return { kind: "TASK", type, message, stepId: null, attempt: null, details };
}

function matchedSignal({ path, iteration }: NewWait, event: EventFact): Signal {
  return { kind: "eventMatched", path, iteration, event };
}

function timerKey({ timer, path, iteration }: TimerCommand): string {
  return `${timer}:${executionKey(path, iteration)}`;
}

type TimerCommand = Extract<Command, { kind: "setTimer" | "clearTimer" }>;

function entryOf(
  what: string,
  { inserts, updates, snapshot }: Decision,
  now: number,
): SimulationView["transcript"][number] {
  return {
    at: new Date(now).toISOString(),
    what,
    changes: [...updates, ...inserts].map(({ path, iteration, status, error }) => ({
      executionId: executionKey(path, iteration),
      status,
      ...(error !== null && { error: `${error.type}: ${error.message}` }),
    })),
    status: snapshot.status,
  };
}
