import type { Finding } from "../oracle.ts";
import type { RunRecord } from "../record.ts";
import { groupBy } from "./evidence.ts";

/**
 * CONTRACT 3: whoever follows, and comes back behind the last event whenever cut off, is told each change of
 * each instance, once, in the order of its history.
 */
export function checkStreams({ streamed, instances }: RunRecord): readonly Finding[] {
  if (streamed === undefined) return [];
  const told = groupBy(streamed, ({ instanceId }) => instanceId);
  return instances.flatMap(({ view, history }): readonly Finding[] => {
    const due = history.map(nameOf);
    const heard = (told.get(view.id) ?? []).map(nameOf);
    const place = Array.from({ length: Math.max(due.length, heard.length) }).findIndex(
      (_, index) => due[index] !== heard[index],
    );
    if (place < 0) return [];
    const what = `${view.id}: the stream told ${heard[place] ?? "nothing"} where ${due[place] ?? "nothing"} was due`;
    return [["stream", what]];
  });
}

function nameOf(change: { readonly version?: number | undefined; readonly type: string }): string {
  return `${change.type} of version ${change.version}`;
}
