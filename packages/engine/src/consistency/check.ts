import { checkActors, checkPatched } from "./check-asked.ts";
import { checkClocks, checkInstanceTimes, checkStepColumns } from "./check-columns.ts";
import { checkDefinition } from "./check-definition.ts";
import { checkFamily } from "./check-family.ts";
import { checkHistory } from "./check-history.ts";
import type { Truth } from "./check-history.ts";
import { checkDeadLetter, checkEvents, checkGiven, checkTimes, checkWakes } from "./check-rest.ts";
import { checkSlot } from "./check-slot.ts";
import { checkCompletions, checkHolders, checkProgress, checkSteps } from "./check-steps.ts";
import { checkTimers } from "./check-timers.ts";
import { checkWaits } from "./check-waits.ts";
import type { Evidence, Finding, Repair } from "./evidence.ts";

/**
 * Holds all that is stored of one instance side by side.
 *
 * Pure: one consistent read goes in, so that nothing is found that was only under way. What the
 * history proves to be damaged does not count as evidence any more: rows are held against what the
 * instance was before.
 */
export function checkConsistency(evidence: Evidence): readonly Finding[] {
  const checking = checkingConsistency(evidence);
  for (;;) {
    const { done, value } = checking.next();
    if (done === true) return value;
  }
}

/** The same with pauses in it: to replay a long history takes seconds. */
export function* checkingConsistency(
  evidence: Evidence,
): Generator<void, readonly Finding[], void> {
  const { findings, truth } = yield* checkHistory(evidence);
  const all = [
    ...findings,
    ...checkDefinition(evidence),
    ...checks.flatMap((check) => check(evidence, truth)),
  ];
  return evidence.definition === undefined ? all.map(withoutCommit) : all;
}

/** Without a definition nothing can be decided, and so nothing committed. */
function withoutCommit({ repair, ...finding }: Finding): Finding {
  const isCommit = repair !== undefined && commits.has(repair.kind);
  return repair === undefined || isCommit ? finding : { ...finding, repair };
}

const commits: ReadonlySet<Repair["kind"]> = new Set([
  "commit",
  "rebuild",
  "restoreStep",
  "restoreHistory",
  "restoreTimes",
  "restoreActors",
  "restorePatched",
  "restoreChild",
]);

const checks: readonly ((evidence: Evidence, truth: Truth) => readonly Finding[])[] = [
  checkGiven,
  checkTimes,
  checkInstanceTimes,
  checkActors,
  checkPatched,
  checkProgress,
  checkCompletions,
  checkSteps,
  checkStepColumns,
  checkClocks,
  checkHolders,
  checkWaits,
  checkTimers,
  checkFamily,
  checkDeadLetter,
  checkSlot,
  checkEvents,
  checkWakes,
];
