import { createHash } from "node:crypto";
import type { Evidence, ReplayedStep, StepEvidence } from "../../src/consistency/evidence.ts";
import { workflowCalled } from "../../src/decide/called.ts";
import { hasOpenDeadLetter } from "../../src/decide/dead-letter.ts";
import type { Definition } from "../../src/definition/definition.ts";
import { advanceInMemory, memoryInstance } from "../../src/fold.ts";
import type { HistoryStep } from "../../src/fold.ts";
import { engineRev } from "../../src/rev.ts";
import { blankSnapshot, changesBetween } from "../../src/state/changes.ts";
import { storedSignal } from "../../src/state/stored-signal.ts";
import type { LiveExecution, Snapshot } from "../../src/state/snapshot.ts";
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
  const { commits, rows } = written(definition, history, snapshot);
  return {
    now,
    definition,
    definitionIs: "SOUND",
    identity: snapshot,
    isAsGiven: true,
    bornAt: snapshot.createdAt,
    version: snapshot.version,
    statusAt:
      commits?.findLast(({ version, changes }) => version === 1 || changes.status)?.at ?? now,
    updatedAt: commits?.at(-1)?.at ?? now,
    deadline: null,
    metadata: null,
    foreignLimits: [],
    snapshot,
    steps: [...instance.executions.values()].map((row): StepEvidence => {
      const isHeld = held.has(executionKey(row.path, row.iteration));
      const isSettled = ["COMPLETED", "FAILED", "SKIPPED", "CANCELLED"].includes(row.status);
      const made = rows.get(executionKey(row.path, row.iteration));
      const isDefined = definition.steps.get(row.stepId);
      const live = snapshot.live[executionKey(row.path, row.iteration)];
      return {
        ...row,
        type: isDefined?.type ?? "TASK",
        taskId: made?.taskId ?? null,
        priority: made?.priority ?? 0,
        compensates: isDefined === undefined ? (made?.compensates ?? "a#1") : null,
        input: made?.input,
        timeoutMs: made?.timeoutMs ?? null,
        heartbeatTimeoutMs: made?.heartbeatTimeoutMs ?? null,
        items: made?.items,
        createdAt: made?.insertedAt ?? noon,
        startedAt: made?.startedAt ?? (row.status === "RUNNING" ? now : null),
        completedAt: made?.completedAt ?? (isSettled ? now : null),
        awaited: made?.awaited ?? live?.phase === "AWAITED",
        held: isHeld,
        blocked: null,
        lookAt: isSettled || isHeld || row.status === "RUNNING" ? null : now,
        retryAt: made?.retryAt ?? null,
        ...clockOf(row.status, made, now),
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
      held: snapshot.status === "PAUSED" && wait.purpose === "STEP",
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
    history: commits,
    children: Object.values(snapshot.live).flatMap(({ path, iteration, attempt, child, ...live }) =>
      child === undefined
        ? []
        : {
            path,
            iteration,
            attempt,
            childId: child,
            ...childOf(definition, live),
            detached: false,
            requestedAt: now,
            startedAt: now,
            status: "RUNNING" as const,
            createdAt: now,
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
    slot: snapshot.slot && {
      status: snapshot.slot,
      request: snapshot.slotRequests,
      hasRun: snapshot.status !== "CREATED",
      lookAt: null,
      priority: snapshot.priority,
      deadline: null,
      wantedAt: now,
      promotedAt: snapshot.slotPromotedAt === null ? null : new Date(snapshot.slotPromotedAt),
    },
    hashOf,
  };
}

const hashOf = (key: readonly unknown[]) =>
  createHash("sha256").update(JSON.stringify(key)).digest("hex");

function childOf({ steps }: Definition, live: Pick<LiveExecution, "stepId" | "called">) {
  const step = steps.get(live.stepId);
  if (step?.type !== "SUB_WORKFLOW") throw new Error(`step ${live.stepId} has no child`);
  return { workflowId: workflowCalled(step, live), workflowVersion: step.version ?? null };
}

function clockOf(status: string, made: ReplayedStep | undefined, now: Date) {
  const { timeoutMs = null, heartbeatTimeoutMs = null } = made ?? {};
  const due = Math.min(timeoutMs ?? Infinity, heartbeatTimeoutMs ?? Infinity);
  if (status !== "RUNNING" || due === Infinity) {
    return { dueAt: null, dueClock: null, timeoutAt: null };
  }
  return {
    dueAt: new Date(now.getTime() + due),
    dueClock: due === timeoutMs ? "timeout" : "heartbeat",
    timeoutAt: timeoutMs === null ? null : new Date(now.getTime() + timeoutMs),
  };
}

/** Commits where the whole history is known, and the rows as they write them. */
function written(
  definition: Definition,
  history: readonly HistoryStep[],
  { version, input }: Snapshot,
) {
  let instance = memoryInstance(created(definition, { input }).instance.snapshot);
  const rows = new Map<string, ReplayedStep>();
  const commits = history.map(({ at, signals }) => {
    const before = instance.snapshot;
    const advanced = advanceInMemory(definition, instance, signals, at);
    ({ instance } = advanced);
    for (const row of advanced.decision.inserts) {
      const made = { ...row, retryAt: null, awaited: false, insertedAt: at };
      rows.set(executionKey(row.path, row.iteration), made);
    }
    for (const update of advanced.decision.updates) {
      const key = executionKey(update.path, update.iteration);
      const made = rows.get(key);
      if (made !== undefined)
        rows.set(key, { ...made, ...update, items: update.items ?? made.items });
    }
    const from = before.version === 0 ? blankSnapshot(before) : before;
    return {
      version: instance.snapshot.version,
      at,
      engineRev,
      actor: signals.flatMap((signal) => ("actor" in signal ? signal.actor : [])).at(0) ?? "test",
      signals: signals.map(storedSignal),
      changes: changesBetween(from, instance.snapshot),
      entries: advanced.decision.entries,
    };
  });
  return { commits: commits.length === version ? commits : undefined, rows };
}
