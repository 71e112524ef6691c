import { allowedSlot } from "../decide/slot.ts";
import type { Snapshot } from "../state/snapshot.ts";
import type { Truth } from "./check-history.ts";
import type { Evidence, Finding, SlotEvidence } from "./evidence.ts";
import { lateMs, skewMs } from "./late.ts";

/** PROMISES P10: the place under a limit is what the instance says of it, and that is by its status. */
export function checkSlot(evidence: Evidence, truth: Truth): readonly Finding[] {
  const { foreignLimits, isAsGiven } = evidence;
  const own = checkOwnSlot(evidence, truth);
  if (foreignLimits.length === 0) return own;
  const message = `the instance has a place under the limits ${foreignLimits.join(", ")}, which is none of its own`;
  // It may be the workflow that was changed.
  const repair = isAsGiven && ({ kind: "leaveLimits" } as const);
  return [{ code: "SLOT_FOREIGN", message, where: {}, ...(repair && { repair }) }, ...own];
}

function checkOwnSlot(
  { slot: stored, definition, deadline, now }: Evidence,
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
  const isQueued = stored.status === "WANTED" && slot === "WANTED";
  const wrong = isQueued ? queueFault(stored, snapshot, deadline, now) : undefined;
  if (wrong !== undefined) {
    const message = `the instance waits for a slot, and its place is by ${wrong}`;
    return [{ code: "SLOT_DIFFERS", message, where: {}, repair }];
  }
  if (stored.status === "GRANTED" && isUntold(stored, now)) {
    const message = "a slot is granted to the instance, and nobody would tell it so";
    return [{ code: "SLOT_DIFFERS", message, where: {}, repair }];
  }
  const fits = stored.status === slot || (stored.status === "GRANTED" && slot === "WANTED");
  if (fits && stored.request === slotRequests) return [];
  const message = `the instance ${slotText(slot)} by request ${slotRequests}, and stored is ${stored.status} by request ${stored.request}`;
  return [{ code: "SLOT_DIFFERS", message, where: {}, repair }];
}

/** Whoever tells it of its slot, or finds it untold, looks again within seconds. */
function isUntold({ lookAt }: SlotEvidence, now: Date): boolean {
  return lookAt === null || lookAt.getTime() > now.getTime() + lateMs;
}

/** By which the queue is ordered. */
function queueFault(
  stored: SlotEvidence,
  { priority, slotWantedAt, slotPromotedAt, status }: Snapshot,
  deadline: Date | null | undefined,
  now: Date,
): string | undefined {
  const hasRun = status !== "CREATED";
  if (stored.hasRun !== hasRun) {
    return hasRun ? "that of one that has not run" : "that of one that has run before";
  }
  if (stored.priority !== priority) return `priority ${stored.priority}, not ${priority}`;
  if (deadline !== undefined && stored.deadline?.getTime() !== deadline?.getTime()) {
    return "another deadline";
  }
  if ((stored.promotedAt?.toISOString() ?? null) !== slotPromotedAt) {
    return slotPromotedAt === null
      ? "a promotion that there was none of"
      : "another time than that of its promotion";
  }
  const wanted = stored.wantedAt.getTime();
  const since = slotWantedAt === null ? 0 : new Date(slotWantedAt).getTime();
  const isMoved = wanted < since - skewMs || wanted > now.getTime() + skewMs;
  return isMoved ? `the time ${stored.wantedAt.toISOString()}` : undefined;
}

function slotText(slot: Snapshot["slot"]): string {
  if (slot === null) return "has no slot";
  return slot === "HELD" ? "has a slot" : "waits for a slot";
}
