import type { DatabaseHandle } from "@millrace/store";
import type { Log } from "@millrace/telemetry";
import { startLoop } from "./loop.ts";

/**
 * The database's clock, as seen from here. Decisions are timed by it, so that hosts whose clocks differ
 * agree, and no timer comes due early (PROMISES P6): the estimate is never behind the database, and at
 * most one round trip ahead.
 */
export interface Clock {
  now(): Date;
  close(): Promise<void>;
}

const resampleMs = 10_000;
/** Samples kept; the one with the shortest round trip counts. */
const samples = 8;

export async function openClock(database: DatabaseHandle, log: Log): Promise<Clock> {
  const offsets: { readonly offsetMs: number; readonly roundTripMs: number }[] = [];

  /** The database's time is read after the question was sent, so this errs ahead, never behind. */
  async function sample(): Promise<number> {
    const sentAt = performance.now();
    const { now } = await database.now();
    const roundTripMs = performance.now() - sentAt;
    const offsetMs = now.getTime() - (performance.timeOrigin + sentAt);
    offsets.push({ offsetMs, roundTripMs });
    if (offsets.length > samples) offsets.shift();
    return resampleMs;
  }

  for (let count = 0; count < 3; count++) await sample();
  const loop = startLoop({ name: "clock", log, maxDelayMs: resampleMs }, sample);

  return {
    now() {
      const best = offsets.reduce((a, b) => (b.roundTripMs < a.roundTripMs ? b : a));
      return new Date(Math.ceil(performance.timeOrigin + performance.now() + best.offsetMs));
    },
    close: () => loop.stop(),
  };
}
