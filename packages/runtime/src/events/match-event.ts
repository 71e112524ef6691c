import { candidatePatterns, executionKey, executionOfWait } from "@millrace/engine";
import { findWaits, markMatched, takeOne } from "@millrace/store";
import type { EventCounts, StoredEvent, WaitCandidate, WaitProbe } from "@millrace/store";
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
  const [only] = first;
  const isPlain = first.length === 1 && only?.deliver === "ALL" && only.lookedBack;
  const found = isPlain
    ? await matchOnly(services, event, only, started)
    : await matchSeveral({
        services,
        event,
        probes,
        few: first.length < pageSize ? first : undefined,
        started,
      });
  const { delivered, cancelled, instanceIds, counts } = found;
  services.metrics.eventsMatched.add({ effect: "delivered" }, delivered);
  services.metrics.eventsMatched.add({ effect: "cancelled" }, cancelled);
  await nudge(services, event, instanceIds);
  return { ...(counts ?? { delivered, cancelled, started }), rejected };
}

interface Found {
  readonly delivered: number;
  readonly cancelled: number;
  /** Those that have something to apply. */
  readonly instanceIds: readonly string[];
  /** All that the event has come to, whoever matched it; undefined where there is no such event. */
  readonly counts: EventCounts | undefined;
}

/** As most events have it: with one candidate, taking the wait and noting that are one statement. */
async function matchOnly(
  services: Services,
  event: StoredEvent,
  wait: WaitCandidate,
  started: number,
): Promise<Found> {
  const { intake } = services;
  const { tenantId, id } = event;
  const { isTaken, counts } = (await satisfies(services, event, wait))
    ? await intake.deliver({ event, wait, started })
    : {
        isTaken: false,
        counts: await intake.settle({ tenantId, id, delivered: 0, cancelled: 0, started }),
      };
  return {
    delivered: isTaken && wait.purpose === "STEP" ? 1 : 0,
    cancelled: isTaken && wait.purpose === "CANCEL" ? 1 : 0,
    instanceIds: isTaken ? [wait.instanceId] : [],
    counts,
  };
}

async function matchSeveral(matching: Matching): Promise<Found> {
  const { services, event, started } = matching;
  const triggers = await matchAll(matching, "CANCEL", new Set());
  const cancelledIds = new Set(triggers.map(({ instanceId }) => instanceId));
  const waits = await matchAll(matching, "STEP", cancelledIds);
  const delivered = new Set(waits.map(nameOf)).size;
  const cancelled = cancelledIds.size;
  const { tenantId, id } = event;
  const counts = await services.intake.settle({ tenantId, id, delivered, cancelled, started });
  const instanceIds = [...cancelledIds, ...waits.map(({ instanceId }) => instanceId)];
  return { delivered, cancelled, instanceIds, counts };
}

interface Matching {
  readonly services: Services;
  readonly event: StoredEvent;
  readonly probes: readonly WaitProbe[];
  /** All candidates of both purposes, where they fit into a page. */
  readonly few: readonly WaitCandidate[] | undefined;
  /** Instances that the event has started. */
  readonly started: number;
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
