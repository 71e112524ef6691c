import type { ExpressionErrorCode } from "./errors.ts";
import { charactersPerUnit, limits } from "./limits.ts";

/** Values of the roots. A root that is absent reads as undefined. All of them are JSON values. */
export interface Scope {
  /** What now() returns: the time of the decision, an ISO-8601 UTC string. */
  readonly now: string;
  readonly workflow?: unknown;
  readonly input?: unknown;
  readonly variables?: unknown;
  readonly steps?: unknown;
  readonly event?: unknown;
  readonly item?: unknown;
  readonly index?: unknown;
  /** A root of another name, such as the `itemName` of a MAP, when `ExpressionOptions.roots` lists it. */
  readonly [root: string]: unknown;
}

/** One evaluation: what it reads, what it may still spend, and where it is. */
export interface Run {
  readonly scope: Scope;
  /** Units left of `limits.work`, or of the less that the caller allows. */
  work: number;
  /** Source offset of the operation under way, for the message when it fails. */
  at: number;
}

/** A compiled node. */
export type Code = (run: Run) => unknown;

export function startRun(scope: Scope, work: number = limits.work): Run {
  return { scope, work, at: 0 };
}

/** Thrown inside an evaluation; becomes an ExpressionError with its place on the way out. */
export class Failure extends Error {
  readonly code: ExpressionErrorCode;
  constructor(code: ExpressionErrorCode, what: string) {
    super(what);
    this.code = code;
  }
}

/** Pays for work before it is done. Throws WORK_LIMIT when the evaluation has had its share. */
export function charge(run: Run, units: number): void {
  run.work -= units;
  // Written so that a NaN is over the limit too.
  if (!(run.work >= 0)) {
    throw new Failure(
      "WORK_LIMIT",
      `the expression needs more than ${limits.work} operations; work on less data, or in a task`,
    );
  }
}

/** Pays for reading or making text. */
export function chargeText(run: Run, characters: number): void {
  charge(run, 1 + characters / charactersPerUnit);
}

/** Pays for a string that is about to be made. */
export function chargeNewText(run: Run, length: number): void {
  if (!(length <= limits.stringLength)) {
    throw new Failure(
      "STRING_TOO_LONG",
      `the expression makes a string of ${length} characters, more than ${limits.stringLength}`,
    );
  }
  chargeText(run, length);
}

/** Pays for an array or object that is about to be made. */
export function chargeNewElements(run: Run, length: number): void {
  if (!(length <= limits.arrayLength)) {
    throw new Failure(
      "ARRAY_TOO_LONG",
      `the expression makes a list of ${length} elements, more than ${limits.arrayLength}`,
    );
  }
  charge(run, 1 + length);
}
