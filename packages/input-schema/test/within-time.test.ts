import { expect, test } from "vitest";
import { withinTime } from "../src/within-time.ts";

/** Long beside what the process's other threads still have to do. */
const limitMs = 250;

test("time in which the process does nothing since it is given no processor does not count", () => {
  let tries = 0;
  const done = withinTime(limitMs, () => {
    tries += 1;
    if (tries < 2) standStill(20 * limitMs);
    return "done";
  });

  expect(done).toEqual({ value: "done" });
  expect(tries).toBe(2);
});

test("what goes on and on is ended, and so is what is never given enough time", () => {
  let tries = 0;
  const spinning = withinTime(limitMs, () => {
    while (performance.now() > 0);
  });
  const starved = withinTime(limitMs, () => {
    tries += 1;
    standStill(20 * limitMs);
  });

  expect(spinning).toBeUndefined();
  expect(starved).toBeUndefined();
  expect(tries).toBeLessThanOrEqual(5);
});

function standStill(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}
