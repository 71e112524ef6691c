import type { CompensationView, InstanceView } from "@millrace/contract";
import type { Check, Finding } from "../oracle.ts";
import { attemptsExpected } from "./executions.ts";
import { entriesOf, firstRun, type Evidence } from "./evidence.ts";
import { COMPENSATIONS, SUCCESSIONS } from "./shapes.ts";

/**
 * P9: all that was completed is undone, the latest first, one after the other, each once; what fails is
 * recorded, and the rest is undone all the same.
 */
export const checkCompensation: Check = (evidence) => {
  const undo = COMPENSATIONS.get(evidence.plan.workflowId);
  const view = evidence.instance?.view;
  if (!view || !undo || undo.size === 0) return [];
  const strays = [...undo.values()].filter((step) => firstRun(evidence, step) !== undefined);
  if (view.status === "COMPLETED") {
    return strays.map((step): Finding => ["P9", `${step} ran, and the instance is COMPLETED`]);
  }
  if (view.status !== "CANCELLED" && view.status !== "FAILED") return [];
  if (view.status === "FAILED" && evidence.plan.workflowId === "fragile") {
    return strays.map((step): Finding => ["P9", `${step} ran, and nobody has cancelled it`]);
  }
  const { compensation } = view;
  if (!compensation) return [["P9", `it is ${view.status}, and has no compensation`]];
  return [
    ...planFindings(evidence, view, compensation, undo),
    ...outcomeFindings(evidence, compensation),
    ...orderFindings(evidence, compensation),
    ...strays
      .filter((step) => !compensation.plan.includes(step))
      .map((step): Finding => ["P9", `${step} ran, and is not in the plan`]),
  ];
};

function planFindings(
  evidence: Evidence,
  { state }: InstanceView,
  { plan }: CompensationView,
  undo: ReadonlyMap<string, string>,
): readonly Finding[] {
  const findings: Finding[] = [];
  const completed = Object.entries(state.steps)
    .filter(([step, { completionNumber = null }]) => completionNumber !== null && undo.has(step))
    .toSorted(([, a], [, b]) => (b.completionNumber ?? 0) - (a.completionNumber ?? 0));
  const due = completed.map(([step]) => undo.get(step) ?? "");
  if (due.join() !== plan.join()) {
    findings.push(["P9", `the plan is ${plan.join(", ")}, and ${due.join(", ")} are due`]);
  }
  for (const { before, step } of SUCCESSIONS.get(evidence.plan.workflowId) ?? []) {
    const both = [undo.get(before), undo.get(step)].map((each) => plan.indexOf(each ?? ""));
    const [first = -1, second = -1] = both;
    // Whoever ran after it shows that it had completed.
    if (undo.has(before) && !step.startsWith("undo_") && firstRun(evidence, step) && first < 0) {
      findings.push(["P9", `${step} ran after ${before}, which is not undone`]);
    }
    if (first >= 0 && second >= 0 && first < second) {
      findings.push(["P9", `${before} is undone before ${step}, which came after it`]);
    }
  }
  return findings;
}

function outcomeFindings(
  evidence: Evidence,
  { status, plan, completed, failed, uncertain }: CompensationView,
): readonly Finding[] {
  const findings: Finding[] = [];
  const ended = [...completed, ...failed.map(({ stepId }) => stepId)];
  if (ended.toSorted().join() !== plan.toSorted().join()) {
    findings.push(["P9", `of the plan ${plan.join(", ")} there ended ${ended.join(", ")}`]);
  }
  for (const step of plan) {
    const isFailing = attemptsExpected(evidence, step) === 3 && failuresOf(evidence, step) >= 3;
    const isFailed = failed.some(({ stepId }) => stepId === step);
    if (isFailing !== isFailed) {
      findings.push(["P9", `${step} ${isFailing ? "must fail" : "must succeed"}, and did not`]);
    }
    if (!isFailed && entriesOf(evidence, "outcome", step).length === 0) {
      findings.push(["P9", `${step} counts as completed, and has never come to an outcome`]);
    }
  }
  const due = failed.length > 0 ? "COMPLETED_WITH_ERRORS" : "COMPLETED";
  if (status !== due) findings.push(["P9", `it is ${status}, and ${due} would be right`]);
  for (const path of uncertain) {
    if (!mayHaveRun(evidence, path)) {
      findings.push(["P9", `${path} is called uncertain, and has never run`]);
    }
  }
  return findings;
}

/**
 * The worker that had it may have died before it could tell anybody, or may never have heard that it had
 * it: the claim was committed, and its answer was lost with Postgres.
 */
function mayHaveRun(evidence: Evidence, path: string): boolean {
  const step = path.slice(path.lastIndexOf(".") + 1);
  const { createdAt, completedAt } = evidence.instance?.view ?? {};
  const from = Date.parse(createdAt ?? "");
  const to = Date.parse(completedAt ?? "");
  return (
    firstRun(evidence, step) !== undefined ||
    evidence.faults.some(({ kind, at }) => hidesRuns.has(kind) && at >= from - 5_000 && at <= to)
  );
}

const hidesRuns = new Set(["process killed", "worker stopped", "postgres stopped"]);

function failuresOf({ plan }: Evidence, step: string): number {
  return step === "undo_b" || step === "undo_y1" ? Number(plan.input["undoFailures"]) : 0;
}

function orderFindings(evidence: Evidence, { plan }: CompensationView): readonly Finding[] {
  return plan.slice(1).flatMap((step, index): readonly Finding[] => {
    const before = plan[index] ?? "";
    const run = firstRun(evidence, step);
    const ends = ["outcome", "failed"].flatMap((kind) => entriesOf(evidence, kind, before));
    if (!run || ends.some(({ seq }) => seq < run.seq)) return [];
    return [["P9", `${step} ran before ${before} had ended, which is before it in the plan`]];
  });
}
