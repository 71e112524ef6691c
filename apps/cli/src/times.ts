/** `34 ms`, `1.2 s`, `3 min 4 s`, `2 h 5 min`, `3 d 4 h`. */
export function durationText(milliseconds: number): string {
  const ms = Math.max(0, Math.round(milliseconds));
  if (ms < 1_000) return `${ms} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1_000);
  if (seconds < 3_600) return pair(Math.floor(seconds / 60), "min", seconds % 60, "s");
  const minutes = Math.floor(seconds / 60);
  if (minutes < 1_440) return pair(Math.floor(minutes / 60), "h", minutes % 60, "min");
  const hours = Math.floor(minutes / 60);
  return pair(Math.floor(hours / 24), "d", hours % 24, "h");
}

function pair(large: number, largeUnit: string, small: number, smallUnit: string): string {
  return small === 0 ? `${large} ${largeUnit}` : `${large} ${largeUnit} ${small} ${smallUnit}`;
}

/** `undefined` unless both times are known. */
export function durationBetween(
  start: string | null | undefined,
  end: string | null | undefined,
): string | undefined {
  if (!start || !end) return undefined;
  return durationText(Date.parse(end) - Date.parse(start));
}

/** `2026-01-31 12:34:56`, in UTC. */
export function timeText(timestamp: string | null): string {
  if (timestamp === null) return "–";
  return new Date(timestamp).toISOString().slice(0, 19).replace("T", " ");
}

/** `12:34:56.789`, in UTC. */
export function clockText(timestamp: string | null): string {
  return timestamp === null ? "" : new Date(timestamp).toISOString().slice(11, 23);
}
