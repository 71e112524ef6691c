import { expect, test } from "vitest";
import { bestOffsetMs, withSample, type ClockSample } from "../src/clock.ts";

const sample = (offsetMs: number, roundTripMs: number): ClockSample => ({ offsetMs, roundTripMs });
const add = (...given: readonly ClockSample[]) =>
  given.reduce<readonly ClockSample[]>((kept, latest) => withSample(kept, latest), []);

test("of samples that agree the one with the shortest round trip counts", () => {
  const samples = add(sample(1_003, 4), sample(1_001, 1), sample(1_040, 60));

  expect(samples).toHaveLength(3);
  expect(bestOffsetMs(samples)).toBe(1_001);
});

test.each([
  ["ahead, as after the machine was suspended", 3_600_000],
  ["back, as when the database's time was set", -5_000],
  ["by little", 40],
])("a jump %s is followed at once, however good the samples before it were", (_what, jumpMs) => {
  const before = add(sample(1_000, 0.4), sample(1_000, 0.5), sample(1_001, 1));

  const samples = withSample(before, sample(1_000 + jumpMs, 20));

  expect(bestOffsetMs(samples)).toBe(1_000 + jumpMs);
});

test("a slow answer is no jump: nothing in it speaks against what is known", () => {
  const samples = add(sample(1_000, 0.5), sample(1_700, 800));

  expect(bestOffsetMs(samples)).toBe(1_000);
});

test("no more samples are kept than are needed", () => {
  const samples = add(...Array.from({ length: 50 }, (_, index) => sample(index / 100, 1)));

  expect(samples).toHaveLength(8);
});
