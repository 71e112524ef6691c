import { createHash } from "node:crypto";
import { v7 } from "uuid";

/** A UUIDv7 whose milliseconds are `at`: ids sort by the time of creation (CONTRACT 3). */
export function newInstanceId(at: Date): string {
  return v7({ msecs: at.getTime() });
}

/** The same for the same names: what is made under it is made once, whoever does it. */
export function instanceIdFor(at: Date, ...names: readonly string[]): string {
  const random = createHash("sha256").update(JSON.stringify(names)).digest();
  return v7({ msecs: at.getTime(), random });
}

export function newEventId(): string {
  return v7();
}

export function newWorkerId(): string {
  return v7();
}
