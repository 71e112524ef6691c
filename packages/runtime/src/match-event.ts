import {
  candidatePatterns,
  eventKeyOf,
  eventSatisfies,
  mergeReads,
  noReads,
} from "@millrace/engine";
import type { EventFact } from "@millrace/engine";
import { findWaits, keyHashOf, markMatched, takeOne } from "@millrace/store";
import type { StoredEvent, WaitCandidate, WaitProbe } from "@millrace/store";
import { pageSize } from "./event-intake.ts";
import { loadRows } from "./load-rows.ts";
import type { Services } from "./services.ts";

/**
 * Finds the waits and cancellation triggers that an event satisfies, and marks them. What follows for
 * their instances is a worker's business, never the publisher's.
 */

export interface Matched {
  /** Waits that the event satisfied. */
  readonly delivered: number;
  /** Instances that it cancels. */
  readonly cancelled: number;
}

export async function matchEvent(services: Services, event: StoredEvent): Promise<Matched> {
  const patterns = candidatePatterns(event.pattern);
  const shapes = await services.intake.shapes(event.tenantId, patterns);
  const probes = probesOf(shapes, factOf(event));
  // Most events have few candidates, and one look finds those of both kinds.
  const first = await services.intake.find({ event, patterns, probes });
  const few = first.length < pageSize ? first : undefined;
  const matching = { services, event, patterns, probes, few };

  const cancelled = new Set(await matchAll(matching, "CANCEL", new Set()));
  const waits = await matchAll(matching, "STEP", cancelled);
  const { tenantId, id } = event;
  const found = { delivered: waits.length, cancelled: cancelled.size };
  const counts = await services.intake.settle({ tenantId, id, ...found, started: 0 });
  services.metrics.eventsMatched.add({ effect: "delivered" }, waits.length);
  services.metrics.eventsMatched.add({ effect: "cancelled" }, cancelled.size);
  await nudge(services, event, [...cancelled, ...waits]);
  return counts ?? found;
}

interface Matching {
  readonly services: Services;
  readonly event: StoredEvent;
  readonly patterns: readonly string[];
  readonly probes: readonly WaitProbe[];
  /** All candidates of both purposes, where they fit into a page. */
  readonly few: readonly WaitCandidate[] | undefined;
}

/** Instance ids of the waits that were won, one entry a wait. Triggers count once an instance. */
async function matchAll(
  { services, event, patterns, probes, few }: Matching,
  purpose: "STEP" | "CANCEL",
  except: ReadonlySet<string>,
): Promise<readonly string[]> {
  const { db } = services.database;
  const won: string[] = [];
  let after: WaitCandidate | undefined;
  let oneTaken = event.takenBy !== null;
  for (;;) {
    const page =
      few?.filter((wait) => wait.purpose === purpose) ??
      (await findWaits(db, { event, patterns, probes, purpose, after, limit: pageSize }));
    const satisfied: WaitCandidate[] = [];
    for (const wait of page) {
      if (except.has(wait.instanceId) || !(await satisfies(services, event, wait))) continue;
      if (wait.deliver === "ALL") satisfied.push(wait);
      else if (!oneTaken && (await takeOne(db, event, wait))) {
        oneTaken = true;
        won.push(wait.instanceId);
      }
    }
    const taken = await takeAll(services, event, satisfied);
    won.push(...taken.map(({ instanceId }) => instanceId));
    after = page.at(-1);
    if (page.length < pageSize || after === undefined) break;
  }
  return purpose === "CANCEL" ? [...new Set(won)] : won;
}

/** Few waits travel with those of other events, many are a statement of their own. */
const fewWaits = 5;

async function takeAll(
  { database, intake }: Services,
  event: StoredEvent,
  waits: readonly WaitCandidate[],
): Promise<readonly WaitCandidate[]> {
  if (waits.length > fewWaits) return markMatched(database.db, event, waits);
  const taken = await Promise.all(waits.map((wait) => intake.take({ event, wait })));
  return waits.filter((_wait, index) => taken[index]);
}

/** The whole condition, by the instance's state as it is now. */
export async function satisfies(
  services: Services,
  event: StoredEvent,
  wait: Pick<WaitCandidate, "path" | "iteration" | "stepId" | "snapshot">,
): Promise<boolean> {
  const { snapshot } = wait;
  const { tenantId, workflowId, workflowVersion } = snapshot;
  const { definition } = await services.definitions.get(tenantId, workflowId, workflowVersion);
  const fact = factOf(event);
  let reads = noReads;
  for (;;) {
    const answer = eventSatisfies(definition, snapshot, wait, fact, reads, services.clock.now());
    if (typeof answer === "boolean") return answer;
    const key = { tenantId, instanceId: snapshot.id };
    reads = mergeReads(reads, await loadRows(services.database.db, key, answer.needs));
  }
}

export function factOf({ id, pattern, payload, occurredAt, receivedAt }: StoredEvent): EventFact {
  return {
    id,
    pattern,
    payload,
    occurredAt: occurredAt.toISOString(),
    receivedAt: receivedAt.toISOString(),
  };
}

/** What to look up, for each set of event paths by which waits of these patterns are keyed. */
function probesOf(shapes: readonly string[], event: EventFact): readonly WaitProbe[] {
  return shapes.flatMap((eventPaths) => {
    const key = eventKeyOf(event, eventPaths === "" ? [] : eventPaths.split(" "));
    const keyHash = key === undefined ? null : keyHashOf(key);
    return keyHash === null ? [] : [{ eventPaths, keyHash }];
  });
}

/**
 * Tells workers that these instances have something to apply; if that fails, it is found again.
 *
 * @returns Whether they were told.
 */
export async function nudge(
  { queue, metrics }: Services,
  { tenantId, id }: { readonly tenantId: string; readonly id: string },
  instanceIds: readonly string[],
): Promise<boolean> {
  if (instanceIds.length === 0) return true;
  const jobs = [...new Set(instanceIds)].map((instanceId) => ({
    job: { tenantId, instanceId, cause: id },
    priority: 0,
  }));
  try {
    await queue.addAdvance(jobs);
    return true;
  } catch {
    metrics.enqueueFailures.add({});
    return false;
  }
}
