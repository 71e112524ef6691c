import type { Check, Finding } from "../oracle.ts";
import { accepted, entriesOf, firstRun, type Evidence, type Told } from "./evidence.ts";
import { SUCCESSIONS } from "./shapes.ts";

/**
 * P11: once a cancel is answered nothing new starts; what runs is told. What had been claimed before
 * may still have been on its way to the ledger: that takes a moment, or as long as its process stood
 * still, and never lets the next step run.
 */
export const checkCancels: Check = (evidence) => {
  const [cancel] = accepted(evidence, "cancel");
  if (!cancel || !evidence.instance) return [];
  return [
    ...startedAfter(evidence, cancel.answeredAt),
    ...movedOnAfter(evidence, cancel.answeredAt),
    ...notTold(evidence, cancel.answeredAt),
  ];
};

/** Between claiming a step and its first word to the ledger, on a machine that is busy. */
export const onItsWayMs = 5_000;
/** What a run says goes by several connections: that it was aborted may be heard before that it runs. */
const overtakingMs = 1_000;
/** For the rows to tell what pub/sub could not, beyond whatever fault is going on. */
const toldWithinMs = 15_000;

function startedAfter(evidence: Evidence, cancelledAt: number): readonly Finding[] {
  const late = evidence.told.filter(
    (entry) =>
      entry.kind === "run" &&
      !entry.step.startsWith("undo_") &&
      entry.at > cancelledAt + onItsWayMs &&
      !stoodStill(evidence, entry),
  );
  return late.map(({ step, at }): Finding => [
    "P11",
    `${step} began to run ${at - cancelledAt} ms after the cancel was answered`,
  ]);
}

function movedOnAfter(evidence: Evidence, cancelledAt: number): readonly Finding[] {
  return (SUCCESSIONS.get(evidence.plan.workflowId) ?? [])
    .filter(({ step }) => !step.startsWith("undo_") && firstRun(evidence, step) !== undefined)
    .flatMap(({ before, step }): readonly Finding[] => {
      const outcomes = entriesOf(evidence, "outcome", before);
      if (outcomes.some(({ at }) => at <= cancelledAt)) return [];
      return [
        ["P11", `${step} ran, and ${before} came to its outcome after the cancel was answered`],
      ];
    });
}

/** Runs that go on for long after the cancel in a process that lives must hear of it. */
function notTold(evidence: Evidence, cancelledAt: number): readonly Finding[] {
  return evidence.told.flatMap((run): readonly Finding[] => {
    if (run.kind !== "run" || run.step.startsWith("undo_") || run.at > cancelledAt) return [];
    const beside = evidence.told.filter(
      (entry) => entry.key === run.key && entry.pid === run.pid && entry.at > run.at - overtakingMs,
    );
    const isOver = beside.some(
      ({ kind, at, seq }) =>
        (kind === "outcome" || kind === "failed") &&
        seq > run.seq &&
        at < cancelledAt + toldWithinMs,
    );
    if (isOver || beside.some(({ kind }) => kind === "aborted") || hasDied(evidence, run))
      return [];
    return [["P11", `${run.step} ran when the cancel came, and was never told`]];
  });
}

export function stoodStill(
  { faults }: Pick<Evidence, "faults">,
  { pid, at }: Pick<Told, "pid" | "at">,
): boolean {
  return faults.some(
    (fault) => fault.kind === "worker stopped" && fault.pid === pid && fault.at < at,
  );
}

function hasDied({ faults }: Evidence, { pid, at }: Told): boolean {
  return faults.some(
    (fault) => fault.kind === "process killed" && fault.pid === pid && fault.at >= at - 1_000,
  );
}
