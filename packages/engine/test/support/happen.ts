import { defaultRetryPolicy, resolveRetryPolicy } from "../../src/retry.ts";
import type { RetryPolicy } from "../../src/retry.ts";
import type { Definition } from "../../src/definition/definition.ts";
import type { EventFact, HeldSignal, Signal } from "../../src/state/signal.ts";
import type { ExecutionRef } from "../../src/state/signal.ts";
import { executionKey } from "../../src/state/snapshot.ts";
import { triggerPath } from "../../src/decide/listen.ts";
import type { MemoryInstance } from "../../src/fold.ts";
import type { Stored } from "./laws.ts";
import { fired } from "./simulation.ts";
import type { SetTimer } from "./simulation.ts";
import { retryRefusal } from "../../src/decide/reopen.ts";
import { canPause } from "../../src/decide/pause.ts";

/** What can happen to an instance: a worker takes a row or dies with it, or a signal comes in. */
export type Happening =
  | { readonly kind: "claim" | "lose"; readonly key: string }
  | { readonly kind: "signal"; readonly signal: Signal };

export function happeningsOf(definition: Definition, stored: Stored): readonly Happening[] {
  if (stored.instance.snapshot.version === 0) {
    return signals([{ kind: "started" }, { kind: "scheduled", startAt: tomorrow }]);
  }
  return [
    ...claims(stored),
    ...signals([
      ...admissions(stored),
      ...results(definition, stored.instance),
      ...resumes(stored),
      ...letters(stored),
      ...timersOf(stored).map(fired),
      ...matches(stored),
      ...childEnds(stored.instance),
      ...cancels(definition, stored),
      ...pauses(stored),
      ...retries(definition, stored),
    ]),
    ...losses(stored.instance),
  ];
}

/** The instance is given a slot; nobody else is there to take it. */
function admissions({ instance: { snapshot } }: Stored): readonly Signal[] {
  const { slot, slotRequests: request } = snapshot;
  return slot === "WANTED" ? [{ kind: "admitted", request }] : [];
}

function claims({ instance, held }: Stored): readonly Happening[] {
  return [...instance.executions].flatMap(([key, { status, queue }]) =>
    queue !== null && (status === "PENDING" || status === "RETRYING") && !held.has(key)
      ? [{ kind: "claim", key } as const]
      : [],
  );
}

/** Those that may fire now. The end of a pause is a signal of its own. */
function timersOf({ timers, held }: Stored): readonly SetTimer[] {
  return [...timers].flatMap(([name, timer]) =>
    held.has(name) || timer.timer === "resume" ? [] : timer,
  );
}

function pauses({ instance: { snapshot } }: Stored): readonly Signal[] {
  if (!canPause(snapshot)) return [];
  const who = { intervention: snapshot.interventions + 1, actor: "user:ada", reason: null };
  return [
    { kind: "pauseRequested", ...who, until: null },
    { kind: "pauseRequested", ...who, until: tomorrow.toISOString() },
  ];
}

function retries({ start }: Definition, { instance: { snapshot } }: Stored): readonly Signal[] {
  if (retryRefusal(snapshot) !== undefined) return [];
  const who = { intervention: snapshot.interventions + 1, actor: "user:ada", reason: null };
  return [
    { kind: "retryRequested", ...who, fromStepId: null },
    { kind: "retryRequested", ...who, fromStepId: start },
  ];
}

/** Of a compensation step that killed its workers. */
function letters({ instance: { snapshot } }: Stored): readonly Signal[] {
  if (snapshot.compensation?.poisoned === undefined) return [];
  const who = { actor: "user:ada", reason: null };
  return [
    { kind: "deadLetterDiscarded", ...who },
    { kind: "deadLetterRetried", ...who },
  ];
}

/** With nothing of what is held, with all of it, and with all of it the other way round. */
function resumes(stored: Stored): readonly Signal[] {
  const { snapshot } = stored.instance;
  if (snapshot.status !== "PAUSED") return [];
  const who = { intervention: snapshot.interventions + 1, actor: "user:bob", reason: null };
  const held = [
    ...[...stored.timers].flatMap(([name, timer]) => (stored.held.has(name) ? fired(timer) : [])),
    ...matchesOf(stored),
  ] as HeldSignal["signal"][];
  const inOrder = (all: readonly HeldSignal["signal"][]) =>
    all.map((signal, index) => ({ at: new Date(index).toISOString(), signal }));
  return [
    { kind: "resumeRequested", ...who, held: [] },
    { kind: "resumeRequested", ...who, held: inOrder(held) },
    { kind: "resumeRequested", ...who, held: inOrder(held.toReversed()) },
  ];
}

/** A step that is given its grace is not taken from its worker. */
function losses({ snapshot, executions }: MemoryInstance): readonly Happening[] {
  return [...executions].flatMap(([key, { status }]) =>
    status === "RUNNING" && snapshot.live[key]?.phase === "ACTIVE"
      ? [{ kind: "lose", key } as const]
      : [],
  );
}

function signals(all: readonly Signal[]): readonly Happening[] {
  return all.map((signal) => ({ kind: "signal", signal }));
}

const tomorrow = new Date("2026-03-02T12:00:00.000Z");

/** What a worker that runs a step can report. */
function results(
  definition: Definition,
  { executions, snapshot }: MemoryInstance,
): readonly Signal[] {
  return (
    [...executions.values()]
      .filter(({ status }) => status === "RUNNING")
      // No worker runs a PARALLEL or a MAP.
      .filter(({ path, iteration }) => {
        return snapshot.live[executionKey(path, iteration)]?.phase !== "OPEN";
      })
      .flatMap(({ stepId, path, iteration, attempt }): Signal[] => {
        const execution: ExecutionRef = { path, iteration, attempt };
        const retry = policyOf(definition, stepId);
        const failure = { message: "it broke", details: null };
        const output = { ok: true, n: attempt, id: path };
        const success = { kind: "stepSucceeded", ...execution, output } as const;
        return [
          success,
          // Likelier than any one way to fail, so that runs get far.
          success,
          success,
          success,
          {
            kind: "stepFailed",
            ...execution,
            failure: { ...failure, type: "A", retryable: true },
            retry,
          },
          {
            kind: "stepFailed",
            ...execution,
            failure: { ...failure, type: "B", retryable: false },
            retry,
          },
          { kind: "attemptTimedOut", ...execution, clock: "timeout", retry },
          { kind: "poisoned", ...execution, deliveries: 5 },
        ];
      })
  );
}

function policyOf({ steps, compensationSteps, retry }: Definition, stepId: string): RetryPolicy {
  const call = steps.get(stepId) ?? compensationSteps.get(stepId);
  if (call === undefined || !("taskId" in call)) return defaultRetryPolicy;
  return resolveRetryPolicy(call.retry, retry);
}

/** An event that comes while it is paused stays with its wait. */
function matches(stored: Stored): readonly Signal[] {
  return stored.instance.snapshot.status === "PAUSED" ? [] : matchesOf(stored);
}

function matchesOf({ waits }: Stored): readonly Signal[] {
  return [...waits.values()]
    .filter(({ purpose }) => purpose === "STEP")
    .map(({ path, iteration }) => ({
      kind: "eventMatched",
      path,
      iteration,
      event: event(`match-${executionKey(path, iteration)}`, { n: 2 }),
    }));
}

/** How a child may settle, also one that is told to stop. */
function childEnds({ snapshot }: MemoryInstance): readonly Signal[] {
  return Object.values(snapshot.live).flatMap(
    ({ path, iteration, attempt, child: childId }): Signal[] => {
      if (childId === undefined) return [];
      const ref = { path, iteration, attempt, childId };
      const none = { output: null, error: null, reason: null };
      const completed = { kind: "childEnded", ...ref, ...none, status: "COMPLETED" } as const;
      const error = { kind: "TASK", type: "A", message: "it broke", details: null } as const;
      const failure = { ...error, stepId: "work", attempt: 1 };
      return [
        { ...completed, output: { ok: true, id: path } },
        { ...completed, output: { ok: true, id: path } },
        { kind: "childEnded", ...ref, ...none, status: "FAILED", error: failure },
        { kind: "childEnded", ...ref, ...none, status: "CANCELLED", reason: "stop" },
        { kind: "childRefused", ...ref, error: { ...error, kind: "DEFINITION" } },
      ];
    },
  );
}

function cancels({ cancellationTriggers }: Definition, { waits }: Stored): readonly Signal[] {
  return [
    { kind: "cancelRequested", reason: "stop", actor: "user:ada", shouldCompensate: true },
    { kind: "cancelRequested", reason: null, actor: "user:ada", shouldCompensate: false },
    ...cancellationTriggers
      .map((_trigger, index) => index + 1)
      .filter((trigger) => waits.has(executionKey(triggerPath, trigger)))
      .map((trigger): Signal => ({
        kind: "cancelTriggered",
        trigger,
        event: event(`trigger-${trigger}`, { why: "because", n: 0 }),
      })),
  ];
}

function event(id: string, payload: EventFact["payload"]): EventFact {
  const at = "2026-03-01T12:00:00.000Z";
  return { id, pattern: "go", payload, occurredAt: at, receivedAt: at };
}
