/** What the clocks of a time zone show. Times are milliseconds: of UTC, or of the wall as if it were UTC. */
export interface ZoneClock {
  wallAt(at: number): number;
  /**
   * The first moment at which the clocks have reached `wall`. Where they are set forward past it, that is
   * the moment at which they are set; of a time that they show twice it is the first.
   */
  firstAt(wall: number): number;
}

const day = 86_400_000;

export function zoneClock(timeZone: string): ZoneClock {
  const format = new Intl.DateTimeFormat("en-US", { timeZone, timeZoneName: "longOffset" });
  const offsetAt = (at: number) => offsetOf(format.format(at));
  /** At the beginnings of UTC days: one working day after the other asks for the same ones. */
  const offsets = new Map<number, number>();
  const offsetAtMidnight = (at: number) => {
    const known = offsets.get(at);
    const offset = known ?? offsetAt(at);
    if (known === undefined) offsets.set(at, offset);
    return offset;
  };

  return {
    wallAt: (at) => at + offsetAt(at),
    firstAt(wall) {
      // No zone is a whole day from UTC.
      const midnight = Math.floor(wall / day) * day;
      const before = offsetAtMidnight(midnight - day);
      const after = offsetAtMidnight(midnight + 2 * day);
      if (before === after || offsetAt(wall - before) === before) return wall - before;
      if (offsetAt(wall - after) === after) return wall - after;
      return firstWhere(wall - after, wall - before, (at) => offsetAt(at) === after);
    },
  };
}

/** The offset that ends a text such as `11/28/2026, GMT+05:30`; of UTC itself there is none. */
function offsetOf(text: string): number {
  const [, sign, hours, minutes, seconds = "0"] =
    /GMT([+-])(\d\d):(\d\d)(?::(\d\d))?$/.exec(text) ?? [];
  if (sign === undefined) return 0;
  const size = (Number(hours) * 60 + Number(minutes)) * 60_000 + Number(seconds) * 1_000;
  return sign === "-" ? -size : size;
}

/** @returns The least of the numbers above `low` up to `high` for which it holds, as it does for `high`. */
function firstWhere(low: number, high: number, holds: (at: number) => boolean): number {
  let fails = low;
  let least = high;
  while (least - fails > 1) {
    const middle = Math.floor((fails + least) / 2);
    if (holds(middle)) least = middle;
    else fails = middle;
  }
  return least;
}
