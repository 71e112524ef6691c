import type { JsonValue } from "@millrace/contract";
import { seeded, type Random } from "./random.ts";

/**
 * One instance of the load: when it is started, with what, and what its client does then. The plan of
 * a run follows from its seed; when things really happen follows from the machine.
 */
export interface CasePlan {
  readonly number: number;
  /** Milliseconds from the begin of the load. */
  readonly atMs: number;
  readonly scenario: Scenario;
  /** Also its correlation id, and what its events are about. */
  readonly key: string;
  readonly workflowId: string;
  readonly input: Readonly<Record<string, JsonValue>>;
  /** What a scenario waits before it publishes or cancels; 0 where it does neither. */
  readonly pauseMs: number;
}

/**
 * - `chain`: three steps; `chain_once` is asked for once, without a key, and never again.
 * - `wait`: its event is published after the wait was seen; `wait_instance` and `wait_lookback` may or
 *   must come before, and are found by the lookback; `stale` comes before, and there is no lookback.
 * - `race`: the event comes about when the wait times out; `race_cancelled` is cancelled then, too.
 * - `cancelled`: while its second step runs. The sagas: while they hold, or before; `saga_triggered` by
 *   an event.
 * - `paused` and `paused_wait` stand still for a while; the latter is sent its event meanwhile. `patched`
 *   gets a variable while it waits. `emitting` waits for what it publishes itself.
 * - `parked` has its retries spent, and waits for its operator to resume or retry it. `mended` fails until
 *   its operator has mended it, and is retried; `abandoned` fails and is cancelled.
 * - `triggered`: an event starts it. The rivals of one round wait for events of which each is for one of
 *   them alone; `rival_cancelled` is cancelled, perhaps with an event that it was given.
 * - The limited ones begin together, and two of them at a time may run.
 * - `parent`: waits for a child; `parent_cancelled` is cancelled about then.
 */
export const SCENARIOS = [
  "chain",
  "chain_once",
  "wait",
  "wait_instance",
  "wait_lookback",
  "stale",
  "race",
  "race_cancelled",
  "delay",
  "limited",
  "limited_too",
  "limited_three",
  "retried",
  "saga",
  "saga_triggered",
  "saga_of_branches",
  "cancelled",
  "paused",
  "paused_wait",
  "patched",
  "parked",
  "mended",
  "abandoned",
  "triggered",
  "rival",
  "rival_too",
  "rival_cancelled",
  "emitting",
  "parent",
  "parent_cancelled",
  "parallel_all",
  "parallel_any",
  "parallel_two",
  "map",
] as const;
export type Scenario = (typeof SCENARIOS)[number];

/** Somebody who has a limit of his own, beside the one that some of these workflows have. */
export const crowd: {
  readonly userId: string;
  readonly limit: number;
  readonly scenarios: readonly Scenario[];
} = {
  userId: "crowd",
  limit: 2,
  scenarios: ["limited", "limited_too", "limited_three", "retried", "emitting"],
};

/** All instances of a run, in order of time, a good deal of each scenario. */
export function planLoad(seed: number, durationMs: number, perSecond: number): readonly CasePlan[] {
  const random = seeded(seed, "load");
  const count = Math.round((durationMs / 1_000) * perSecond);
  const begins = Array.from({ length: count }, () => random.between(0, durationMs));
  return begins
    .toSorted((a, b) => a - b)
    .map((atMs, number) => planCase(random, number, atMs, `chaos-${seed}-${number}`));
}

function planCase(random: Random, number: number, atMs: number, key: string): CasePlan {
  // Each in its turn, so that a short run has them all.
  const scenario = SCENARIOS[number % SCENARIOS.length] ?? "chain";
  const common = {
    key,
    ms: random.whole(0, 150),
    // One in three goes on when it is told to stop: what it returns then must not count.
    stubborn: random.chance(0.33),
  };
  const plan = (workflowId: string, more: Record<string, JsonValue> = {}, pauseMs = 0) => {
    return { number, atMs, scenario, key, workflowId, input: { ...common, ...more }, pauseMs };
  };
  switch (scenario) {
    case "chain":
    case "chain_once":
      return plan("chain");
    case "wait":
    case "wait_instance":
    case "wait_lookback":
      return plan(scenario, {}, random.whole(0, 500));
    case "stale":
      return plan("race", { delay: seconds(random.whole(1_000, 3_000)) }, random.whole(0, 500));
    case "race":
    case "race_cancelled": {
      const delayMs = random.whole(800, 2_500);
      return plan("race", { delay: seconds(delayMs) }, delayMs - random.whole(-40, 120));
    }
    case "delay":
      return plan("delay", { delay: seconds(random.whole(200, 6_000)) });
    case "limited":
    case "limited_too":
    case "limited_three":
      return plan("limited", {
        ms: random.whole(200, 1_200),
        delay: seconds(random.whole(0, 1_000)),
      });
    case "retried":
      return plan("retried", { failures: random.whole(0, 4) });
    case "paused":
      return plan("chain", {}, random.whole(0, 600));
    case "paused_wait":
    case "patched":
      return plan("wait", {}, random.whole(0, 600));
    case "parked":
      return plan("parked", { failures: random.whole(3, 5) }, random.whole(0, 600));
    case "mended":
      return plan(
        "fragile",
        {
          // Rounds that fail before anybody mends it; and where it goes on: "" is where it failed.
          inVain: random.whole(0, 1),
          from: random.pick(["", "", "before", "breaks"]),
        },
        random.whole(300, 1_500),
      );
    case "abandoned":
      return plan("fragile", {}, random.whole(0, 600));
    case "triggered":
      return plan("triggered");
    case "rival":
    case "rival_too":
    case "rival_cancelled": {
      const round = Math.floor(number / SCENARIOS.length);
      return plan("rival", { round }, random.whole(0, 1_000));
    }
    case "emitting":
      return plan("emitting");
    case "parent":
      return plan("parent");
    case "parent_cancelled":
      return plan("parent", { ms: random.whole(100, 400) }, random.whole(0, 1_500));
    case "saga":
    case "saga_triggered":
    case "saga_of_branches":
      // About half of them before they hold.
      return plan(scenario, { undoFailures: random.pick([0, 0, 1, 9]) }, random.whole(0, 1_000));
    case "cancelled":
      return plan("cancelled", { longMs: 20_000 }, random.whole(0, 1_000));
    case "parallel_all":
    case "parallel_any":
    case "parallel_two": {
      const [p, q, r] = [0, 0, 0].map(() => random.whole(0, 400));
      return plan(scenario, { branchMs: { p: p ?? 0, q: q ?? 0, r: r ?? 0 } });
    }
    case "map": {
      const items = Array.from({ length: random.whole(0, 8) }, () => random.whole(0, 200));
      return plan("map", { items });
    }
  }
}

function seconds(ms: number): string {
  return `PT${ms / 1_000}S`;
}
