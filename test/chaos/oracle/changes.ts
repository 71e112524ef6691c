import type { Check, Finding } from "../oracle.ts";
import { accepted, entriesOf, firstRun, type Evidence } from "./evidence.ts";
import { SUCCESSIONS } from "./shapes.ts";

/** P1 for patches: what was accepted is there. P11 for pauses: nothing new starts in the meantime. */
export const checkChanges: Check = (evidence) => [
  ...patchFindings(evidence),
  ...pauseFindings(evidence),
];

function patchFindings(evidence: Evidence): readonly Finding[] {
  const { instance, plan } = evidence;
  if (accepted(evidence, "patch").length === 0 || !instance) return [];
  const { note } = instance.view.state.variables;
  if (note === plan.key) return [];
  return [["P1", `a patch was answered 2xx, and the variable is ${JSON.stringify(note)}`]];
}

function pauseFindings(evidence: Evidence): readonly Finding[] {
  const [pause] = accepted(evidence, "pause");
  const resume = evidence.requests.find(({ operation }) => operation === "resume");
  if (!pause || !resume) return [];
  return (SUCCESSIONS.get(evidence.plan.workflowId) ?? []).flatMap(
    ({ before, step }): readonly Finding[] => {
      const run = firstRun(evidence, step);
      const outcomes = entriesOf(evidence, "outcome", before);
      const wasDone = outcomes.some(({ at }) => at <= pause.answeredAt);
      if (!run || wasDone || run.at >= resume.sentAt) return [];
      return [["P11", `${step} ran while it was paused, after ${before} had ended in the pause`]];
    },
  );
}
