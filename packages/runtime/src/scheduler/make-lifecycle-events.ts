import { lifecycleEvents, patternMatches } from "@millrace/engine";
import {
  freeLifecycleCursor,
  heardAmong,
  lifecycleShapes,
  readChanges,
  readLifecycleCursor,
  sharedTenant,
  skipUnheard,
  storeLifecycleEvents,
  unmatchedAmong,
} from "@millrace/store";
import type {
  Json,
  LifecycleShape,
  NewLifecycleEvent,
  PlacedChange,
  StoredEvent,
} from "@millrace/store";
import { matchEvent } from "../events/match-event.ts";
import { idFor } from "../ids.ts";
import { startLoop } from "../loop.ts";
import type { Loop } from "../loop.ts";
import { probesOf } from "../probes.ts";
import type { Services } from "../services.ts";
import { streamEventsOf } from "../streams/stream-event.ts";
import { each } from "./kind.ts";

/**
 * Makes events of what the history tells (CONTRACT 3, lifecycle events) and matches them, as long as anybody waits
 * for one. Any number of schedulers may: what one has read is stored as events in the statement that moves the
 * cursor on, and whoever comes second with it stores nothing. From then on they are events as others are: what is
 * not matched here is matched by the reconciler. The next are read when these have been matched, so that what an
 * instance tells is heard in order.
 */

/** Between looks while nobody waits for any, and while another scheduler is at it. */
const restMs = 1_000;
const betweenMs = 100;
const pageSize = 500;

export function startLifecycleEvents(services: Services): Loop {
  const options = { name: "lifecycle", log: services.log, maxDelayMs: restMs };
  return startLoop(options, () => makeLifecycleEvents(services));
}

/** @returns In how many milliseconds to look again. */
async function makeLifecycleEvents(services: Services): Promise<number> {
  const { db } = services.database;
  const { place, isListened, isStale, isBusy } = await readLifecycleCursor(db);
  if (isStale) await skipUnheard(db);
  if (!isListened || isStale) return restMs;
  if (isBusy) return betweenMs;
  const { changes } = await readChanges(db, place, pageSize);
  const last = changes.at(-1);
  if (last === undefined) return betweenMs;
  const heard = await heardEvents(services, changes);
  const next = { tx: last.tx, seq: last.seq };
  const stored = await storeLifecycleEvents(db, place, next, heard);
  if (stored === undefined) return restMs;
  if (stored.length > 0) await matchInOrder(services, heard, await unmatchedAmong(db, stored));
  if (heard.length > 0) await freeLifecycleCursor(db, next);
  return changes.length === pageSize ? 0 : betweenMs;
}

/** Those that somebody may be waiting for: all others need no row. */
async function heardEvents(
  { database: { db } }: Services,
  changes: readonly PlacedChange[],
): Promise<readonly NewLifecycleEvent[]> {
  const told = changes.flatMap((change) =>
    eventsOf(change).map((event) => ({ event, workflowId: change.workflowId })),
  );
  if (told.length === 0) return [];
  const tenantIds = new Set(told.map(({ event }) => event.tenantId));
  const shapes = await lifecycleShapes(db, [...tenantIds]);
  const probes = told.flatMap(({ event, workflowId }, ix) => {
    const { tenantId, receivedAt } = event;
    const fact = { ...event, occurredAt: event.occurredAt.toISOString() };
    return probesOf(shapesFor(event, shapes), fact).map((probe) => ({
      ix,
      tenantId,
      workflowId,
      receivedAt,
      probe,
    }));
  });
  const heard = await heardAmong(db, probes);
  return told.filter((_each, ix) => heard.has(ix)).map(({ event }) => event);
}

/** Of its own tenant, or of what all tenants share. */
function shapesFor(
  { tenantId, pattern }: NewLifecycleEvent,
  shapes: readonly LifecycleShape[],
): readonly LifecycleShape[] {
  return shapes.filter(
    (shape) =>
      (shape.tenantId === tenantId || shape.tenantId === sharedTenant) &&
      patternMatches(shape.pattern, pattern),
  );
}

const names: ReadonlySet<string> = new Set(lifecycleEvents);

/** Their ids follow from the place in the history. */
function eventsOf(change: PlacedChange): readonly NewLifecycleEvent[] {
  const { tenantId, instanceId, version, writtenAt } = change;
  return [...streamEventsOf(change)].flatMap(({ type, at, ...told }, index) => {
    if (!names.has(type)) return [];
    return {
      tenantId,
      id: idFor(at, tenantId, instanceId, String(version), String(index)),
      pattern: type,
      payload: { ...told, at: at.toISOString() } as Json,
      occurredAt: at,
      receivedAt: writtenAt,
      actor: `instance:${instanceId}`,
    };
  });
}

/** Those of one instance one after the other, as it went. */
async function matchInOrder(
  services: Services,
  inOrder: readonly NewLifecycleEvent[],
  unmatched: readonly StoredEvent[],
): Promise<void> {
  const nameOf = (event: { readonly tenantId: string; readonly id: string }) =>
    `${event.tenantId}/${event.id}`;
  const left = new Map(unmatched.map((event) => [nameOf(event), event]));
  const groups = new Map<string, StoredEvent[]>();
  for (const told of inOrder) {
    const event = left.get(nameOf(told));
    if (event === undefined) continue;
    const group = groups.get(told.actor) ?? [];
    groups.set(told.actor, group);
    group.push(event);
  }
  await each(services, [...groups.values()], async (events) => {
    for (const event of events) await matchEvent(services, event);
  });
}
