import { allowedSlot } from "../decide/slot.ts";
import type { Snapshot } from "../state/snapshot.ts";
import type { Truth } from "./check-history.ts";
import type { Evidence, Finding } from "./evidence.ts";

/** PROMISES P10: the place under a limit is what the instance says of it, and that is by its status. */
export function checkSlot(
  { slot: stored, definition }: Evidence,
  { snapshot }: Truth,
): readonly Finding[] {
  if (snapshot === undefined) return [];
  const { slot, slotRequests, status } = snapshot;
  if (definition !== undefined && slot !== allowedSlot(definition, snapshot)) {
    const message = `the instance is ${status}, and ${slotText(slot)}`;
    return [{ code: "SLOT_DIFFERS", message, where: {} }];
  }
  const repair = { kind: "commit", commands: [{ kind: "placeSlot" }] } as const;
  if (slot === null) {
    if (stored === null) return [];
    const message = `a slot is ${stored.status}, and the instance, which is ${status}, needs none`;
    return [{ code: "SLOT_STRAY", message, where: {}, repair }];
  }
  if (stored === null) {
    const message = `the instance ${slotText(slot)}, and no row says so`;
    return [{ code: "SLOT_MISSING", message, where: {}, repair }];
  }
  const fits = stored.status === slot || (stored.status === "GRANTED" && slot === "WANTED");
  if (fits && stored.request === slotRequests) return [];
  const message = `the instance ${slotText(slot)} by request ${slotRequests}, and stored is ${stored.status} by request ${stored.request}`;
  return [{ code: "SLOT_DIFFERS", message, where: {}, repair }];
}

function slotText(slot: Snapshot["slot"]): string {
  if (slot === null) return "has no slot";
  return slot === "HELD" ? "has a slot" : "waits for a slot";
}
