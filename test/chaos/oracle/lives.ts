import type { Check, Finding } from "../oracle.ts";
import type { Operation, RequestRecord } from "../record.ts";
import { accepted, mayHaveHappened, overAt, type Evidence, type Sighting } from "./evidence.ts";

/**
 * P2: one terminal status, for good, but that FAILED is left by a retry or a cancel that a client has
 * asked for, which was accepted or is in doubt. P1: a retry that was accepted has been one. P13: one
 * version of the definition.
 */
export const checkLives: Check = (evidence) => [
  ...seenFindings(evidence),
  ...historyFindings(evidence),
  ...retryFindings(evidence),
  ...restFindings(evidence),
  ...versionFindings(evidence),
];

const FINAL: readonly string[] = ["COMPLETED", "CANCELLED", "FAILED"];

/** What an operator does to an instance that has FAILED, by the status that it has then. */
const LEAVING: Readonly<Record<string, Operation>> = { RUNNING: "retry", CANCELLED: "cancel" };

/** Another status after an end is that of a FAILED instance that a client had retried or cancelled. */
function seenFindings({ sightings, requests }: Evidence): readonly Finding[] {
  for (const end of sightings.filter(({ status }) => FINAL.includes(status))) {
    const other = sightings.find(
      (later) =>
        later.sentAt > end.answeredAt &&
        later.status !== end.status &&
        !(end.status === "FAILED" && requests.some((each) => mayHaveMoved(each, end, later))),
    );
    if (other) return [["P2", `it was seen ${end.status}, and then ${other.status}`]];
  }
  return [];
}

/** Whether the request may be why it was no longer FAILED: it was at work at some time between the two. */
function mayHaveMoved(request: RequestRecord, failed: Sighting, later: Sighting): boolean {
  const isCause =
    request.operation === "retry" ||
    (request.operation === "cancel" && later.status === "CANCELLED");
  return (
    isCause &&
    mayHaveHappened(request) &&
    request.sentAt <= later.answeredAt &&
    overAt(request) >= failed.sentAt
  );
}

function historyFindings({ instance, requests }: Evidence): readonly Finding[] {
  if (!instance) return [];
  const { view, history } = instance;
  const findings: Finding[] = [];
  const causes = requests.filter(mayHaveHappened);
  let status = "CREATED";
  for (const { type, data, at } of history) {
    if (type !== "workflow.status") continue;
    const { from, to } = data as { from: string; to: string };
    if (from !== status) findings.push(["P2", `history goes from ${status} on as from ${from}`]);
    if (status === "FAILED" && LEAVING[to] !== undefined) {
      // Each request for one change, whichever of those that fit ended first.
      const cause = causes
        .filter((each) => each.operation === LEAVING[to] && wasAtWork(each, Date.parse(at)))
        .toSorted((a, b) => overAt(a) - overAt(b))[0];
      if (cause) causes.splice(causes.indexOf(cause), 1);
      else findings.push(["P2", `it is FAILED, and then ${to}, which nobody has asked for`]);
    } else if (FINAL.includes(status)) {
      findings.push(["P2", `history shows ${status}, and then ${to}`]);
    }
    status = to;
  }
  if (status !== view.status) {
    findings.push(["P2", `history ends as ${status}, and the instance is ${view.status}`]);
  }
  const versions = history.map(({ version = 0 }) => version);
  const gap = versions.findIndex((version, index) => version > (versions[index - 1] ?? 0) + 1);
  if (gap >= 0)
    findings.push([
      "P2",
      `history has nothing between its versions ${versions[gap - 1]} and ${versions[gap]}`,
    ]);
  return findings;
}

/** The clocks of history and client are one; both are read in whole milliseconds. */
const toleranceMs = 5;

function wasAtWork(request: RequestRecord, at: number): boolean {
  return request.sentAt - toleranceMs <= at && at <= overAt(request) + toleranceMs;
}

/** Of an instance that is parked for its operator, a retry is another thing: a resume. */
function retryFindings(evidence: Evidence): readonly Finding[] {
  const { instance } = evidence;
  const answered = accepted(evidence, "retry").length;
  const retried = (instance?.history ?? []).filter(({ type }) => type === "workflow.retried");
  if (!instance || answered <= retried.length) return [];
  return [["P1", `${answered} retries were answered 2xx, and history has ${retried.length}`]];
}

/** Nothing that has come to rest changes any more. */
function restFindings({ instance }: Evidence): readonly Finding[] {
  if (!instance || JSON.stringify(instance.view) === JSON.stringify(instance.viewAgain)) return [];
  const { view, viewAgain } = instance;
  if (!FINAL.includes(view.status)) return [];
  return [["P2", `it changed after its end: version ${view.version}, then ${viewAgain?.version}`]];
}

/** The n-th registration of `chain` gives its tasks the marker n. */
function versionFindings({ plan, instance, told }: Evidence): readonly Finding[] {
  if (plan.workflowId !== "chain" || !instance) return [];
  const { workflowVersion } = instance.view;
  const other = told.find(({ marker }) => marker !== workflowVersion);
  if (!other) return [];
  return [
    [
      "P13",
      `it is of version ${workflowVersion}, and ran ${other.step} of version ${String(other.marker)}`,
    ],
  ];
}
