import { expect, test } from "vitest";
import { checkConsistency } from "../src/consistency/check.ts";
import type { Evidence } from "../src/consistency/evidence.ts";
import type { Signal } from "../src/state/signal.ts";
import { define } from "./support/definitions.ts";
import { evidenceOf } from "./support/evidence.ts";
import { simulate } from "./support/simulation.ts";
import type { Simulation } from "./support/simulation.ts";

const definition = define({
  steps: [
    { stepId: "a", transitions: { default: "rest" } },
    { stepId: "rest", type: "DELAY", duration: "PT1H" },
  ],
});

function resting(): Evidence {
  const simulation = simulate(definition);
  simulation.start();
  simulation.succeed("a", { n: 1 });
  return evidence(simulation);
}

function evidence({ instance, timers, waits, history, now }: Simulation): Evidence {
  const stored = { instance, timers, waits, children: new Set<string>(), held: new Set<string>() };
  return evidenceOf(definition, stored, history, now);
}

const codesOf = (found: Evidence) => checkConsistency(found).map(({ code }) => code);
const later = ({ now }: Evidence, ms: number) => new Date(now.getTime() + ms);

test("nothing is found of what is as it was written", () => {
  expect(codesOf(resting())).toEqual([]);
});

test("a timer that has not fired long after it was due is overdue, and is left to a scheduler", () => {
  const stored = resting();

  const findings = checkConsistency({ ...stored, now: later(stored, 2 * 3_600_000) });

  expect(findings.map(({ code }) => code)).toEqual(["TIMER_OVERDUE"]);
  expect(findings[0]?.repair).toBeUndefined();
});

test("a timer is looked at when it is due, or soon after a scheduler has taken it", () => {
  const stored = resting();
  const [timer] = stored.timers;
  const lookedAt = (lookAt: Date) => ({
    ...stored,
    timers: [{ ...(timer as Evidence["timers"][number]), lookAt }],
  });

  expect(codesOf(lookedAt(later(stored, 3_600_000 + 5_000)))).toEqual([]);
  expect(codesOf(lookedAt(later(stored, 3_600_000 + 60_000)))).toEqual(["TIMER_DIFFERS"]);
});

test("a retry is due when the history says, and looked for soon after", () => {
  const retrying = define({
    steps: [{ stepId: "a", retry: { initialInterval: "PT10S", maxAttempts: 3 } }],
  });
  const simulation = simulate(retrying);
  simulation.start();
  simulation.fail("a");
  const { instance, timers, waits, history, now } = simulation;
  const parts = { instance, timers, waits, children: new Set<string>(), held: new Set<string>() };
  const stored = evidenceOf(retrying, parts, history, now);
  const [step] = stored.steps;
  const tried = (changed: Partial<Evidence["steps"][number]>) => ({
    ...stored,
    steps: [{ ...(step as Evidence["steps"][number]), ...changed }],
  });

  const moved = checkConsistency(tried({ retryAt: later(stored, 365 * 86_400_000) }));

  expect(step?.status).toBe("RETRYING");
  expect(moved).toMatchObject([{ code: "STEP_DIFFERS", repair: { kind: "commit" } }]);
  expect(codesOf(tried({ lookAt: later(stored, 365 * 86_400_000) }))).toEqual(["STEP_OVERLOOKED"]);
  expect(codesOf(tried({ lookAt: later(stored, 600_000) }))).toEqual([]);
});

test("counts of progress beyond what there is are found without a history", () => {
  const stored = resting();
  const snapshot = stored.snapshot && { ...stored.snapshot, completedSteps: 9 };

  expect(codesOf({ ...stored, snapshot, history: undefined })).toEqual(["PROGRESS_DIFFERS"]);
});

test("completion numbers are held against their count where there is no history", () => {
  const stored = resting();
  const [first, ...others] = stored.steps;
  const steps = [{ ...(first as Evidence["steps"][number]), completion: 4 }, ...others];

  expect(codesOf({ ...stored, steps, history: undefined })).toEqual(["COMPLETIONS_DIFFER"]);
});

test("a child that was asked for long ago and is not there is found", () => {
  const parent = define({ steps: [{ stepId: "sub", type: "SUB_WORKFLOW", workflowId: "child" }] });
  const simulation = simulate(parent);
  simulation.start();
  const { instance, timers, waits, history, now } = simulation;
  const stored = evidenceOf(
    parent,
    { instance, timers, waits, children: new Set(), held: new Set() },
    history,
    now,
  );
  const children = stored.children.map((child) => ({
    ...child,
    startedAt: null,
    status: null,
    createdAt: null,
  }));

  expect(codesOf(stored)).toEqual([]);
  expect(codesOf({ ...stored, children })).toEqual([]);
  expect(codesOf({ ...stored, children, now: later(stored, 120_000) })).toEqual([
    "CHILD_NOT_STARTED",
  ]);
});

test("what an earlier engine decided otherwise is no finding, and rows are held against the state", () => {
  const stored = resting();
  const history = stored.history?.map((commit) => ({
    ...commit,
    engineRev: 1,
    signals: [],
  }));

  expect(codesOf({ ...stored, history })).toEqual([]);
  expect(codesOf({ ...stored, history, timers: [] })).toEqual(["TIMER_MISSING", "STUCK"]);
});

test("attempts of what an earlier engine stopped are no finding: it did not note what had begun", () => {
  const simulation = simulate(definition);
  simulation.start();
  simulation.cancel();
  const stored = evidence(simulation);
  const steps = stored.steps.map((row) => ({ ...row, attempt: 1 }));
  const history = stored.history?.map((commit) => ({ ...commit, engineRev: 1 }));

  expect(codesOf({ ...stored, steps })).toEqual(["STEP_DIFFERS"]);
  expect(codesOf({ ...stored, steps, history })).toEqual([]);
});

test("of row, changes and signals the one that stands alone is the damaged one", () => {
  const stored = resting();
  const altered = stored.history?.map((commit) =>
    commit.version === 2 ? { ...commit, changes: { priority: 5 } } : commit,
  );
  const row = stored.snapshot && { ...stored.snapshot, priority: 5 };
  const silent = stored.history?.map((commit) =>
    commit.version === 2 ? { ...commit, signals: [] } : commit,
  );

  expect(codesOf({ ...stored, history: altered })).toEqual(["HISTORY_DIFFERS"]);
  const [differs] = checkConsistency({ ...stored, snapshot: row });
  expect(differs).toMatchObject({ code: "SNAPSHOT_DIFFERS", repair: { kind: "rebuild" } });
  expect(codesOf({ ...stored, history: silent })).toEqual(["REPLAY_DIFFERS"]);
});

test("with two of the three damaged nothing is repaired", () => {
  const stored = resting();
  const history = stored.history?.map((commit) =>
    commit.version === 2 ? { ...commit, changes: { priority: 6 } } : commit,
  );
  const snapshot = stored.snapshot && { ...stored.snapshot, priority: 5 };

  const findings = checkConsistency({ ...stored, snapshot, history });

  expect(findings.filter(({ repair }) => repair?.kind === "rebuild")).toEqual([]);
  expect(findings.map(({ code }) => code)).toContain("SNAPSHOT_DIFFERS");
});

test("who has asked for a version is written again by its signal, unless the signals lead to nothing", () => {
  const stored = patched({ deadline: null });
  const asEve = (history: Evidence["history"]) =>
    (history ?? []).map((commit) => (commit.version === 3 ? { ...commit, actor: "eve" } : commit));
  const broken = (stored.history ?? []).map((commit) =>
    commit.version === 2 ? { ...commit, signals: [] } : commit,
  );
  const found = (history: Evidence["history"]) =>
    checkConsistency({ ...stored, history: asEve(history) }).filter(
      ({ where: { version }, code }) => version === 3 && code === "HISTORY_DIFFERS",
    );

  expect(found(stored.history)).toMatchObject([{ repair: { kind: "restoreActors" } }]);
  expect(found(broken)).toHaveLength(1);
  expect(found(broken)[0]?.repair).toBeUndefined();
});

test("what a damaged signal gives for a deadline or for metadata is not taken for one", () => {
  expect(codesOf(patched({ deadline: "soon", metadata: 7 }))).toEqual([]);
});

function patched(others: Extract<Signal, { kind: "variablesPatched" }>["others"]): Evidence {
  const simulation = simulate(definition);
  simulation.start();
  simulation.succeed("a", { n: 1 });
  simulation.send({
    kind: "variablesPatched",
    intervention: 1,
    actor: "ann",
    reason: null,
    patch: null,
    priority: null,
    others,
  });
  return evidence(simulation);
}
