import { expect, test } from "vitest";
import { openPatience } from "../src/scheduler/patience.ts";

test("what is met again is tried after pauses that double up to half a minute; what is not met for long begins anew", () => {
  let now = 0;
  const patience = openPatience(() => now);
  const place = ["2026-01-01", "a"];
  const triedAt: number[] = [];

  for (; now <= 100_000; now += 1_000) {
    if (!patience.isDue(place)) continue;
    triedAt.push(now / 1_000);
    patience.note(place);
  }
  const other = patience.isDue(["2026-01-01", "b"]);
  now += 60_000;
  patience.note(place);
  now += 1_000;

  expect(triedAt).toEqual([0, 1, 3, 7, 15, 31, 61, 91]);
  expect(other).toBe(true);
  expect(patience.isDue(place)).toBe(true);
});

test("of many things that cannot be made good the ones tried longest ago are forgotten", () => {
  const patience = openPatience(() => 0);

  for (let n = 0; n <= 10_000; n++) patience.note([String(n)]);

  expect(patience.isDue(["0"])).toBe(true);
  expect(patience.isDue(["1"])).toBe(false);
});
