import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  defaultRetryPolicy,
  nextAttemptDelayMs,
  resolveRetryPolicy,
  spread,
} from "../src/retry.ts";

describe("a policy", () => {
  test("is merged field by field: the first layer that names one wins, the default comes last", () => {
    const policy = resolveRetryPolicy({ maxAttempts: 7 }, undefined, {
      maxAttempts: 2,
      jitter: "NONE",
    });

    expect(policy).toEqual({ ...defaultRetryPolicy, maxAttempts: 7, jitter: "NONE" });
  });

  test("does not take a field that a layer leaves open for one that it names", () => {
    const open = { maxAttempts: undefined } as unknown as { maxAttempts: number };

    expect(resolveRetryPolicy(open, { maxAttempts: 5 }).maxAttempts).toBe(5);
  });
});

describe("the delay before the next attempt", () => {
  const policy = { ...defaultRetryPolicy, maxAttempts: 1_000_000, jitter: "NONE" } as const;

  test("grows by the coefficient up to the maximum", () => {
    const delays = [1, 2, 3, 7, 100].map((attempt) => nextAttemptDelayMs(policy, attempt, 0.5));

    expect(delays).toEqual([1_000, 2_000, 4_000, 60_000, 60_000]);
  });

  test("is undefined once the attempts are spent", () => {
    expect(nextAttemptDelayMs({ ...policy, maxAttempts: 3 }, 3, 0)).toBeUndefined();
    expect(nextAttemptDelayMs({ ...policy, maxAttempts: 3 }, 2, 0)).toBe(2_000);
  });

  test("is a whole number of milliseconds within the maximum, for any policy and attempt", () => {
    const interval = fc.oneof(fc.constant(0), fc.nat({ max: 10 ** 9 }));
    fc.assert(
      fc.property(
        interval,
        interval,
        fc.double({ min: 1, max: 1_000, noNaN: true }),
        fc.integer({ min: 1, max: 999_999 }),
        fc.constantFrom("FULL" as const, "NONE" as const),
        fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        (initialIntervalMs, maxIntervalMs, backoffCoefficient, attempt, jitter, random) => {
          const any = { ...policy, initialIntervalMs, maxIntervalMs, backoffCoefficient, jitter };

          const delay = nextAttemptDelayMs(any, attempt, random);

          expect(Number.isInteger(delay)).toBe(true);
          expect(delay).toBeGreaterThanOrEqual(0);
          expect(delay).toBeLessThanOrEqual(maxIntervalMs);
        },
      ),
    );
  });
});

test("jitter spreads evenly over ids that differ only at their end", () => {
  const buckets = Array.from({ length: 10 }, () => 0);
  for (let index = 0; index < 10_000; index++) {
    const bucket = Math.floor(spread(`0195a3b0-0000-7000-8000-${index}.step.1.1`) * 10);
    buckets[bucket] = (buckets[bucket] ?? 0) + 1;
  }

  for (const count of buckets) {
    expect(count).toBeGreaterThan(800);
    expect(count).toBeLessThan(1_200);
  }
});

test("an expression takes its layer's place: the task's own value goes before the definition's", () => {
  const outer = { initialIntervalMs: "DEFINITION", maxIntervalMs: "DEFINITION" } as const;

  expect(resolveRetryPolicy({}, { initialIntervalMs: 5 }, outer)).toMatchObject({
    initialIntervalMs: 5,
    maxIntervalMs: "DEFINITION",
  });
  expect(
    resolveRetryPolicy({ initialIntervalMs: "STEP" }, { initialIntervalMs: 5 }, outer),
  ).toEqual({ ...defaultRetryPolicy, initialIntervalMs: "STEP", maxIntervalMs: "DEFINITION" });
});
