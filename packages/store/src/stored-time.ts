// What both Postgres and ISO 8601 with four digits can say, so that it can be written back.
const first = "0001-01-01T00:00:00Z";
const last = "9999-12-31T23:59:59.999Z";
const firstTime = Date.parse(first);
const lastTime = Date.parse(last);

/** SQL: a time by which others can be reckoned; to take an infinite one from another is an error. */
export function reckonable(column: string): string {
  return `least(greatest(${column}, '${first}'), '${last}')`;
}

/** SQL: whether a time is one that we never write. */
export function isForeignTime(column: string): string {
  return `coalesce(${column} not between '${first}' and '${last}', false)`;
}

/**
 * `2026-01-31 12:00:00.123456+00`, of which milliseconds are kept: several times faster than the driver. What we never
 * write and somebody else has, `infinity` or the year 294276, is the last time that we could have written, or the
 * first: who reads it finds it wrong, and does not break on it.
 */
export function parseTime(text: string): Date {
  return within(new Date(`${text.slice(0, 10)}T${text.slice(11, -3)}Z`), text);
}

/** The same of a time in a row that came as JSON. */
export function timeOfJson(text: string): Date {
  return within(new Date(text), text);
}

function within(time: Date, text: string): Date {
  const ms = time.getTime();
  if (ms >= firstTime && ms <= lastTime) return time;
  return new Date(/^-|BC$/.test(text) ? firstTime : lastTime);
}
