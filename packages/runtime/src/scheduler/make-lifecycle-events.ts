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
  webhooksOf,
} from "@millrace/store";
import type {
  Db,
  Json,
  LifecycleShape,
  NewDelivery,
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
import type { StreamEvent } from "../streams/stream-event.ts";
import { each } from "./kind.ts";

/**
 * Makes events of what the history tells (CONTRACT 3, lifecycle events) and matches them, as long as anybody waits
 * for one; and rows of what is to be sent to webhooks (deliver-webhooks.ts). Any number of schedulers may: what one has read is stored as events in the statement that moves the
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
  const told = changes.flatMap((change) => toldBy(services, change));
  const next = { tx: last.tx, seq: last.seq };
  const part = { events: await heardEvents(db, told), deliveries: await deliveriesOf(db, told) };
  const stored = await storeLifecycleEvents(db, place, next, part);
  if (stored === undefined) return restMs;
  if (stored.length > 0)
    await matchInOrder(services, part.events, await unmatchedAmong(db, stored));
  if (part.events.length > 0) await freeLifecycleCursor(db, next);
  return changes.length === pageSize ? 0 : betweenMs;
}

/** One lifecycle event of a commit. */
interface Told {
  readonly event: NewLifecycleEvent;
  readonly workflowId: string;
  /** As streams have it. */
  readonly shown: StreamEvent;
}

const names: ReadonlySet<string> = new Set(lifecycleEvents);

/** Of a row that is damaged nothing is told: it must not hold up all others for ever. */
function toldBy({ log }: Services, change: PlacedChange): readonly Told[] {
  try {
    return eventsOf(change);
  } catch (err) {
    const { instanceId, version } = change;
    log.warn(
      { err, instanceId, version },
      "nothing is told of a row of the history that is damaged",
    );
    return [];
  }
}

/** Their ids follow from the place in the history. */
function eventsOf(change: PlacedChange): readonly Told[] {
  const { tenantId, instanceId, workflowId, version, writtenAt } = change;
  return [...streamEventsOf(change)].flatMap((shown, index) => {
    const { type, at, ...more } = shown;
    if (!names.has(type)) return [];
    const event = {
      tenantId,
      id: idFor(at, tenantId, instanceId, String(version), String(index)),
      pattern: type,
      payload: { ...more, at: at.toISOString() } as Json,
      occurredAt: at,
      receivedAt: writtenAt,
      actor: `instance:${instanceId}`,
    };
    return { event, workflowId, shown };
  });
}

const tenantsOf = (told: readonly Told[]) => [...new Set(told.map(({ event }) => event.tenantId))];

/** Those that somebody may be waiting for: all others need no row. */
async function heardEvents(db: Db, told: readonly Told[]): Promise<readonly NewLifecycleEvent[]> {
  if (told.length === 0) return [];
  const shapes = await lifecycleShapes(db, tenantsOf(told));
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

async function deliveriesOf(db: Db, told: readonly Told[]): Promise<readonly NewDelivery[]> {
  if (told.length === 0) return [];
  const webhooks = await webhooksOf(db, tenantsOf(told));
  return webhooks.flatMap(({ tenantId, id: webhookId, types, workflowIds }) =>
    told
      .filter(({ event }) => event.tenantId === tenantId)
      .filter(({ workflowId }) => workflowIds === null || workflowIds.includes(workflowId))
      .filter(({ event }) => types.some((type) => patternMatches(type, event.pattern)))
      .map(({ event, shown }) => ({
        tenantId,
        webhookId,
        eventId: event.id,
        body: JSON.stringify(shown),
        writtenAt: event.receivedAt,
      })),
  );
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
