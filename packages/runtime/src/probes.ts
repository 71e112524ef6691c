import { eventKeyOf } from "@millrace/engine";
import type { EventFact } from "@millrace/engine";
import { keyHashOf } from "@millrace/store";
import type { WaitProbe } from "@millrace/store";

/** What to look up, for each set of event paths by which waits of these patterns are keyed. */
export function probesOf(shapes: readonly string[], event: EventFact): readonly WaitProbe[] {
  return shapes.flatMap((eventPaths) => {
    const key = eventKeyOf(event, eventPaths === "" ? [] : eventPaths.split(" "));
    const keyHash = key === undefined ? null : keyHashOf(key);
    return keyHash === null ? [] : [{ eventPaths, keyHash }];
  });
}
