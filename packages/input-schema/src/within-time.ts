import { Script } from "node:vm";

/**
 * Ends a computation that goes on for too long, in the middle of a regular expression as well: the one
 * way there is in a process that also has others to serve. No sandbox; what runs is our own code. It may run
 * more than once: time in which the process was not given a processor does not count.
 *
 * It starts a watching thread, which costs some 100 µs.
 *
 * @returns Undefined where the time was not enough.
 */
export function withinTime<T>(
  limitMs: number,
  compute: () => T,
): { readonly value: T } | undefined {
  for (let left = mostTries; left > 0; left--) {
    const before = process.cpuUsage();
    const done = tryWithin(limitMs, compute);
    if (done !== undefined) return done;
    const { user, system } = process.cpuUsage(before);
    if ((user + system) / 1_000 > limitMs / 2) break;
  }
  return undefined;
}

/** On a machine that is so busy that it takes more, nothing is in time. */
const mostTries = 5;

function tryWithin<T>(limitMs: number, compute: () => T): { readonly value: T } | undefined {
  const held: { value?: T } = {};
  const outer = Reflect.get(globalThis, slot);
  Reflect.set(globalThis, slot, () => {
    held.value = compute();
  });
  try {
    call.runInThisContext({ timeout: limitMs });
    return held as { value: T };
  } catch (error) {
    if (isTimeout(error)) return undefined;
    throw error;
  } finally {
    Reflect.set(globalThis, slot, outer);
  }
}

const slot = Symbol.for("millrace.withinTime");
const call = new Script('globalThis[Symbol.for("millrace.withinTime")]()');

function isTimeout(error: unknown): boolean {
  return error instanceof Error && Reflect.get(error, "code") === "ERR_SCRIPT_EXECUTION_TIMEOUT";
}
