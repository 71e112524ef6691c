import { unmatchedAmong } from "@millrace/store";
import type { EventKey } from "@millrace/store";
import type { Services } from "../services.ts";
import { matchEvent } from "./match-event.ts";

/** Matches events that a commit has stored, those excepted that somebody else has matched already. */
export async function matchEmitted(services: Services, keys: readonly EventKey[]): Promise<void> {
  try {
    const events = await unmatchedAmong(services.database.db, keys);
    await Promise.all(events.map((event) => matchEvent(services, event)));
  } catch (error) {
    services.log.warn({ err: error, events: keys.length }, "emitted events left to the reconciler");
  }
}
