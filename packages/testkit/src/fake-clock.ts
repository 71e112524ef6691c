/** A clock that stands still until it is moved. */
export interface FakeClock {
  /** A new Date each time, so that nobody moves the clock by changing what it said. */
  now(): Date;
  advance(ms: number): void;
  set(time: Date | string): void;
}

export function fakeClock(start: Date | string = "2026-01-01T00:00:00.000Z"): FakeClock {
  let time = new Date(start).getTime();
  return {
    now: () => new Date(time),
    advance: (ms) => {
      time += ms;
    },
    set: (next) => {
      time = new Date(next).getTime();
    },
  };
}
