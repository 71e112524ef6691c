import { waitPathOf } from "../definition/paths.ts";
import type { NewWait } from "../state/decision.ts";
import { executionKey } from "../state/snapshot.ts";
import type { LiveExecution } from "../state/snapshot.ts";
import type { Turn } from "./turn.ts";

/** A wait that was opened in this same turn simply never comes to be. */

export function openWait(turn: Turn, given: NewWait): void {
  const emittedBefore = given.emittedBefore ?? turn.emitted.length;
  const wait = emittedBefore === 0 ? given : { ...given, emittedBefore };
  turn.waits.set(executionKey(wait.path, wait.iteration), { kind: "openWait", wait });
}

export function closeWait(turn: Turn, path: string, iteration: number, handsOn = false): void {
  const key = executionKey(path, iteration);
  turn.rekeys.delete(key);
  if (turn.waits.get(key)?.kind === "openWait") turn.waits.delete(key);
  else turn.waits.set(key, { kind: "closeWait", path, iteration, ...(handsOn && { handsOn }) });
}

/** Where the waits of an execution are stored, those whose event has come excepted. */
export function waitPathsOf({ path, awaiting }: LiveExecution): readonly string[] {
  if (awaiting === undefined) return [path];
  return Object.keys(awaiting).map((place) => waitPathOf(path, Number(place)));
}

/** The one whose event was applied has been closed before. */
export function closeWaits(turn: Turn, execution: LiveExecution): void {
  const { stepId, iteration } = execution;
  const current = turn.definition.steps.get(stepId);
  if (current?.type !== "EVENT_WAIT") return;
  for (const path of waitPathsOf(execution)) {
    if (turn.waits.get(executionKey(path, iteration))?.kind === "closeWait") continue;
    closeWait(turn, path, iteration, current.deliver === "ONE");
  }
}
