import { eventSatisfies, mergeReads, noReads } from "@millrace/engine";
import type { EventFact } from "@millrace/engine";
import type { StoredEvent, WaitCandidate } from "@millrace/store";
import { loadRows } from "./load-rows.ts";
import type { Services } from "./services.ts";

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
