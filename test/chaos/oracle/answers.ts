import type { Check, Finding } from "../oracle.ts";
import { accepted, mayHaveHappened, type Evidence } from "./evidence.ts";

/**
 * P1: what was answered 2xx is there and has its effect, once, and nobody ever sees an earlier state
 * again. P12: everything comes to its end.
 */
export const checkAnswers: Check = (evidence) => [
  ...startFindings(evidence),
  ...triggerFindings(evidence),
  ...endFindings(evidence),
  ...sightingFindings(evidence),
];

function startFindings({ plan, requests, instances }: Evidence): readonly Finding[] {
  const ids = new Set(
    requests
      .filter(({ operation }) => operation === "start")
      .flatMap(({ seen = [] }) => seen.map(({ id }) => id)),
  );
  const findings: Finding[] = [];
  for (const id of ids) {
    if (!instances.some(({ view }) => view.id === id)) {
      findings.push(["P1", `the start of ${id} was answered 2xx, and there is no such instance`]);
    }
  }
  if (ids.size > 1) {
    findings.push(["P1", `one start was answered with ${ids.size} instances: ${[...ids].join()}`]);
  }
  const begins = plan.scenario === "triggered" ? "publish" : "start";
  const starts = requests.filter(({ operation }) => operation === begins).length;
  if (instances.length > 1 || (starts === 0 && instances.length > 0)) {
    const found = instances.map(({ view }) => view.id).join(", ");
    findings.push(["P1", `${plan.key} was started as one, and is ${found}`]);
  }
  return findings;
}

/** An event that was accepted has started one instance, and its first answer says so. */
function triggerFindings(evidence: Evidence): readonly Finding[] {
  if (evidence.plan.scenario !== "triggered") return [];
  const [first] = accepted(evidence, "publish");
  if (!first) return [];
  if (!evidence.instance) return [["P1", "the event that was to start it was answered 2xx"]];
  const { duplicate, started } = first.published ?? {};
  if (duplicate !== false || started === 1) return [];
  return [["P1", `its event was counted as the start of ${started} instances`]];
}

/** As which it must end; undefined where more than one end is right. */
export function endOf(evidence: Evidence): string | undefined {
  const { plan, requests } = evidence;
  if (accepted(evidence, "cancel").length > 0) return "CANCELLED";
  if (plan.scenario === "saga_triggered") {
    return accepted(evidence, "publish").length > 0 ? "CANCELLED" : undefined;
  }
  // One that was not answered may have been accepted.
  if (requests.some(({ operation }) => operation === "cancel")) return undefined;
  if (plan.workflowId === "fragile") return endOfFragile(evidence);
  if (plan.scenario === "retried" && Number(plan.input["failures"]) >= 3) return "FAILED";
  return "COMPLETED";
}

/** FAILED until somebody mends it, and retries it then. */
function endOfFragile(evidence: Evidence): string | undefined {
  const mayHave = (operation: string) =>
    evidence.requests.some((each) => each.operation === operation && mayHaveHappened(each));
  if (!mayHave("patch") || !mayHave("retry")) return "FAILED";
  const mended = accepted(evidence, "patch").at(0)?.answeredAt ?? Infinity;
  const isMended = accepted(evidence, "retry").some(({ sentAt }) => sentAt >= mended);
  return isMended ? "COMPLETED" : undefined;
}

function endFindings(evidence: Evidence): readonly Finding[] {
  const { instance } = evidence;
  if (!instance) return [];
  const { view, why } = instance;
  if (!["COMPLETED", "FAILED", "CANCELLED"].includes(view.status)) {
    return [["P12", `it is still ${view.status}; why: ${JSON.stringify(why)}`]];
  }
  if (view.compensation?.status === "IN_PROGRESS") {
    return [["P12", `its compensation has not ended; why: ${JSON.stringify(why)}`]];
  }
  const end = endOf(evidence);
  if (end === undefined || view.status === end) return [];
  const error = view.error ? `: ${JSON.stringify(view.error)}` : "";
  return [["P1", `it should have ended as ${end}, and is ${view.status}${error}`]];
}

/** A request that was sent after an answer must see at least what that answer has shown. */
function sightingFindings({ sightings }: Evidence): readonly Finding[] {
  const findings: Finding[] = [];
  for (const later of sightings) {
    const seenBefore = sightings.filter(({ answeredAt }) => answeredAt < later.sentAt);
    const newest = Math.max(0, ...seenBefore.map(({ version }) => version));
    if (later.version >= newest) continue;
    findings.push([
      "P1",
      `version ${newest} had been seen, and then it was ${later.version} again`,
    ]);
    break;
  }
  return findings;
}
