import type { Check, Finding } from "../oracle.ts";
import { BRANCHES } from "../definitions.ts";
import { entriesOf, firstRun, recordIn, type Evidence, type Told } from "./evidence.ts";

/** P8: a join fires once, when its rule holds. P10: a MAP runs no more items at once than it may. */
export const checkJoins: Check = (evidence) => {
  if (evidence.plan.workflowId.startsWith("parallel_")) return parallelFindings(evidence);
  if (evidence.plan.workflowId === "map") return mapFindings(evidence);
  return [];
};

const NEEDED: Readonly<Record<string, number>> = {
  parallel_all: 3,
  parallel_any: 1,
  parallel_two: 2,
};

function parallelFindings(evidence: Evidence): readonly Finding[] {
  const { plan, instance } = evidence;
  const after = firstRun(evidence, "after");
  if (!after || !instance) return [];
  const findings: Finding[] = [];
  const needed = NEEDED[plan.workflowId] ?? 0;
  const done = BRANCHES.filter((name) => hasOutcome(evidence, `${name}2`, after));
  if (done.length < needed) {
    findings.push(["P8", `it went on after ${done.length} branches where ${needed} are needed`]);
  }
  const output = (instance.view.state.steps["fork"]?.output ?? {}) as Record<string, unknown>;
  for (const [name, value] of Object.entries(output)) {
    const entry = evidence.told.find(({ seq }) => seq === recordIn(value));
    if (entry?.step !== `${name}2` || entry.kind !== "outcome") {
      findings.push(["P8", `the join's output for ${name} is not an outcome of ${name}2`]);
    }
  }
  if (Object.keys(output).length < needed) {
    findings.push(["P8", `the join's output has only ${Object.keys(output).join(", ")}`]);
  }
  for (const name of BRANCHES) {
    // By then its step can only have been started by somebody who did not know of the join.
    const isLate = firstRun(evidence, `${name}2`) && !hasOutcome(evidence, `${name}1`, after);
    if (isLate) findings.push(["P8", `${name}2 was started after the join had fired`]);
  }
  return [...findings, ...firedOnce(evidence, "fork")];
}

function mapFindings(evidence: Evidence): readonly Finding[] {
  const { plan, instance } = evidence;
  const items = plan.input["items"] as readonly number[];
  const after = firstRun(evidence, "after");
  if (!after || !instance) return [];
  const findings: Finding[] = [];
  const output = (instance.view.state.steps["items"]?.output ?? []) as readonly unknown[];
  if (output.length !== items.length) {
    findings.push(["P8", `the output has ${output.length} of ${items.length} items`]);
  }
  const outcomes = output.map((value) => evidence.told.find(({ seq }) => seq === recordIn(value)));
  for (const [index, entry] of outcomes.entries()) {
    const isItsOwn = entry?.kind === "outcome" && entry.branch === String(index);
    if (!isItsOwn) findings.push(["P8", `output ${index} is not an outcome of item ${index}`]);
    else if (entry.at > after.at) findings.push(["P8", `it went on before item ${index} was done`]);
  }
  const most = mostAtOnce(evidence, outcomes);
  if (most > 3) findings.push(["P10", `${most} items ran at once, and 3 may`]);
  return [...findings, ...firedOnce(evidence, "items")];
}

/** Runs that counted are told after their claim and before their commit: these do overlap. */
function mostAtOnce(evidence: Evidence, outcomes: readonly (Told | undefined)[]): number {
  const spans = outcomes.flatMap((outcome) => {
    const run = evidence.told.find(({ seq }) => seq === outcome?.run);
    return run && outcome ? [{ from: run.seq, to: outcome.seq }] : [];
  });
  return Math.max(
    0,
    ...spans.map(({ from }) => spans.filter((span) => span.from <= from && from < span.to).length),
  );
}

function hasOutcome(evidence: Evidence, step: string, before: Told): boolean {
  return entriesOf(evidence, "outcome", step).some(({ seq }) => seq < before.seq);
}

function firedOnce({ instance }: Evidence, step: string): readonly Finding[] {
  const fired = (instance?.history ?? []).filter(
    ({ type, stepId }) => type === "workflow.step.scheduled" && stepId === "after",
  );
  if (fired.length <= 1) return [];
  return [["P8", `the join ${step} has fired ${fired.length} times`]];
}
