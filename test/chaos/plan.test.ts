import { expect, test } from "vitest";
import { GROUPS, planFaults } from "./faults.ts";
import { planLoad, SCENARIOS } from "./load-plan.ts";

const twoMinutes = 120_000;

test("the same seed plans the same faults and the same load, another one others", () => {
  const plan = (seed: number) => [planFaults(seed, "D", twoMinutes), planLoad(seed, twoMinutes, 5)];

  expect(plan(7)).toEqual(plan(7));
  expect(plan(8)).not.toEqual(plan(7));
});

test("D has the faults of A, B and C, at the same times as they have them alone", () => {
  const alone = (["A", "B", "C"] as const).flatMap((group) => planFaults(3, group, twoMinutes));

  expect(planFaults(3, "D", twoMinutes)).toEqual(alone);
});

test("two minutes have every kind of fault and every scenario, whatever the seed", () => {
  for (let seed = 1; seed <= 50; seed += 1) {
    const kinds = new Set(
      planFaults(seed, "D", twoMinutes)
        .flat()
        .map(({ kind }) => kind),
    );
    const scenarios = new Set(planLoad(seed, twoMinutes, 1).map(({ scenario }) => scenario));

    expect([...kinds].toSorted()).toEqual([
      "postgres stopped",
      "process killed",
      "redis connections cut",
      "redis emptied",
      "redis full",
      "redis restarted empty",
      "redis stopped",
      "worker stopped",
    ]);
    expect(scenarios.size).toBe(SCENARIOS.length);
  }
});

test("the pace is that of the promises", () => {
  const hour = 3_600_000;
  for (const group of GROUPS) {
    for (const lane of planFaults(1, group, hour)) {
      const times = lane.map(({ atMs }) => atMs);
      expect(times).toEqual(times.toSorted((a, b) => a - b));
    }
  }
  const pauses = (group: "A" | "B", kind: string) => {
    const lane = planFaults(1, group, hour).find(([first]) => first?.kind === kind) ?? [];
    return lane.slice(1).map(({ atMs }, index) => atMs - (lane[index]?.atMs ?? 0));
  };
  const inSeconds = (list: readonly number[]) =>
    [Math.min(...list), Math.max(...list)].map((ms) => Math.round(ms / 1_000));
  expect(inSeconds(pauses("A", "postgres stopped"))).toEqual([5, 10]);
  expect(inSeconds(pauses("B", "process killed"))).toEqual([2, 5]);
  expect(
    planFaults(1, "B", hour)
      .flat()
      .filter(({ kind }) => kind === "worker stopped"),
  ).toHaveLength(60);
});
