import { payloadEqualities } from "@millrace/engine";
import { findPastEvents, markLookedBack, matchPast, openLookbacks, takeOne } from "@millrace/store";
import type { Key, LookbackWait } from "@millrace/store";
import { nudge } from "./nudge.ts";
import { satisfies } from "./satisfies.ts";
import type { Services } from "./services.ts";

/**
 * The other half of commit-then-look: waits that have opened look for events that came before them, in
 * a statement of its own after the commit that opened them, oldest event first.
 */
export async function lookBack(services: Services, key: Key): Promise<void> {
  const { db } = services.database;
  for (const wait of await openLookbacks(db, key)) await lookBackFor(services, wait);
}

/** Events looked at per statement. */
const pageSize = 100;

export async function lookBackFor(services: Services, wait: LookbackWait): Promise<void> {
  const { db } = services.database;
  const equalities = await equalitiesOf(services, wait);
  if (equalities === undefined) return markLookedBack(db, wait);
  let after: Awaited<ReturnType<typeof findPastEvents>>[number] | undefined;
  for (;;) {
    const events = await findPastEvents(db, wait, { after, limit: pageSize, equalities });
    for (const event of events) {
      if (!(await satisfies(services, event, wait))) continue;
      const won =
        wait.deliver === "ONE" ? await takeOne(db, event, wait) : await matchPast(db, event, wait);
      if (won) {
        await markLookedBack(db, wait);
        await nudge(services, event, [wait.instanceId]);
        return;
      }
    }
    after = events.at(-1);
    if (after === undefined || events.length < pageSize) break;
  }
  await markLookedBack(db, wait);
}

/** The wait's key as what an event's payload must contain, so that an index finds it. */
async function equalitiesOf(services: Services, wait: LookbackWait) {
  const { tenantId, workflowId, workflowVersion } = wait.snapshot;
  const { definition } = await services.definitions.get(tenantId, workflowId, workflowVersion);
  return payloadEqualities(definition, wait.snapshot, wait, services.clock.now());
}
