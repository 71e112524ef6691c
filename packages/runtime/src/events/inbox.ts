import type { Signal } from "@millrace/engine";
import { triggerPath } from "@millrace/engine";
import type { MatchedWait } from "@millrace/store";

/** Matched waits as signals: a cancel goes before whatever else the same moment brought. */
export function signalsOf(inbox: readonly MatchedWait[]): readonly Signal[] {
  return inbox.map(({ path, iteration, event }) =>
    path === triggerPath
      ? { kind: "cancelTriggered", trigger: iteration, event }
      : { kind: "eventMatched", path, iteration, event },
  );
}
