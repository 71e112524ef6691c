import { eventSatisfies } from "@millrace/engine";
import type { EventFact } from "@millrace/engine";
import type { StoredEvent, WaitCandidate } from "@millrace/store";
import { answerLoading } from "../answer.ts";
import { loadRows } from "../load-rows.ts";
import type { Services } from "../services.ts";

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
  const key = { tenantId, instanceId: snapshot.id };
  const { answer } = await answerLoading(
    `instance ${snapshot.id}`,
    (reads) => eventSatisfies(definition, snapshot, wait, fact, reads, services.clock.now()),
    (requests) => loadRows(services.database.db, key, requests),
  );
  return answer;
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
