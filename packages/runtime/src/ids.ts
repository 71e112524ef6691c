import { createHash, randomFillSync } from "node:crypto";
import { v7 } from "uuid";

/** A UUIDv7 whose milliseconds are `at`: ids sort by the time of creation (CONTRACT 3). */
export function newInstanceId(at: Date): string {
  return v7({ msecs: at.getTime(), random: randomBytes() });
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

/** What one id takes. */
const idBytes = 16;

/** Filled for many ids at once: asking for the bytes of each costs 4 µs. */
const pool = new Uint8Array(256 * idBytes);
let used = pool.length;

function randomBytes(): Uint8Array {
  if (used === pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  used += idBytes;
  return pool.subarray(used - idBytes, used);
}
