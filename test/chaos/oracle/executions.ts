import type { StepView } from "@millrace/contract";
import type { Check, Finding } from "../oracle.ts";
import { SUCCESSIONS } from "./shapes.ts";
import {
  entriesOf,
  groupBy,
  keysOf,
  recordIn,
  stepsOf,
  storedOutcome,
  type Evidence,
  type Told,
} from "./evidence.ts";

/**
 * P3: of each execution one outcome, which is that of a run that had the right to it; runs that were
 * fenced off have added no attempt, no result, and nothing that a later step saw.
 */
export const checkExecutions: Check = (evidence) => [
  ...keyFindings(evidence),
  ...failureFindings(evidence),
  ...(evidence.instance
    ? stepsOf(evidence.instance.view).flatMap(([step, view]) => stepFindings(evidence, step, view))
    : []),
  ...successionFindings(evidence),
  ...repeatedFindings(evidence),
];

/** One key for each execution, and each execution under one key. */
function keyFindings(evidence: Evidence): readonly Finding[] {
  const { told } = evidence;
  const byStep = groupBy(told, ({ step, branch }) => `${step}${branch ? `[${branch}]` : ""}`);
  const byKey = groupBy(told, ({ key }) => key);
  return [
    ...[...byStep].flatMap(([name, entries]): readonly Finding[] => {
      const keys = new Set(entries.map(({ key }) => key));
      const due = executionsDue(evidence, entries[0]?.step ?? "");
      if (keys.size <= due) return [];
      return [["P3", `${name} ran under the keys ${[...keys].join(", ")}, and ${due} were due`]];
    }),
    ...[...byKey].flatMap(([key, entries]): readonly Finding[] => {
      const steps = new Set(entries.map(({ step, branch }) => `${step} ${branch ?? ""}`));
      return steps.size > 1 ? [["P3", `${[...steps].join(" and ")} ran under the key ${key}`]] : [];
    }),
  ];
}

/** Each retry is one more of the step that had failed, and of those from which on it was to go. */
function executionsDue({ plan, instance }: Evidence, step: string): number {
  if (plan.workflowId !== "fragile") return 1;
  const runsAgain = step === "breaks" || step === plan.input["from"];
  const retries = (instance?.history ?? []).filter(({ type }) => type === "workflow.retried");
  return runsAgain ? 1 + retries.length : 1;
}

/** A step that is retried has failed: each of its attempts, in every execution but the last. */
function failureFindings(evidence: Evidence): readonly Finding[] {
  const entries = evidence.told.filter(({ step }) => step === "breaks");
  return keysOf(entries)
    .slice(0, -1)
    .flatMap((key): readonly Finding[] => {
      const ofKey = entries.filter((entry) => entry.kind === "failed" && entry.key === key);
      const failed = new Set(ofKey.map(({ attempt }) => attempt));
      if (failed.size >= mostAttempts) return [];
      return [["P3", `breaks was retried after ${failed.size} of its attempts had failed`]];
    });
}

function stepFindings(evidence: Evidence, name: string, view: StepView): readonly Finding[] {
  const { step, branch } = placeOf(name);
  const last = keysOf(evidence.told.filter((entry) => entry.step === step)).at(-1);
  // What is seen of a step that was retried is its last execution.
  const isOfLast = executionsDue(evidence, step) > 1 ? ({ key }: Told) => key === last : () => true;
  const ofPlace = (kind: string) =>
    entriesOf(evidence, kind, step).filter(
      (entry) => isOfLast(entry) && (branch === undefined || entry.branch === branch),
    );
  const runs = ofPlace("run");
  const isTask = view.type === "TASK" || view.type === undefined;
  if (!isTask) return [];
  const findings: Finding[] = [];
  if (view.status === "COMPLETED") {
    const outcome = ofPlace("outcome").find(({ seq }) => seq === recordIn(view.output));
    if (outcome?.attempt !== view.attempts) {
      findings.push([
        "P3",
        `the output of ${name} names entry ${recordIn(view.output)} of the ledger, which is not an outcome of its attempt ${view.attempts}`,
      ]);
    }
  }
  const expected = attemptsExpected(evidence, step);
  const isOver = view.status === "COMPLETED" || view.status === "FAILED";
  if (isOver && view.attempts !== expected) {
    findings.push(["P3", `${step} has ${view.attempts} attempts where ${expected} were due`]);
  }
  const beyond = runs.find(({ attempt }) => attempt > view.attempts);
  if (beyond) {
    findings.push([
      "P3",
      `${step} ran as attempt ${beyond.attempt}, and ${view.attempts} are counted`,
    ]);
  }
  for (const { attempt } of runs) {
    const failed = ofPlace("failed").some((each) => each.attempt === attempt - 1);
    if (attempt > 1 && !failed) {
      findings.push([
        "P3",
        `${step} ran as attempt ${attempt} though attempt ${attempt - 1} has not failed`,
      ]);
      break;
    }
  }
  return findings;
}

/** `items[2].item` is the step `item` of the item 2, and told as such; others go by their step. Without an item it may be any. */
function placeOf(name: string): { readonly step: string; readonly branch: string | undefined } {
  const inItem = /\[(\d+)\]\.(\w+)$/.exec(name);
  return { step: inItem?.[2] ?? name.split(".").at(-1) ?? name, branch: inItem?.[1] };
}

const mostAttempts = 3;

/** By the load's plan: one more than are told to fail, and three at most, unless it is given three more. */
export function attemptsExpected(evidence: Evidence, step: string): number {
  const most = evidence.plan.workflowId === "parked" ? 2 * mostAttempts : mostAttempts;
  return Math.min(most, failuresTold(evidence, step) + 1);
}

function failuresTold({ plan, instance }: Evidence, step: string): number {
  switch (step) {
    case "flaky":
      return Number(plan.input["failures"]);
    case "undo_b":
    case "undo_y1":
      return Number(plan.input["undoFailures"]);
    case "breaks":
      return instance?.view.state.steps[step]?.status === "COMPLETED" ? 0 : mostAttempts;
    default:
      return 0;
  }
}

/**
 * A step runs after the one before it has succeeded, and every run of it sees the stored output. Where a
 * retry has made several executions of it, the stored output is what the last one sees; each of the
 * others sees one outcome.
 */
function successionFindings(evidence: Evidence): readonly Finding[] {
  const { plan, instance } = evidence;
  return (SUCCESSIONS.get(plan.workflowId) ?? []).flatMap(
    ({ before, step }): readonly Finding[] => {
      const runs = entriesOf(evidence, "run", step);
      const [first] = runs;
      if (!first) return [];
      const outcomes = entriesOf(evidence, "outcome", before);
      if (!outcomes.some(({ at }) => at <= first.at)) {
        return [["P3", `${step} ran before ${before} had come to an outcome`]];
      }
      const stored = storedOutcome(evidence, before)?.seq;
      const keys = keysOf(runs);
      return keys.flatMap((key, index): readonly Finding[] => {
        const ofKey = runs.filter((run) => run.key === key);
        const isLast = index === keys.length - 1;
        const right = isLast ? stored : outcomes.find(({ seq }) => seq === ofKey[0]?.saw)?.seq;
        const other = ofKey.find(({ saw }) => saw !== right);
        if (!other || !instance) return [];
        return [
          ["P3", `${step} saw outcome ${String(other.saw)} of ${before}, and ${right} is stored`],
        ];
      });
    },
  );
}

/** The history of each execution has one completion at most, and no failure beside it. */
function repeatedFindings(evidence: Evidence): readonly Finding[] {
  const ends = (evidence.instance?.history ?? []).filter(({ type }) =>
    /^workflow\.(compensation\.)?step\.(completed|failed)$/.test(type),
  );
  const byPath = groupBy(ends, (entry) => pathOf(entry));
  return [...byPath].flatMap(([path, entries]): readonly Finding[] =>
    entries.length > executionsDue(evidence, path)
      ? [["P3", `history shows ${entries.length} ends of ${path}`]]
      : [],
  );
}

function pathOf(entry: object): string {
  const { path, stepId } = entry as { path?: string; stepId?: string | null };
  return path ?? stepId ?? "";
}
