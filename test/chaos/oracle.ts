import { checkAnswers } from "./oracle/answers.ts";
import { checkCancels } from "./oracle/cancels.ts";
import { checkChildren } from "./oracle/children.ts";
import { checkCompensation } from "./oracle/compensation.ts";
import { evidenceOf, type Evidence } from "./oracle/evidence.ts";
import { checkExecutions } from "./oracle/executions.ts";
import { checkFollowers } from "./oracle/followers.ts";
import { checkJoins } from "./oracle/joins.ts";
import { checkChanges } from "./oracle/changes.ts";
import { checkLimits } from "./oracle/limits.ts";
import { checkLives } from "./oracle/lives.ts";
import { checkQueuePauses } from "./oracle/queue-pauses.ts";
import { checkRivals } from "./oracle/rivals.ts";
import { checkSchedules } from "./oracle/schedules.ts";
import { checkStreams } from "./oracle/streams.ts";
import { checkTimers } from "./oracle/timers.ts";
import { checkWaits } from "./oracle/waits.ts";
import type { RunRecord } from "./record.ts";

/** A promise that did not hold, and where to look. */
export interface Violation {
  /** Of PROMISES.md, or `leaks`, `queue pause` or `stream`. */
  readonly promise: string;
  readonly what: string;
  readonly caseNumber?: number;
  readonly instance?: string;
}

/** What is wrong with one case, in words; the promise before it. */
export type Finding = readonly [promise: string, what: string];
export type Check = (evidence: Evidence) => readonly Finding[];

const CHECKS: readonly Check[] = [
  checkAnswers,
  checkLives,
  checkExecutions,
  checkWaits,
  checkRivals,
  checkTimers,
  checkJoins,
  checkChildren,
  checkCompensation,
  checkCancels,
  checkChanges,
];

/**
 * Says where the record of a run breaks a promise. It goes by what the clients and the ledger have
 * noted, and takes the product's word only for what it can hold against them: a wrong word is a
 * violation, too. Pure, so that forged records can show that it catches what it is there for.
 */
export function judge(record: RunRecord): readonly Violation[] {
  const ofCases = evidenceOf(record).flatMap((evidence) =>
    CHECKS.flatMap((check) => check(evidence)).map(([promise, what]) => ({
      promise,
      what,
      caseNumber: evidence.plan.number,
      ...(evidence.instance ? { instance: evidence.instance.view.id } : {}),
    })),
  );
  const ofAll = [
    checkSchedules,
    checkLimits,
    checkFollowers,
    checkQueuePauses,
    checkStreams,
  ].flatMap((check) => check(record));
  return [...ofCases, ...ofAll.map(([promise, what]) => ({ promise, what }))];
}
