import { executionKey, executionOfWait, payloadEqualities } from "@millrace/engine";
import type { TimerKind } from "@millrace/engine";
import { findPastEvents, markLookedBack, matchPast, openLookbacks, takeOne } from "@millrace/store";
import type { Key, LookbackWait, PastEvent } from "@millrace/store";
import { nudge } from "../nudge.ts";
import type { Services } from "../services.ts";
import { satisfies } from "./satisfies.ts";

/**
 * The other half of commit-then-look: waits that have opened look for events that came before them, in
 * a statement of its own after the commit that opened them, oldest event first. Whoever finds one of them with an event
 * before it has looked back, looks for it first.
 */
export async function lookBack(services: Services, key: Key): Promise<void> {
  const waits = await openLookbacks(services.database.db, key);
  for (const group of await lookbackGroups(services, waits)) await lookBackFor(services, group);
}

/** Clocks that close waits: only once those have looked back, so that no event is overlooked. */
export const takesWaits: ReadonlySet<TimerKind> = new Set(["wait", "total", "timeout"]);

/** Waits of which one event takes all: one, or those for the first of several events. */
type LookbackGroup = readonly [LookbackWait, ...LookbackWait[]];

async function lookbackGroups(
  services: Services,
  waits: readonly LookbackWait[],
): Promise<readonly LookbackGroup[]> {
  const groups = new Map<string, [LookbackWait, ...LookbackWait[]]>();
  for (const wait of waits) {
    const { tenantId, instanceId, iteration } = wait;
    const path = (await isForAny(services, wait)) ? executionOfWait(wait.path).path : wait.path;
    const name = `${tenantId}/${instanceId}/${executionKey(path, iteration)}`;
    const others = groups.get(name);
    if (others === undefined) groups.set(name, [wait]);
    else others.push(wait);
  }
  return [...groups.values()];
}

async function isForAny(services: Services, { stepId, snapshot }: LookbackWait): Promise<boolean> {
  const { tenantId, workflowId, workflowVersion } = snapshot;
  const { definition } = await services.definitions.get(tenantId, workflowId, workflowVersion);
  const current = stepId === null ? undefined : definition.steps.get(stepId);
  return current?.type === "EVENT_WAIT" && current.mode === "ANY";
}

/** Takes the oldest event that satisfies one of them; of two waits for it the first has it. */
async function lookBackFor(services: Services, group: LookbackGroup): Promise<void> {
  const { db } = services.database;
  const searches = await Promise.all(
    group.map(async (wait) => {
      const events = pastEvents(services, wait);
      return { wait, events, next: await nextOf(events) };
    }),
  );
  let taken: PastEvent | undefined;
  while (taken === undefined) {
    const [oldest] = searches
      .flatMap((search) => (search.next === undefined ? [] : { search, event: search.next }))
      .toSorted((one, other) => byAge(one.event, other.event));
    if (oldest === undefined) break;
    const { search, event } = oldest;
    if (await takePast(services, event, search.wait)) taken = event;
    else search.next = await nextOf(search.events);
  }
  for (const wait of group) await markLookedBack(db, wait);
  if (taken !== undefined) await nudge(services, taken, [group[0].instanceId]);
}

function byAge(one: PastEvent, other: PastEvent): number {
  const apart = one.receivedMicros - other.receivedMicros;
  if (apart !== 0 || one.id === other.id) return apart;
  return one.id < other.id ? -1 : 1;
}

function takePast({ database }: Services, event: PastEvent, wait: LookbackWait): Promise<boolean> {
  const { db } = database;
  return wait.deliver === "ONE" ? takeOne(db, event, wait) : matchPast(db, event, wait);
}

/** Events looked at per statement. */
const pageSize = 100;

/** Those that satisfy the wait, the oldest first. */
async function* pastEvents(services: Services, wait: LookbackWait): AsyncGenerator<PastEvent> {
  const { db } = services.database;
  const equalities = await equalitiesOf(services, wait);
  if (equalities === undefined) return;
  let after: PastEvent | undefined;
  for (;;) {
    const events = await findPastEvents(db, wait, { after, limit: pageSize, equalities });
    for (const event of events) if (await satisfies(services, event, wait)) yield event;
    after = events.at(-1);
    if (after === undefined || events.length < pageSize) return;
  }
}

async function nextOf(events: AsyncGenerator<PastEvent>): Promise<PastEvent | undefined> {
  const next = await events.next();
  return next.done === true ? undefined : next.value;
}

/** The wait's key as what an event's payload must contain, so that an index finds it. */
async function equalitiesOf(services: Services, wait: LookbackWait) {
  const { tenantId, workflowId, workflowVersion } = wait.snapshot;
  const { definition } = await services.definitions.get(tenantId, workflowId, workflowVersion);
  return payloadEqualities(definition, wait.snapshot, wait, services.clock.now());
}
