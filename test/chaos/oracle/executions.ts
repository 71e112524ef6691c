import type { StepView } from "@millrace/contract";
import type { Check, Finding } from "../oracle.ts";
import { SUCCESSIONS } from "./shapes.ts";
import { entriesOf, groupBy, recordIn, stepsOf, storedOutcome, type Evidence } from "./evidence.ts";

/**
 * P3: of each execution one outcome, which is that of a run that had the right to it; runs that were
 * fenced off have added no attempt, no result, and nothing that a later step saw.
 */
export const checkExecutions: Check = (evidence) => [
  ...keyFindings(evidence),
  ...(evidence.instance
    ? stepsOf(evidence.instance.view).flatMap(([step, view]) => stepFindings(evidence, step, view))
    : []),
  ...successionFindings(evidence),
  ...repeatedFindings(evidence),
];

/** One key for each execution, and each execution under one key. */
function keyFindings({ told }: Evidence): readonly Finding[] {
  const byStep = groupBy(told, ({ step, branch }) => `${step}${branch ? `[${branch}]` : ""}`);
  const byKey = groupBy(told, ({ key }) => key);
  return [
    ...[...byStep].flatMap(([step, entries]): readonly Finding[] => {
      const keys = new Set(entries.map(({ key }) => key));
      return keys.size > 1 ? [["P3", `${step} ran under the keys ${[...keys].join(", ")}`]] : [];
    }),
    ...[...byKey].flatMap(([key, entries]): readonly Finding[] => {
      const steps = new Set(entries.map(({ step, branch }) => `${step} ${branch ?? ""}`));
      return steps.size > 1 ? [["P3", `${[...steps].join(" and ")} ran under the key ${key}`]] : [];
    }),
  ];
}

function stepFindings(evidence: Evidence, name: string, view: StepView): readonly Finding[] {
  const { step, branch } = placeOf(name);
  const ofPlace = (kind: string) =>
    entriesOf(evidence, kind, step).filter(
      (entry) => branch === undefined || entry.branch === branch,
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

/** By the load's plan: three at most, and one more than are told to fail. */
export function attemptsExpected({ plan }: Evidence, step: string): number {
  const failures =
    step === "flaky"
      ? plan.input["failures"]
      : step === "undo_b" || step === "undo_y1"
        ? plan.input["undoFailures"]
        : 0;
  return Math.min(3, Number(failures) + 1);
}

/** A step runs after the one before it has succeeded, and every run of it sees the stored output. */
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
      const other = runs.find(({ saw }) => saw !== stored);
      if (!other || !instance) return [];
      return [
        ["P3", `${step} saw outcome ${String(other.saw)} of ${before}, and ${stored} is stored`],
      ];
    },
  );
}

/** The history of each execution has one completion at most, and no failure beside it. */
function repeatedFindings({ instance }: Evidence): readonly Finding[] {
  const ends = (instance?.history ?? []).filter(({ type }) =>
    /^workflow\.(compensation\.)?step\.(completed|failed)$/.test(type),
  );
  const byPath = groupBy(ends, (entry) => pathOf(entry));
  return [...byPath].flatMap(([path, entries]): readonly Finding[] =>
    entries.length > 1 ? [["P3", `history shows ${entries.length} ends of ${path}`]] : [],
  );
}

function pathOf(entry: object): string {
  const { path, stepId } = entry as { path?: string; stepId?: string | null };
  return path ?? stepId ?? "";
}
