import { expect, test } from "vitest";
import { forge, found, quiet } from "./forged/forgery.ts";
import type { Forgery } from "./forged/forgery.ts";
import type { Scenario } from "./load-plan.ts";
import { judge } from "./oracle.ts";

// What the oracle lets pass. What it finds is in `forged`.

test("a record in which all is well is without a finding, alone and with the others", () => {
  const alone = quiet.cases.map(({ scenario, number }) => {
    const index = quiet.cases
      .filter((each) => each.scenario === scenario)
      .findIndex((each) => each.number === number);
    return judge(forge(scenario, index, () => {}));
  });
  const whole = judge({
    ...quiet,
    instances: quiet.instances.map((each) => ({ ...each, viewAgain: each.view })),
  });

  expect(alone.flat()).toEqual([]);
  expect(whole).toEqual([]);
});

/** Forged records of what a client that is in doubt may see, in which nothing is wrong. */
const permitted: readonly [what: string, Scenario, (forgery: Forgery) => void][] = [
  [
    "a retry without an answer may have been one",
    "mended",
    ({ requests }) => {
      const retry = found(
        requests.find(({ operation }) => operation === "retry"),
        "retry",
      );
      Object.assign(retry, { status: undefined, seen: [] });
    },
  ],
  [
    "so may a retry that was answered 503",
    "mended",
    ({ requests }) => {
      const retry = found(
        requests.findLast(({ operation }) => operation === "retry"),
        "retry",
      );
      Object.assign(retry, { status: 503, seen: [] });
    },
  ],
  [
    "so may a cancel of a failed instance",
    "abandoned",
    ({ request }) => void Object.assign(request("cancel"), { status: undefined, seen: [] }),
  ],
];

test.each(permitted)("in doubt is no violation: %s", (_what, scenario, tamper) => {
  expect(judge(forge(scenario, 0, tamper))).toEqual([]);
});
test("a step may be uncertain that ran in a branch, or whose worker died before it told anybody", () => {
  const inBranch = forge("saga_of_branches", 0, ({ view }) => {
    Object.assign(view.compensation ?? {}, { uncertain: ["fork.x.x1"] });
  });
  const killed = forge("saga", 0, ({ view, faults }) => {
    Object.assign(view.compensation ?? {}, { uncertain: ["d"] });
    const at = Date.parse(view.createdAt);
    faults.push({ kind: "process killed", at, healedAt: at, about: "worker 1" });
  });

  expect([...judge(inBranch), ...judge(killed)]).toEqual([]);
});
