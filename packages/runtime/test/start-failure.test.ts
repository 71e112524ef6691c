import { expect, test } from "vitest";
import { describeStartFailure } from "../src/start-failure.ts";

test("what keeps a program from starting is told with what caused it, and a circle of causes once round", () => {
  const full = new Error("EMFILE: too many open files");
  const failed = new Error("the beat thread failed", { cause: full });

  const told = describeStartFailure(failed);
  full.cause = failed;
  const round = describeStartFailure(failed);

  expect(told).toMatch(/^could not start: Error: the beat thread failed\n/);
  expect(told).toMatch(/\ncaused by Error: EMFILE: too many open files\n/);
  expect(round.split("caused by").length).toBeLessThan(6);
});
