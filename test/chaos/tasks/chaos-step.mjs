// The one task of the chaos run: it does as its input says, and tells the ledger that it runs, and
// how that ends.
import { setTimeout as sleep } from "node:timers/promises";
import { tell } from "../../support/tasks/witness.mjs";

/**
 * @typedef {object} Orders
 * @property {number} [ms]  takes so long
 * @property {number} [failures]  attempts that fail, each after it has told the ledger
 * @property {boolean} [stubborn]  goes on when it is aborted, and returns a result that comes too late
 * @property {string} [branch]  which item of a MAP it is
 * @property {unknown} [saw]  what it was given of the steps before it, for the ledger
 * @property {unknown} [marker]  what version of the definition gave it its input
 */

export const chaosStep = {
  id: "chaos.step",
  /** @param {Orders} input */
  async run(context, { ms = 0, failures = 0, stubborn = false, branch, saw, marker }) {
    const { signal, attempt } = context;
    const say = (kind, more) => tell(context, { kind, branch, saw, marker, ...more });
    signal.addEventListener("abort", () => void say("aborted").catch(() => {}));
    const run = await say("run");
    await sleep(ms, undefined, stubborn ? {} : { signal });
    if (attempt <= failures) {
      await say("failed", { run });
      throw Object.assign(new Error("as it was told"), { type: "Failed" });
    }
    return { record: await say("outcome", { run }), run };
  },
};
