import { candidatePatterns, eventKeyOf } from "@millrace/engine";
import type { EventFact } from "@millrace/engine";
import { findWaits, keyHashOf, markMatched, takeOne } from "@millrace/store";
import type { StoredEvent, WaitCandidate, WaitProbe } from "@millrace/store";
import { pageSize } from "./event-intake.ts";
import { nudge } from "./nudge.ts";
import { factOf, satisfies } from "./satisfies.ts";
import type { Services } from "./services.ts";
import { startTriggered } from "./start-triggered.ts";
import type { RejectedStart } from "./start-triggered.ts";

/**
 * Finds the waits and cancellation triggers that an event satisfies, and marks them. What follows for
 * their instances is a worker's business, never the publisher's.
 */

export interface Matched {
  /** Waits that the event satisfied. */
  readonly delivered: number;
  /** Instances that it cancels. */
  readonly cancelled: number;
  /** Instances that it started. */
  readonly started: number;
  readonly rejected: readonly RejectedStart[];
}

export async function matchEvent(services: Services, event: StoredEvent): Promise<Matched> {
  const patterns = candidatePatterns(event.pattern);
  const fact = factOf(event);
  const shapes = await services.intake.shapes(event.tenantId, patterns);
  const probes = probesOf(shapes.waits, fact);
  // Most events have few candidates, and one look finds those of both kinds.
  const [first, { started, rejected }] = await Promise.all([
    services.intake.find({ event, patterns, probes }),
    startTriggered(services, event, patterns, probesOf(shapes.starts, fact)),
  ]);
  const few = first.length < pageSize ? first : undefined;
  const matching = { services, event, patterns, probes, few };

  const cancelled = new Set(await matchAll(matching, "CANCEL", new Set()));
  const waits = await matchAll(matching, "STEP", cancelled);
  const { tenantId, id } = event;
  const found = { delivered: waits.length, cancelled: cancelled.size, started };
  const counts = await services.intake.settle({ tenantId, id, ...found });
  services.metrics.eventsMatched.add({ effect: "delivered" }, waits.length);
  services.metrics.eventsMatched.add({ effect: "cancelled" }, cancelled.size);
  await nudge(services, event, [...cancelled, ...waits]);
  return { ...(counts ?? found), rejected };
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

/** What to look up, for each set of event paths by which waits of these patterns are keyed. */
function probesOf(shapes: readonly string[], event: EventFact): readonly WaitProbe[] {
  return shapes.flatMap((eventPaths) => {
    const key = eventKeyOf(event, eventPaths === "" ? [] : eventPaths.split(" "));
    const keyHash = key === undefined ? null : keyHashOf(key);
    return keyHash === null ? [] : [{ eventPaths, keyHash }];
  });
}
