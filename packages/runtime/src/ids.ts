import { createHash, randomFillSync } from "node:crypto";
import { v7 } from "uuid";

/** A UUIDv7 whose milliseconds are `at`: ids sort by the time of creation (CONTRACT 3). */
export function newInstanceId(at: Date): string {
  return v7({ msecs: at.getTime(), random: randomBytes() });
}

/** The same for the same names: what is made under it is made once, whoever does it. */
export function idFor(at: Date, ...names: readonly string[]): string {
  const random = createHash("sha256").update(JSON.stringify(names)).digest();
  return v7({ msecs: at.getTime(), random });
}

/** Of one process, later ones sort behind earlier ones also within a millisecond, as `v7()` has it. */
export function newEventId(): string {
  const random = randomBytes();
  const msecs = Date.now();
  if (msecs > latest.msecs) latest = { msecs, seq: seqOf(random) };
  else latest.seq += 1;
  return v7({ msecs: latest.msecs, seq: latest.seq, random });
}

let latest = { msecs: 0, seq: 0 };

/** 31 of its 32 bits, so that it can be counted up from. */
function seqOf({ buffer, byteOffset }: Uint8Array): number {
  return new DataView(buffer, byteOffset).getUint32(0) >>> 1;
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
