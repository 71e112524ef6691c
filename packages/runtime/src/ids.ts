import { v7 } from "uuid";

/** A UUIDv7 whose milliseconds are `at`: ids sort by the time of creation (CONTRACT 3). */
export function newInstanceId(at: Date): string {
  return v7({ msecs: at.getTime() });
}

export function newEventId(): string {
  return v7();
}

export function newWorkerId(): string {
  return v7();
}
