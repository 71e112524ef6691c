/** What this package asks of a logger; that of `@millrace/telemetry` fits. */
export interface QueueLog {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

const quietMs = 60_000;
const remembered = 100;

/**
 * Logs a recurring trouble once a minute with the number of times it came, so that a Redis that
 * refuses every command does not fill the disk with saying so.
 */
export class TroubleLog {
  readonly #log: QueueLog;
  readonly #seen = new Map<string, { at: number; count: number }>();

  constructor(log: QueueLog) {
    this.#log = log;
  }

  warn(fields: object, message: string, trouble: string): void {
    const now = performance.now();
    const seen = this.#seen.get(trouble);
    if (seen && now - seen.at < quietMs) {
      seen.count += 1;
      return;
    }
    if (this.#seen.size >= remembered) this.#seen.clear();
    this.#seen.set(trouble, { at: now, count: 0 });
    this.#log.warn({ ...fields, trouble, ...(seen && { repeated: seen.count }) }, message);
  }
}
