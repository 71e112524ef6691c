import { DEFINITIONS } from "../definitions.ts";
import { crowd } from "../load-plan.ts";
import type { Finding } from "../oracle.ts";
import type { InstanceRecord, RunRecord } from "../record.ts";
import { groupBy } from "./evidence.ts";

/**
 * P10: never do more instances of a workflow, or of a user, run than their limit allows, by what their tasks have told.
 * That no slot leaks shows in that all come to their end (P12), and in that no row of one is left.
 */
export function checkLimits(record: RunRecord): readonly Finding[] {
  const spansOfWorkflow = (id: string) => spansOf(record, ({ workflowId }) => workflowId === id);
  const ofWorkflows = DEFINITIONS.flatMap(({ id, concurrency }) =>
    concurrency === undefined ? [] : crowds(id, concurrency.limit, spansOfWorkflow(id)),
  );
  const ofUser = spansOf(record, ({ userId }) => userId === crowd.userId);
  return [...ofWorkflows, ...crowds(crowd.userId, crowd.limit, ofUser)];
}

/** An instance surely holds its slot meanwhile. */
interface Span {
  readonly instance: string;
  readonly from: number;
  readonly to: number;
}

/**
 * Of each step from the first run that anybody began to the first outcome, which comes before the commit
 * that may give the slot up. What a worker tells later that was fenced off is told by nobody.
 */
function spansOf(
  { instances, entries }: RunRecord,
  isLimited: (view: InstanceRecord["view"]) => boolean,
): readonly Span[] {
  const ids = new Set(instances.flatMap(({ view }) => (isLimited(view) ? view.id : [])));
  // What has ended and compensates holds no slot.
  const own = entries.filter(
    ({ instance, step }) => ids.has(instance) && !step.startsWith("undo_"),
  );
  return [...groupBy(own, ({ idempotencyKey }) => idempotencyKey).values()].flatMap((told) => {
    const [begun] = told.filter(({ details }) => details["kind"] === "run");
    const [ended] = told.filter(({ details }) => details["kind"] === "outcome");
    if (begun === undefined || ended === undefined) return [];
    const { instance, receivedAt: from } = begun;
    return [{ instance, from, to: ended.receivedAt }];
  });
}

function crowds(whose: string, limit: number, spans: readonly Span[]): readonly Finding[] {
  return spans.flatMap(({ from }): readonly Finding[] => {
    const beside = spans.filter((other) => other.from <= from && from < other.to);
    const running = [...new Set(beside.map(({ instance }) => instance))];
    if (running.length <= limit) return [];
    const at = new Date(from).toISOString();
    return [["P10", `${running.join(", ")} of ${whose} ran at ${at}, and ${limit} may`]];
  });
}
