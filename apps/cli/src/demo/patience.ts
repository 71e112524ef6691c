import { setTimeout as sleep } from "node:timers/promises";
import { MillraceApiError, MillraceConnectionError } from "@millrace/client";

const MOST_TRIES = 12;
const LONGEST_PAUSE_MS = 2_000;

/**
 * Makes a call that may safely be repeated (it has an idempotency key, or an event id) until it is
 * answered: an API that is busy, or that is just being replaced, answers later.
 *
 * @param call Gets the number of the try, from 1.
 */
export async function patiently<T>(call: (attempt: number) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await call(attempt);
    } catch (error) {
      if (attempt >= MOST_TRIES || !isPassing(error)) throw error;
      await sleep(Math.min(100 * 2 ** attempt, LONGEST_PAUSE_MS) * (0.5 + Math.random() / 2));
    }
  }
}

function isPassing(error: unknown): boolean {
  if (error instanceof MillraceConnectionError) return true;
  return error instanceof MillraceApiError && (error.status === 503 || error.status === 429);
}

/** A gate that lets so many calls through at a time, the others in their order. */
export function gate(width: number): <T>(call: () => Promise<T>) => Promise<T> {
  const waiting: (() => void)[] = [];
  let inside = 0;
  return async (call) => {
    if (inside >= width) await new Promise<void>((resolve) => waiting.push(resolve));
    else inside += 1;
    try {
      return await call();
    } finally {
      // The place is handed on, so that nobody slips in between.
      const next = waiting.shift();
      if (next) next();
      else inside -= 1;
    }
  };
}
