import type { Json } from "@millrace/expressions";
import type { Signal } from "../state/signal.ts";
import type { JsonObject } from "../state/snapshot.ts";
import { inStoredOrder } from "../state/stored-order.ts";
import { canStillMove } from "./cancel.ts";
import { intervene } from "./pause.ts";
import { note } from "./turn.ts";
import type { Turn } from "./turn.ts";

/** An operator changes variables. The keys of waits that read them are written again with it. */
export function patchVariables(
  turn: Turn,
  {
    intervention,
    actor,
    reason,
    patch,
    priority,
    others,
  }: Extract<Signal, { kind: "variablesPatched" }>,
): void {
  const { state } = turn;
  if (!canStillMove(state) || !intervene(turn, intervention)) return;
  if (patch !== null) {
    state.variables = inStoredOrder(mergePatch(state.variables, patch)) as JsonObject;
  }
  if (priority !== null) state.priority = priority;
  note(turn, {
    type: "workflow.patched",
    actor,
    data: {
      ...(reason !== null && { reason }),
      ...(patch !== null && { variables: patch }),
      ...(priority !== null && { priority }),
      ...others,
    },
  });
}

/** JSON merge patch (RFC 7396): null removes a member, an object is merged, anything else is taken. */
export function mergePatch(target: Json, patch: Json): Json {
  if (!isObject(patch)) return patch;
  const merged = new Map(isObject(target) ? Object.entries(target) : []);
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) merged.delete(name);
    else merged.set(name, mergePatch(merged.get(name) ?? null, value));
  }
  return Object.fromEntries(merged);
}

function isObject(value: Json): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
