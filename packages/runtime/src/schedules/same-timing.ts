import { canonicalJson } from "@millrace/store";
import type { StoredScheduleDocument } from "@millrace/store";

/** Whether both tick at the same times: then a change of the rest moves no tick. */
export function sameTiming(one: StoredScheduleDocument, other: StoredScheduleDocument): boolean {
  return timingText(one) === timingText(other);
}

function timingText({ type, timing, dst, jitter }: StoredScheduleDocument): string {
  return canonicalJson({ type, timing, dst: dst ?? null, jitter: jitter ?? null });
}
