import { candidatePatterns } from "@millrace/engine";
import {
  findWaits,
  forgetDeliveries,
  forgetRelease,
  releasesOf,
  takeBack,
  takeOne,
} from "@millrace/store";
import type { Key, Release, StoredEvent, WaitCandidate } from "@millrace/store";
import { nudge } from "../nudge.ts";
import { probesOf } from "../probes.ts";
import type { Services } from "../services.ts";
import { pageSize } from "./event-intake.ts";
import { factOf, satisfies } from "./satisfies.ts";

/**
 * An event of `deliver: "ONE"` whose instance could not use it goes to the next that waits for it
 * (DESIGN, Events), and no instance that has settled remembers one. The row that says so stays until
 * that is done: done twice, it is done once.
 */
export async function handOnReleased(services: Services, key: Key): Promise<void> {
  for (const release of await releasesOf(services.database.db, key))
    await handOn(services, release);
}

export async function handOn(services: Services, release: Release): Promise<void> {
  const { db } = services.database;
  const event = await takeBack(db, release);
  if (event !== undefined) await matchOne(services, event);
  await forgetDeliveries(db, release);
  await forgetRelease(db, release);
}

/**
 * Gives an event that is free again to the wait of those that want it for themselves that has waited
 * longest. What it has come to when it was accepted stays as it was counted.
 */
async function matchOne(services: Services, event: StoredEvent): Promise<void> {
  const patterns = candidatePatterns(event.pattern);
  const { waits: shapes } = await services.intake.shapes(event.tenantId, patterns);
  const probes = probesOf(shapes, factOf(event));
  const search = { event, probes, purpose: "STEP", limit: pageSize } as const;
  let after: WaitCandidate | undefined;
  do {
    const page = await findWaits(services.database.db, { ...search, after });
    for (const wait of page.filter(({ deliver }) => deliver === "ONE")) {
      if (!(await satisfies(services, event, wait))) continue;
      if (await takeOne(services.database.db, event, wait)) {
        await nudge(services, event, [wait.instanceId]);
        return;
      }
    }
    after = page.length < pageSize ? undefined : page.at(-1);
  } while (after !== undefined);
}
