// A task that says who is at it, to the tests of its own process: they hold it and let it go.
import { setTimeout as sleep } from "node:timers/promises";

/** @type {import("../occupation.ts").Occupation} */
const occupation = (globalThis[Symbol.for("occupation")] ??= {
  now: new Set(),
  most: 0,
  began: [],
  isHeld: false,
});

export const occupy = {
  id: "occupy",
  /** @param {{ failing?: boolean, ms?: number } | null} input */
  async run({ instance: { id }, signal }, input) {
    const { now, began } = occupation;
    now.add(id);
    began.push(id);
    occupation.most = Math.max(occupation.most, now.size);
    try {
      await sleep(input?.ms ?? 0);
      while (occupation.isHeld && now.has(id) && !signal.aborted) await sleep(2);
      if (input?.failing) throw Object.assign(new Error("as it was told"), { retryable: false });
    } finally {
      now.delete(id);
    }
  },
};
