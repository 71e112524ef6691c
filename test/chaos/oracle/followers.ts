import { followedBy } from "../definitions.ts";
import type { Finding } from "../oracle.ts";
import type { RunRecord } from "../record.ts";
import { groupBy, isAccepted } from "./evidence.ts";

/**
 * P4 for lifecycle events: whoever was registered to be started by the end of others is started by each of them, once,
 * and by nothing else.
 */
export function checkFollowers({ requests, instances }: RunRecord): readonly Finding[] {
  const isRegistered = requests.some(
    (each) => each.operation === "register" && each.subject === "follower" && isAccepted(each),
  );
  if (!isRegistered) return [];
  const views = instances.map(({ view }) => view);
  const followers = groupBy(
    views.filter(({ workflowId }) => workflowId === "follower"),
    ({ correlationId }) => correlationId,
  );
  return views
    .filter(({ workflowId }) => workflowId === "map")
    .flatMap(({ id, status, correlationId }): readonly Finding[] => {
      const started = followers.get(followedBy(correlationId ?? "")) ?? [];
      const due = status === "COMPLETED" ? 1 : 0;
      if (started.length === due) return [];
      return [["P4", `${id} is ${status}, and its end has started ${started.length}`]];
    });
}
