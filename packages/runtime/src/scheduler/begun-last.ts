import type { Lapsed } from "@millrace/store";

/** Steps that began no longer than this before the last one began about when it did. */
const momentMs = 100;
/** With more of them nothing tells which one it was. */
const mostLikely = 2;

/**
 * Of steps whose workers are gone, those that are likeliest to have ended them: what each worker began last, under which
 * none has died before. A task that ends its process mostly does so soon.
 */
export function begunLast<Step extends Pick<Lapsed, "heldBy" | "startedAt" | "lapses">>(
  steps: readonly Step[],
): ReadonlySet<Step> {
  const workers = new Set(steps.map(({ heldBy }) => heldBy));
  return new Set([...workers].flatMap((id) => lastOf(steps.filter((each) => each.heldBy === id))));
}

function lastOf<Step extends Pick<Lapsed, "startedAt" | "lapses">>(
  held: readonly Step[],
): readonly Step[] {
  const lastAt = Math.max(...held.map(({ startedAt }) => startedAt.getTime()));
  const last = held.filter(({ startedAt }) => lastAt - startedAt.getTime() <= momentMs);
  return last.length <= mostLikely ? last.filter(({ lapses }) => lapses === 1) : [];
}
