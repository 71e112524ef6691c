import type { Check, Finding } from "../oracle.ts";
import { firstRun, groupBy, recordIn, type Evidence } from "./evidence.ts";

/**
 * A parent has one child, which it waits for and whose output it takes over (P3); a cancel of the
 * parent is one of the child (P1, P11); and no child is left behind (P12).
 */
export const checkChildren: Check = (evidence) => {
  if (evidence.plan.workflowId !== "parent" || !evidence.instance) return [];
  const { children, instance, toldByChildren } = evidence;
  const findings: Finding[] = [];
  if (children.length > 1) findings.push(["P3", `it has ${children.length} children`]);
  for (const { view } of children) {
    if (!["COMPLETED", "CANCELLED"].includes(view.status)) {
      findings.push(["P12", `its child ${view.id} is ${view.status}`]);
    }
  }
  for (const [step, told] of groupBy(toldByChildren, (entry) => entry.step)) {
    const keys = new Set(told.map(({ key }) => key));
    if (keys.size > 1) findings.push(["P3", `the child's ${step} ran under ${keys.size} keys`]);
  }
  return instance.view.status === "COMPLETED"
    ? [...findings, ...completionFindings(evidence)]
    : findings;
};

function completionFindings(evidence: Evidence): readonly Finding[] {
  const { children, instance, toldByChildren } = evidence;
  const [child] = children;
  if (child?.view.status !== "COMPLETED") {
    return [["P3", `it is COMPLETED, and its child is ${child?.view.status ?? "not there"}`]];
  }
  const findings: Finding[] = [];
  const record = recordIn(instance?.view.state.steps["sub"]?.output);
  const outcome = toldByChildren.find(({ seq }) => seq === record);
  if (outcome?.kind !== "outcome" || outcome.step !== "second") {
    findings.push(["P3", `its step has entry ${record} for an output, not its child's outcome`]);
  }
  const after = firstRun(evidence, "after");
  if (after && outcome && after.seq < outcome.seq) {
    findings.push(["P3", "it went on before its child had ended"]);
  }
  return findings;
}
