import { canonicalJson } from "@millrace/store";
import type { StoredScheduleDocument } from "@millrace/store";

/** Whether both tick at the same times: then a change of the rest moves no tick. */
export function sameTiming(one: StoredScheduleDocument, other: StoredScheduleDocument): boolean {
  return timingText(one) === timingText(other);
}

function timingText(document: StoredScheduleDocument): string {
  const { type, timing, dst = null, jitter = null, calendarId = null } = document;
  return canonicalJson({ type, timing, dst, jitter, calendarId });
}
