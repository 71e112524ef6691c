import { expect, test } from "vitest";
import { openAbort } from "../src/worker/abort.ts";
import type { Held } from "../src/worker/held.ts";
import { openHoldings } from "../src/worker/holdings.ts";

/** As much of a held step as holdings look at. */
function held(workerId: string, path: string): Held {
  const step = { path, iteration: 1 };
  return { workerId, abort: openAbort(), snapshot: { tenantId: "t", id: "i" }, step } as Held;
}

test("what a worker gave up under its former id is stopped, and what it has taken since goes on", () => {
  const holdings = openHoldings();
  const [before, since] = [held("former", "a"), held("new", "b")];
  holdings.add(before);
  holdings.add(since);

  holdings.abortOf("former", "away too long");

  expect([before, since].map(({ abort }) => abort.signal.aborted)).toEqual([true, false]);
});
