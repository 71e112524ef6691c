import { findPastEvents, markLookedBack, markMatched, openLookbacks, takeOne } from "@millrace/store";
import type { Key, LookbackWait } from "@millrace/store";
import { nudge, satisfies } from "./match-event.ts";
import type { Services } from "./services.ts";

/**
 * The other half of commit-then-look: waits that have opened look for events that came before them, in
 * a statement of its own after the commit that opened them, oldest event first.
 */
export async function lookBack(services: Services, key: Key): Promise<void> {
  const { db } = services.database;
  for (const wait of await openLookbacks(db, key)) await lookBackFor(services, wait);
}

export async function lookBackFor(services: Services, wait: LookbackWait): Promise<void> {
  const { db } = services.database;
  let after: Awaited<ReturnType<typeof findPastEvents>>[number] | undefined;
  for (;;) {
    const events = await findPastEvents(db, wait, { after, limit: 100 });
    for (const event of events) {
      if (!(await satisfies(services, event, wait))) continue;
      const won =
        wait.deliver === "ONE"
          ? await takeOne(db, event, wait)
          : (await markMatched(db, event, [wait])).length > 0;
      if (won) {
        await markLookedBack(db, wait);
        await nudge(services, event, [wait.instanceId]);
        return;
      }
    }
    after = events.at(-1);
    if (after === undefined || events.length < 100) break;
  }
  await markLookedBack(db, wait);
}
