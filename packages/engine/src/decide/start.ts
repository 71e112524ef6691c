import type { Json } from "@millrace/expressions";
import type { Definition } from "../definition/definition.ts";
import type { Snapshot } from "../state/snapshot.ts";
import { failInstance } from "./end.ts";
import type { Turn } from "./turn.ts";
import { changeStatus, clearTimer, note, setTimer } from "./turn.ts";
import { openTriggers } from "./wait.ts";
import { clockMs, expressionError, walk } from "./walk.ts";

/** What the outside says about an instance that is to begin. */
export interface NewInstance {
  readonly id: string;
  readonly tenantId: string;
  readonly input: Json;
  readonly correlationId: string | null;
  readonly userId: string | null;
  readonly priority: number | null;
  readonly startEventId: string | null;
  readonly createdAt: Date;
}

/** The snapshot before the first signal: version 0, not stored yet. */
export function createSnapshot(definition: Definition, instance: NewInstance): Snapshot {
  return {
    ...instance,
    priority: instance.priority ?? definition.priority,
    workflowId: definition.id,
    workflowVersion: definition.version,
    version: 0,
    status: "CREATED",
    startedAt: null,
    completedAt: null,
    variables: definition.variables,
    output: null,
    error: null,
    cancellation: null,
    compensation: null,
    live: {},
    iterations: {},
    completions: 0,
    completedSteps: 0,
    lastOutput: null,
    timers: [],
    triggerKeys: {},
  };
}

/** The instance exists, and begins later: it can be cancelled and can time out meanwhile. */
export function schedule(turn: Turn, startAt: Date): void {
  if (turn.before.version !== 0) return;
  note(turn, { type: "workflow.created", data: { startAt: startAt.toISOString() } });
  if (!listen(turn)) return;
  setTimer(turn, "start", { path: "", iteration: 0, attempt: 0 }, startAt);
  turn.state.timers = [...turn.state.timers, "start"];
}

export function start(turn: Turn): void {
  if (turn.state.status !== "CREATED") return;
  const listening = turn.before.version > 0;
  if (!listening) note(turn, { type: "workflow.created" });
  if (turn.state.timers.includes("start")) {
    clearTimer(turn, "start", "", 0);
    turn.state.timers = turn.state.timers.filter((timer) => timer !== "start");
  }
  if (!listening && !listen(turn)) return;
  changeStatus(turn, "RUNNING");
  turn.state.startedAt = turn.now;
  note(turn, { type: "workflow.started" });
  walk(turn, turn.definition.start);
}

/** Opens the cancellation triggers and sets the instance timeout. False where their values failed. */
function listen(turn: Turn): boolean {
  try {
    openTriggers(turn);
    const timeoutMs = clockMs(turn, turn.definition.timeout, {}, turn.state.createdAt);
    if (timeoutMs === null) return true;
    const dueAt = new Date(turn.state.createdAt.getTime() + timeoutMs);
    setTimer(turn, "timeout", { path: "", iteration: 0, attempt: 0 }, dueAt);
    turn.state.timers = [...turn.state.timers, "timeout"];
    return true;
  } catch (thrown) {
    failInstance(turn, expressionError(thrown, null, "starting the instance"));
    return false;
  }
}
