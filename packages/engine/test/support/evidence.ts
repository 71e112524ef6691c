import { createHash } from "node:crypto";
import type { Evidence, StepEvidence } from "../../src/consistency/evidence.ts";
import { hasOpenDeadLetter } from "../../src/decide/dead-letter.ts";
import type { Definition } from "../../src/definition/definition.ts";
import { advanceInMemory, memoryInstance } from "../../src/fold.ts";
import type { HistoryStep } from "../../src/fold.ts";
import { engineRev } from "../../src/rev.ts";
import { blankSnapshot, changesBetween } from "../../src/state/changes.ts";
import { storedSignal } from "../../src/state/stored-signal.ts";
import type { Snapshot } from "../../src/state/snapshot.ts";
import { executionKey } from "../../src/state/snapshot.ts";
import type { Stored } from "./laws.ts";
import { created, noon } from "./simulation.ts";

/** What the store would have of a simulated instance, for the consistency checker. */
export function evidenceOf(
  definition: Definition,
  { instance, timers, waits, held }: Stored,
  history: readonly HistoryStep[],
  now: Date,
): Evidence {
  const { snapshot } = instance;
  return {
    now,
    definition,
    identity: snapshot,
    version: snapshot.version,
    snapshot,
    steps: [...instance.executions.values()].map((row): StepEvidence => {
      const isHeld = held.has(executionKey(row.path, row.iteration));
      const isSettled = ["COMPLETED", "FAILED", "SKIPPED", "CANCELLED"].includes(row.status);
      const isDefined = definition.steps.get(row.stepId);
      const live = snapshot.live[executionKey(row.path, row.iteration)];
      return {
        ...row,
        type: isDefined?.type ?? "TASK",
        taskId: null,
        compensates: isDefined === undefined ? "a#1" : null,
        createdAt: noon,
        startedAt: null,
        completedAt: isSettled ? now : null,
        awaited: live?.phase === "AWAITED",
        held: isHeld,
        blocked: null,
        lookAt: isSettled || isHeld || row.status === "RUNNING" ? null : now,
        retryAt: null,
        workerId: null,
        silentMs: 0,
      };
    }),
    waits: [...waits.values()].map((wait) => ({
      ...wait,
      eventPaths: wait.eventPaths.join(" "),
      keyHash: wait.key === "NEVER" ? null : hashOf(wait.key),
      openedAt: noon,
      hasShape: true,
      isLookedBack: true,
      matchedEventId: null,
      matchedAt: null,
      hasEvent: false,
    })),
    timers: [...timers].map(([name, { timer, path, iteration, attempt, dueAt }]) => ({
      kind: timer,
      path,
      iteration,
      attempt,
      dueAt,
      lookAt: held.has(name) ? null : dueAt,
      held: held.has(name),
    })),
    history: commitsOf(definition, history, snapshot),
    children: Object.values(snapshot.live).flatMap(({ path, iteration, attempt, child }) =>
      child === undefined
        ? []
        : {
            path,
            iteration,
            attempt,
            childId: child,
            workflowId: "child",
            detached: false,
            requestedAt: now,
            startedAt: now,
            status: "RUNNING" as const,
            isSettled: false,
            isReported: false,
            isLinked: true,
          },
    ),
    told: [],
    parent: null,
    hasStartShapes: true,
    unmatchedEvents: [],
    deliveries: 0,
    openDeadLetters: Number(hasOpenDeadLetter(snapshot)),
    slot: snapshot.slot && { status: snapshot.slot, request: snapshot.slotRequests },
    hashOf,
  };
}

const hashOf = (key: readonly unknown[]) =>
  createHash("sha256").update(JSON.stringify(key)).digest("hex");

function commitsOf(
  definition: Definition,
  history: readonly HistoryStep[],
  { version, input }: Snapshot,
): Evidence["history"] {
  let instance = memoryInstance(created(definition, { input }).instance.snapshot);
  const commits = history.map(({ at, signals }) => {
    const before = instance.snapshot;
    ({ instance } = advanceInMemory(definition, instance, signals, at));
    const from = before.version === 0 ? blankSnapshot(before) : before;
    return {
      version: instance.snapshot.version,
      at,
      engineRev,
      signals: signals.map(storedSignal),
      changes: changesBetween(from, instance.snapshot),
    };
  });
  return commits.length === version ? commits : undefined;
}
