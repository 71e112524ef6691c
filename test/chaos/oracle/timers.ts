import type { Check, Finding } from "../oracle.ts";
import { entriesOf, firstRun, msOf, storedOutcome, type Evidence } from "./evidence.ts";

/**
 * P6: nothing that waits for a time goes on before it, by the ledger's clock and by the product's own
 * word; and it goes on, though in a run of faults only what is far too late is called late.
 */
export const checkTimers: Check = (evidence) => [
  ...(evidence.plan.workflowId === "delay" ? waitedFor(evidence, "rest", "after") : []),
  ...(evidence.plan.workflowId === "race" ? waitedFor(evidence, "wait", "late") : []),
  ...backoffFindings(evidence),
];

/** The database's clock and the ledger's are one; both are read in whole milliseconds. */
const toleranceMs = 2;
/** Beyond the end of the last fault that may have delayed it. */
const lateMs = 60_000;

function waitedFor(evidence: Evidence, step: string, next: string): readonly Finding[] {
  const run = firstRun(evidence, next);
  if (!run || !evidence.instance) return [];
  const delayMs = msOf(evidence.plan.input["delay"]);
  const findings: Finding[] = [];
  const begun = storedOutcome(evidence, "before");
  if (begun && run.at - begun.at < delayMs - toleranceMs) {
    findings.push([
      "P6",
      `${next} ran ${run.at - begun.at} ms after "before", and ${step} takes ${delayMs} ms`,
    ]);
  }
  const { startedAt, completedAt } = evidence.instance.view.state.steps[step] ?? {};
  const tookMs = Date.parse(completedAt ?? "") - Date.parse(startedAt ?? "");
  if (tookMs < delayMs - toleranceMs) {
    findings.push(["P6", `${step} took ${tookMs} ms of ${delayMs} ms`]);
  }
  const dueAt = Date.parse(startedAt ?? "") + delayMs;
  const healed = evidence.faults.filter(({ at }) => at < run.at).map(({ healedAt }) => healedAt);
  const lateFrom = Math.max(dueAt, ...healed.filter((at) => at < run.at)) + lateMs;
  if (run.at > lateFrom) {
    findings.push(["P6", `${next} ran ${run.at - dueAt} ms after ${step} was due`]);
  }
  return findings;
}

/** 0.3 s after the first failure, twice as long after the second; without jitter. A round has three. */
function backoffFindings(evidence: Evidence): readonly Finding[] {
  return ["flaky", "breaks", "undo_b", "undo_y1"].flatMap((step) =>
    entriesOf(evidence, "run", step).flatMap(({ key, attempt, at }): readonly Finding[] => {
      const failed = entriesOf(evidence, "failed", step).find(
        (each) => each.key === key && each.attempt === attempt - 1,
      );
      const ofRound = (attempt - 1) % 3;
      if (!failed || ofRound === 0) return [];
      const backoffMs = 300 * 2 ** (ofRound - 1);
      const pausedMs = at - failed.at;
      if (pausedMs >= backoffMs - toleranceMs) return [];
      return [
        [
          "P6",
          `attempt ${attempt} of ${step} ran ${pausedMs} ms after the failure before it, and ${backoffMs} ms were due`,
        ],
      ];
    }),
  );
}
