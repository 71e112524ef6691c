// A task that does as its input says and tells the ledger of it. The ledger's answer may be held
// back, which holds the task.
import { closeSync, existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

/**
 * @typedef {object} Orders
 * @property {number} [ms]  takes so long
 * @property {number} [blockMs]  keeps the event loop busy for so long
 * @property {number} [failures]  attempts that fail after they have told the ledger
 * @property {string} [error]  the name of that failure
 * @property {number} [deaths]  runs that end with the death of their worker
 * @property {number} [alone]  from which run on it does as the next two say
 * @property {boolean} [disconnects]  closes its cell's channel to the worker, and then waits
 * @property {boolean} [blocks]  keeps the event loop from turning for ever, from its first line on
 * @property {Record<number, string>} [signals]  what a run sends its process, by its number, once it has told;
 *   several are separated by blanks
 * @property {number} [exitCode]  how it dies; absent: by SIGKILL
 * @property {string} [deadlyWhile]  while there is this file, its worker dies of it
 * @property {number} [bytes]  how large its output is, about
 * @property {boolean} [stray]  leaves a promise behind that fails, and that nobody handles
 * @property {boolean} [stubborn]  goes on when it is aborted, as a handler that does not care
 */

export const witness = {
  id: "witness",
  /** @param {Orders | null} input */
  async run(context, input) {
    const {
      ms,
      blockMs,
      failures = 0,
      error = "Failed",
      deaths = 0,
      exitCode,
      signals = {},
      alone = Number.POSITIVE_INFINITY,
      disconnects,
      blocks,
      deadlyWhile,
      bytes,
      stray,
      stubborn,
    } = input ?? {};
    const { signal, attempt, deliveries } = context;
    if (deliveries >= alone && blocks) block(Number.POSITIVE_INFINITY);
    signal.addEventListener("abort", () => {
      const reason = signal.reason instanceof Error ? signal.reason.message : String(signal.reason);
      tell(context, { kind: "aborted", reason }).catch(() => {});
    });
    const record = await tell(context, { kind: "run" }, stubborn ? undefined : signal);
    if (deliveries <= deaths || (deadlyWhile && existsSync(deadlyWhile))) die(exitCode);
    for (const each of signals[deliveries]?.split(" ") ?? []) process.kill(process.pid, each);
    if (deliveries >= alone && disconnects) closeSync(3);
    if (deliveries >= alone && disconnects) await sleep(60_000);
    if (stray) void Promise.reject(new Error("stray, as it was told"));
    if (blockMs) block(blockMs);
    if (ms) await sleep(ms, undefined, stubborn ? {} : { signal });
    if (attempt <= failures) throw Object.assign(new Error("as it was told"), { type: error });
    await tell(context, { kind: "outcome", record });
    return { record, pid: process.pid, ...(bytes ? { filling: "x".repeat(bytes) } : {}) };
  },
};

/** Ends when the ledger answers: whoever holds the answer back says when. */
export const gate = {
  id: "gate",
  run: async (context) => ({ record: await tell(context, { kind: "gate" }) }),
};

/** Adds an entry to the ledger and answers its number. */
export async function tell(context, facts, signal) {
  try {
    return await post(context, facts, signal);
  } catch (error) {
    // A task that has kept the event loop meets connections that the ledger has given up long ago.
    if (!(error instanceof TypeError)) throw error;
    return await post(context, facts, signal);
  }
}

async function post(context, facts, signal) {
  const { idempotencyKey, attempt, deliveries, stepId: step, instance } = context;
  const response = await fetch(process.env.MILLRACE_DEMO_LEDGER, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      instance: instance.id,
      step,
      attempt,
      idempotencyKey,
      deliveries,
      pid: process.pid,
      ...facts,
    }),
    ...(signal ? { signal } : {}),
  });
  if (!response.ok) throw new Error(`the ledger answers ${response.status}`);
  return (await response.json()).seq;
}

function die(exitCode) {
  if (exitCode !== undefined) process.exit(exitCode);
  process.kill(process.pid, "SIGKILL");
}

/** Keeps the event loop from turning, without using up a core that other tests need. */
function block(ms) {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}
