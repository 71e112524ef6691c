import { DEFINITIONS } from "../definitions.ts";
import type { Finding } from "../oracle.ts";
import type { RunRecord } from "../record.ts";
import { groupBy } from "./evidence.ts";

/**
 * P10: never do more instances of a workflow run than its limit allows, by what their tasks have told.
 * That no slot leaks shows in that all come to their end (P12), and in that no row of one is left.
 */
export function checkLimits(record: RunRecord): readonly Finding[] {
  return DEFINITIONS.flatMap(({ id, concurrency }) =>
    concurrency === undefined ? [] : crowds(id, concurrency.limit, spansOf(record, id)),
  );
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
function spansOf({ instances, entries }: RunRecord, workflowId: string): readonly Span[] {
  const ids = new Set(
    instances.flatMap(({ view }) => (view.workflowId === workflowId ? view.id : [])),
  );
  const own = entries.filter(({ instance }) => ids.has(instance));
  return [...groupBy(own, ({ idempotencyKey }) => idempotencyKey).values()].flatMap((told) => {
    const [begun] = told.filter(({ details }) => details["kind"] === "run");
    const [ended] = told.filter(({ details }) => details["kind"] === "outcome");
    if (begun === undefined || ended === undefined) return [];
    const { instance, receivedAt: from } = begun;
    return [{ instance, from, to: ended.receivedAt }];
  });
}

function crowds(workflowId: string, limit: number, spans: readonly Span[]): readonly Finding[] {
  return spans.flatMap(({ from }): readonly Finding[] => {
    const beside = spans.filter((other) => other.from <= from && from < other.to);
    const running = [...new Set(beside.map(({ instance }) => instance))];
    if (running.length <= limit) return [];
    const at = new Date(from).toISOString();
    return [["P10", `${running.join(", ")} of ${workflowId} ran at ${at}, and ${limit} may`]];
  });
}
