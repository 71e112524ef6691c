import type { Arguments } from "./arguments.ts";
import type { Group } from "./faults.ts";
import { groupBy } from "./oracle/evidence.ts";
import type { Violation } from "./oracle.ts";
import { recoveriesOf, type Spread } from "./recovery.ts";
import type { RequestRecord, RunRecord } from "./record.ts";

export interface Summary {
  readonly group: Group;
  readonly record: RunRecord;
  readonly violations: readonly Violation[];
}

/** What one group came to, for people. */
export function report({ group, record, violations }: Summary): string {
  return [
    `\n== ${group}`,
    "operations",
    ...operations(record).map(([name, count]) => `  ${name.padEnd(34)}${count}`),
    "faults, and ms until the first task ran after each / until what it held up ran: p50 p99 max",
    ...recoveriesOf(record).map(({ kind, faults, firstProgress, heldUp }) =>
      [
        `  ${kind.padEnd(28)}${String(faults).padStart(5)}`,
        inWords(firstProgress),
        `${inWords(heldUp)} of ${heldUp.count}`,
      ].join("   "),
    ),
    `violations: ${violations.length}`,
    ...violations.slice(0, mostShown).map((violation) => described(violation, record)),
    ...(violations.length > mostShown ? [`  and ${violations.length - mostShown} more`] : []),
    "",
  ].join("\n");
}

/** The last lines of a run. */
export function reportAll(
  { seed, minutes, groups, rate, workers, isQuick }: Arguments,
  summaries: readonly Summary[],
): string {
  const faults = summaries.reduce((sum, { record }) => sum + record.faults.length, 0);
  const instances = summaries.reduce((sum, { record }) => sum + record.instances.length, 0);
  const violations = summaries.reduce((sum, summary) => sum + summary.violations.length, 0);
  // Once more, without their stories: of a long output often only the end is kept.
  const heads = summaries.flatMap((summary) => summary.violations.slice(0, mostShown)).map(headOf);
  return (
    ["", ...heads].join("\n") +
    `\nseed ${seed}, ${minutes} minutes each of ${groups.join(", ")}: ${instances} instances, ` +
    `${faults} faults, ${violations} violations\n` +
    `the same again: npm run test:chaos -- --seed ${seed} --minutes ${minutes} --only ${groups.join(",")} ` +
    `--rate ${rate} --workers ${workers}${isQuick ? " --quick" : ""}\n`
  );
}

/** The rest is in the record of the run. */
const mostShown = 20;
const mostLines = 60;

function operations(record: RunRecord): readonly (readonly [string, number])[] {
  const requests = [...groupBy(record.requests, nameOf)].map(
    ([name, list]) => [name, list.length] as const,
  );
  const kinds = groupBy(record.entries, ({ details }) => `task ${String(details["kind"])}`);
  return [
    ["instances", record.instances.length] as const,
    ...requests.toSorted(([a], [b]) => a.localeCompare(b)),
    ...[...kinds].map(([name, list]) => [name, list.length] as const),
    [
      "task run again after a death",
      record.entries.filter(({ details }) => Number(details["deliveries"]) > 1).length,
    ],
  ];
}

function nameOf({ operation, status }: RequestRecord): string {
  return `${operation} ${status ?? "outcome unknown"}`;
}

function inWords({ p50, p99, max }: Spread): string {
  return [p50, p99, max].map((ms) => String(Math.round(ms)).padStart(6)).join(" ");
}

function headOf({ promise, what }: Violation): string {
  return `  ${promise}: ${what}`;
}

/** A violation with all that the record has on its case, in order of time. */
function described(violation: Violation, record: RunRecord): string {
  const { caseNumber, instance } = violation;
  const head = headOf(violation);
  const plan = record.cases.find(({ number }) => number === caseNumber);
  if (plan === undefined) return head;
  const found = record.instances.find(({ view }) => view.id === instance);
  const lines = [
    ...record.requests
      .filter((request) => request.caseNumber === caseNumber && request.operation !== "look")
      .map(({ sentAt, answeredAt, operation, status, problem, published }) => {
        const answer = published ? JSON.stringify(published) : (problem ?? "");
        const tookMs = answeredAt - sentAt;
        return [sentAt, `${operation} → ${status ?? "?"} after ${tookMs} ms ${answer}`] as const;
      }),
    ...record.entries
      .filter((entry) => entry.instance === instance)
      .map(({ seq, receivedAt, step, branch, attempt, details }) => {
        const { kind, deliveries, pid, ...more } = details;
        const place = branch === undefined ? step : `${step}[${branch}]`;
        const run = `attempt ${attempt}, delivery ${String(deliveries)}, pid ${String(pid)}`;
        const text = `ledger ${seq}: ${place} ${String(kind)} (${run}) ${JSON.stringify(more)}`;
        return [receivedAt, text] as const;
      }),
    ...(found?.history ?? []).map(({ at, version, type, stepId, actor }) => {
      return [Date.parse(at), `history ${version}: ${type} ${stepId ?? ""} by ${actor}`] as const;
    }),
  ].toSorted(([a], [b]) => a - b);
  const from = lines[0]?.[0] ?? 0;
  const to = lines.at(-1)?.[0] ?? 0;
  const faults = record.faults
    .filter((fault) => fault.healedAt >= from && fault.at <= to)
    .map(({ at, kind, about }) => [at, `fault: ${kind}, ${about}`] as const);
  const story = [...lines, ...faults].toSorted(([a], [b]) => a - b).slice(0, mostLines);
  return [
    head,
    `    case ${caseNumber}, ${plan.scenario}, instance ${instance}, input ${JSON.stringify(plan.input)}`,
    ...story.map(([at, text]) => `    ${new Date(at).toISOString().slice(11)} ${text}`),
  ].join("\n");
}
