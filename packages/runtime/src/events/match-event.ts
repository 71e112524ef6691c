import { candidatePatterns, executionKey, executionOfWait } from "@millrace/engine";
import { findWaits, markMatched, takeOne } from "@millrace/store";
import type { StoredEvent, WaitCandidate, WaitProbe } from "@millrace/store";
import { nudge } from "../nudge.ts";
import { probesOf } from "../probes.ts";
import type { Services } from "../services.ts";
import { pageSize } from "./event-intake.ts";
import { lookBack } from "./look-back.ts";
import { factOf, satisfies } from "./satisfies.ts";
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
  const fact = factOf(event);
  const shapes = await services.intake.shapes(event.tenantId, candidatePatterns(event.pattern));
  const probes = probesOf(shapes.waits, fact);
  // Most events have few candidates, and one look finds those of both kinds.
  const [first, { started, rejected }] = await Promise.all([
    services.intake.find({ event, probes }),
    startTriggered(services, event, probesOf(shapes.starts, fact)),
  ]);
  const few = first.length < pageSize ? first : undefined;
  const matching = { services, event, probes, few };

  const triggers = await matchAll(matching, "CANCEL", new Set());
  const cancelled = new Set(triggers.map(({ instanceId }) => instanceId));
  const waits = await matchAll(matching, "STEP", cancelled);
  const { tenantId, id } = event;
  const delivered = new Set(waits.map(nameOf)).size;
  const found = { delivered, cancelled: cancelled.size, started };
  const counts = await services.intake.settle({ tenantId, id, ...found });
  services.metrics.eventsMatched.add({ effect: "delivered" }, delivered);
  services.metrics.eventsMatched.add({ effect: "cancelled" }, cancelled.size);
  await nudge(services, event, [...cancelled, ...waits.map(({ instanceId }) => instanceId)]);
  return { ...(counts ?? found), rejected };
}

interface Matching {
  readonly services: Services;
  readonly event: StoredEvent;
  readonly probes: readonly WaitProbe[];
  /** All candidates of both purposes, where they fit into a page. */
  readonly few: readonly WaitCandidate[] | undefined;
}

/** A wait for several events is one wait, though the event may be more than one of them. */
function nameOf({ instanceId, path, iteration }: WaitCandidate): string {
  return `${instanceId}/${executionKey(executionOfWait(path).path, iteration)}`;
}

/** Those that got the event. */
async function matchAll(
  { services, event, probes, few }: Matching,
  purpose: "STEP" | "CANCEL",
  except: ReadonlySet<string>,
): Promise<readonly WaitCandidate[]> {
  const { db } = services.database;
  const won: WaitCandidate[] = [];
  let after: WaitCandidate | undefined;
  let oneTaken = event.takenBy !== null;
  for (;;) {
    const page =
      few?.filter((wait) => wait.purpose === purpose) ??
      (await findWaits(db, { event, probes, purpose, after, limit: pageSize }));
    const satisfied: WaitCandidate[] = [];
    for (const wait of page) {
      if (except.has(wait.instanceId) || !(await satisfies(services, event, wait))) continue;
      // Else this one would go before older ones.
      if (!wait.lookedBack) await lookBack(services, wait);
      if (wait.deliver === "ALL") satisfied.push(wait);
      else if (!oneTaken && (await takeOne(db, event, wait))) {
        oneTaken = true;
        won.push(wait);
      }
    }
    won.push(...(await takeAll(services, event, satisfied)));
    after = page.at(-1);
    if (page.length < pageSize || after === undefined) break;
  }
  return won;
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
