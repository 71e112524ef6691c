import type { Check, Finding } from "../oracle.ts";
import type { Evidence } from "./evidence.ts";

/** P2: one terminal status, for good. P13: one version of the definition. */
export const checkLives: Check = (evidence) => [
  ...seenFindings(evidence),
  ...historyFindings(evidence),
  ...restFindings(evidence),
  ...versionFindings(evidence),
];

const FINAL: readonly string[] = ["COMPLETED", "CANCELLED", "FAILED"];

/** Nobody retries in the load, so that nothing leaves FAILED either, but by a cancel. */
function seenFindings({ sightings }: Evidence): readonly Finding[] {
  for (const end of sightings.filter(({ status }) => FINAL.includes(status))) {
    const other = sightings.find(
      ({ sentAt, status }) => sentAt > end.answeredAt && status !== end.status,
    );
    if (other) return [["P2", `it was seen ${end.status}, and then ${other.status}`]];
  }
  return [];
}

function historyFindings({ instance }: Evidence): readonly Finding[] {
  if (!instance) return [];
  const { view, history } = instance;
  const findings: Finding[] = [];
  let status = "CREATED";
  for (const { type, data } of history) {
    if (type !== "workflow.status") continue;
    const { from, to } = data as { from: string; to: string };
    if (from !== status) findings.push(["P2", `history goes from ${status} on as from ${from}`]);
    if (FINAL.includes(status)) findings.push(["P2", `history shows ${status}, and then ${to}`]);
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
