import type { DatabaseHandle } from "@millrace/store";
import type { Log } from "@millrace/telemetry";
import { startLoop } from "./loop.ts";

/**
 * The database's clock, as seen from here. Decisions are timed by it, so that hosts whose clocks differ
 * agree, and no timer comes due early (PROMISES P6): the estimate is never behind the database, and at
 * most one round trip ahead. Where one of the clocks jumps (a machine that was suspended, a time of day that
 * was set) it follows within a second, or ten where only the database's host knows of it.
 */
export interface Clock {
  now(): Date;
  close(): Promise<void>;
}

const resampleMs = 10_000;
const lookMs = 1_000;
/** Samples kept; the one with the shortest round trip counts. */
const mostSamples = 8;
/** The database tells whole milliseconds, and clocks drift. */
const slackMs = 5;

/** One reading of the database's clock against this process's own, which never jumps. */
export interface ClockSample {
  /** Errs ahead, by the round trip at most: the time is read after the question was sent. */
  readonly offsetMs: number;
  readonly roundTripMs: number;
}

export async function openClock(database: DatabaseHandle, log: Log): Promise<Clock> {
  let samples: readonly ClockSample[] = [];
  let sampledAt = 0;
  let aheadMs = 0;

  async function sample(): Promise<void> {
    const sentAt = performance.now();
    const { now } = await database.now();
    const roundTripMs = performance.now() - sentAt;
    const offsetMs = now.getTime() - (performance.timeOrigin + sentAt);
    samples = withSample(samples, { offsetMs, roundTripMs });
    sampledAt = performance.now();
    aheadMs = hostAheadMs();
  }

  for (let count = 0; count < 3; count++) await sample();
  const loop = startLoop({ name: "clock", log, maxDelayMs: lookMs }, async () => {
    const isOld = performance.now() - sampledAt >= resampleMs;
    if (isOld || Math.abs(hostAheadMs() - aheadMs) > slackMs) await sample();
    return lookMs;
  });

  return {
    now() {
      const offsetMs = bestOffsetMs(samples);
      return new Date(Math.ceil(performance.timeOrigin + performance.now() + offsetMs));
    },
    close: () => loop.stop(),
  };
}

/**
 * How far the host's time of day has moved against the clock of this process: it does when the machine
 * was suspended, and when its time was set.
 */
function hostAheadMs(): number {
  return Date.now() - (performance.timeOrigin + performance.now());
}

/**
 * A sample that those before it cannot explain tells that one of the clocks has jumped: what they say
 * does not hold any more, however short their round trips were.
 */
export function withSample(
  samples: readonly ClockSample[],
  latest: ClockSample,
): readonly ClockSample[] {
  return [...samples.filter((each) => agree(each, latest)), latest].slice(-mostSamples);
}

/** Each says between which two offsets the true one lies. */
function agree(one: ClockSample, other: ClockSample): boolean {
  return (
    one.offsetMs - one.roundTripMs <= other.offsetMs + slackMs &&
    other.offsetMs - other.roundTripMs <= one.offsetMs + slackMs
  );
}

export function bestOffsetMs(samples: readonly ClockSample[]): number {
  return samples.reduce((a, b) => (b.roundTripMs < a.roundTripMs ? b : a)).offsetMs;
}
