import { eventKeyOf } from "@millrace/engine";
import type { EventFact } from "@millrace/engine";
import { keyHashOf } from "@millrace/store";
import type { ListenerShape, WaitProbe } from "@millrace/store";

/** What to look up, for each pattern that is listened to and the event paths by which it is keyed. */
export function probesOf(shapes: readonly ListenerShape[], event: EventFact): readonly WaitProbe[] {
  return shapes.flatMap(({ pattern, eventPaths }) => {
    const key = eventKeyOf(event, eventPaths === "" ? [] : eventPaths.split(" "));
    const keyHash = key === undefined ? null : keyHashOf(key);
    return keyHash === null ? [] : [{ pattern, eventPaths, keyHash }];
  });
}
