import type { Check, Finding } from "../oracle.ts";
import { accepted, entriesOf, isAccepted, type Evidence } from "./evidence.ts";

/**
 * P4: an event that must be delivered is, and one that must not is not. P5: event, timeout and cancel
 * do not win together. P1: what was counted in an answer happens.
 */
export const checkWaits: Check = (evidence) => {
  const wait = evidence.instance?.view.state.steps["wait"];
  if (!("wait" in waitsOf(evidence)) || !evidence.instance) return [];
  const { view } = evidence.instance;
  const eventId = `event-${evidence.plan.key}`;
  const isMet = wait?.status === "COMPLETED";
  const isLate = wait?.status === "FAILED";
  const isCancelled = view.status === "CANCELLED";
  const ran = (step: string) => entriesOf(evidence, "run", step).length > 0;
  const findings: Finding[] = [];
  const find = (isWrong: boolean, promise: string, what: string) => {
    if (isWrong) findings.push([promise, what]);
  };

  find(ran("met") && ran("late"), "P5", "both the event and the timeout have won the wait");
  find(ran("met") && !isMet, "P5", `"met" ran, and the wait is ${wait?.status}`);
  find(ran("late") && !isLate, "P5", `"late" ran, and the wait is ${wait?.status}`);
  find(isMet && !isCancelled && !ran("met"), "P5", 'the event won the wait, and "met" never ran');
  find(isLate && !isCancelled && !ran("late"), "P5", 'the timeout won, and "late" never ran');
  const output = wait?.output as { id?: string } | null | undefined;
  find(isMet && output?.id !== eventId, "P4", `the wait took the event ${output?.id}`);
  const saw = entriesOf(evidence, "run", "met").find((entry) => entry.saw !== eventId);
  find(saw !== undefined, "P4", `"met" saw the event ${String(saw?.saw)}`);

  const must = mustBeMet(evidence);
  find(must === true && !isMet, "P4", `its event was published, and the wait is ${wait?.status}`);
  find(must === false && isMet, "P4", "an event from before the wait has met it, without lookback");

  const counted = deliveredAtFirst(evidence);
  find(counted === 1 && isLate, "P5", "the event was counted as delivered, and the timeout won");
  find(
    counted === 1 && !isMet && !isCancelled,
    "P1",
    `the event was counted as delivered, and the wait is ${wait?.status}`,
  );
  // A lookback finds it later, and is not counted.
  const hasLookback = evidence.plan.workflowId !== "wait" && evidence.plan.workflowId !== "race";
  find(
    counted === 0 && isMet && !hasLookback,
    "P5",
    "the event was counted as not delivered, and has won the wait",
  );
  find((counted ?? 0) > 1, "P5", `one event was delivered ${counted} times to one wait`);
  find(
    counted === 0 && must === true && !hasLookback,
    "P4",
    "the wait was open when its event was published, which was counted as not delivered",
  );
  return findings;
};

function waitsOf({ plan }: Evidence): { wait?: true } {
  return /^(wait|race)/.test(plan.workflowId) ? { wait: true } : {};
}

/** By what the client knows; undefined where a timeout or a cancel may as well have come first. */
function mustBeMet(evidence: Evidence): boolean | undefined {
  const { plan, requests } = evidence;
  const [published] = accepted(evidence, "publish");
  const firstPublish = requests.find(({ operation }) => operation === "publish");
  const firstStart = requests.find(({ operation }) => operation === "start");
  if (!published || !firstPublish || !firstStart) return undefined;
  switch (plan.scenario) {
    case "paused_wait":
    case "patched":
    case "wait": {
      const isSeenBefore = requests.some(
        ({ answeredAt, seen = [] }) =>
          answeredAt <= firstPublish.sentAt && seen.some(({ waiting }) => waiting.includes("wait")),
      );
      return isSeenBefore ? true : undefined;
    }
    case "wait_instance":
    case "wait_lookback":
      return true;
    case "stale":
      return published.answeredAt <= firstStart.sentAt ? false : undefined;
    default:
      return undefined;
  }
}

/** Of the first answer, where that was not lost; a repeated one says `duplicate`. */
function deliveredAtFirst({ requests }: Evidence): number | undefined {
  const answer = requests.find((each) => each.operation === "publish" && isAccepted(each));
  return answer?.published?.duplicate === false ? answer.published.delivered : undefined;
}
