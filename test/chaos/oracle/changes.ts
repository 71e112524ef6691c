import type { Check, Finding } from "../oracle.ts";
import { accepted, entriesOf, firstRun, mayHaveHappened, type Evidence } from "./evidence.ts";
import { SUCCESSIONS } from "./shapes.ts";

/**
 * P1 for patches: what was accepted is there. P11 for pauses: nothing new starts in the meantime, nor
 * before its operator has spoken where retries are spent.
 */
export const checkChanges: Check = (evidence) => [
  ...patchFindings(evidence),
  ...pauseFindings(evidence),
  ...parkedFindings(evidence),
];

function patchFindings(evidence: Evidence): readonly Finding[] {
  const { instance, plan } = evidence;
  if (accepted(evidence, "patch").length === 0 || !instance) return [];
  const { note, mended } = instance.view.state.variables;
  if (plan.workflowId === "fragile" ? mended === true : note === plan.key) return [];
  return [
    ["P1", `a patch was answered 2xx, and the variable is ${JSON.stringify(note ?? mended)}`],
  ];
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

function parkedFindings(evidence: Evidence): readonly Finding[] {
  if (evidence.plan.workflowId !== "parked") return [];
  const spoken = evidence.requests.find(
    (each) => /^(resume|retry)$/.test(each.operation) && mayHaveHappened(each),
  );
  const again = entriesOf(evidence, "run", "flaky").find(({ attempt }) => attempt > 3);
  if (!again || (spoken && spoken.sentAt <= again.at)) return [];
  return [["P11", `attempt ${again.attempt} ran while it was parked, and nobody had resumed it`]];
}
