import type { Guards, Json, Roots, Template } from "@millrace/expressions";
import { described, ExpressionError, failuresOf, inspect } from "@millrace/expressions";
import { didYouMean, nearNames } from "./near-name.ts";
import type { Outline } from "./outline.ts";
import type { ProblemList } from "./problem.ts";
import type { Reading } from "./readings.ts";
import type { Names } from "./values.ts";
import { knownOutcome, workOfKnown } from "./known-values.ts";

/** Values that are evaluated around a step or at the end, and what they read. */
export interface StepRead {
  /** Index of the step that is entered, left or undone; undefined at the end. */
  readonly reader: number | undefined;
  /**
   * When they are evaluated: before it runs, when an attempt at it has failed, when it has run, in its
   * compensation, or when the workflow completes.
   */
  readonly moment: "ENTRY" | "FAILURE" | "EXIT" | "UNDO" | "END";
  readonly stepIds: readonly string[];
  /** Those of which the output is read. */
  readonly outputs: readonly string[];
  /** Where an output is read without a care whether it is there. */
  readonly bare: readonly BareRead[];
  /** JSON pointers of the expressions that read this one of them. */
  readonly where: (stepId: string) => readonly string[];
}

export interface BareRead {
  readonly stepId: string;
  /** JSON pointer of the expression. */
  readonly path: string;
  /** The member of the output that is read; undefined: the output. */
  readonly member?: string;
}

/** Who evaluates values, and when. */
export interface Moment extends Pick<StepRead, "reader" | "moment"> {
  /** Steps of which a condition that the moment has of its own has asked. */
  readonly told?: readonly string[];
}

export interface ReadsFound {
  readonly reads: readonly StepRead[];
  /** By index of a step, what its conditions read: ids of steps, and the other sources. */
  readonly asked: ReadonlyMap<number, ReadonlySet<string>>;
}

export interface ValuesFound extends ReadsFound {
  /** JSON pointers of the targets of ways that are never taken. */
  readonly closed: ReadonlySet<string>;
}

/** What conditions read beside steps; no step is called so. */
export const sources = { input: "#input", variables: "#variables", instance: "#instance" } as const;

/** The roots that expressions have in a place, beside those that they have everywhere. */
export interface Surroundings {
  readonly names: Names;
  /** What is known of them, and of all others. */
  readonly roots: Roots;
  /** What has been asked of their types on the way there. */
  readonly guards?: Guards | undefined;
}

export type Reader<V, T> = (value: V, names?: Names) => Reading<T>;

/** Reads values and reports what is found; what is absent or of the wrong type is passed over. */
export interface Check {
  /** Roots beyond those that there are everywhere. */
  readonly names: Names;
  text<T>(path: string, value: unknown, read: Reader<string, T>): T | undefined;
  json<T>(path: string, value: unknown, read: Reader<Json, T>): T | undefined;
}

export function valueChecker(outline: Outline, list: ProblemList) {
  const reads: StepRead[] = [];
  const asked = new Map<number, Set<string>>();
  const near = nearNames(outline.byId.keys());

  /**
   * @param at The step that is being entered, left or undone, where there is one.
   * @param around The items that the values are inside of.
   */
  const checker = (at: Moment | undefined, { names, roots, guards }: Surroundings): Check => {
    const take = <T>(path: string, reading: Reading<T>): T | undefined => {
      for (const each of reading.problems) list.add(path + each.at, each.code, each.message);
      for (const each of reading.warnings) list.warn(path + each.at, each.code, each.message);
      const bareOutputs = checkTypes(path, reading, { roots, guards }, list);
      const asks = reading.isCondition === true && at?.moment !== "UNDO";
      if (at?.reader !== undefined && asks) noteAsked(asked, at.reader, reading);
      const { steps: stepIds } = reading;
      if (stepIds === undefined || stepIds === "ALL" || stepIds.length === 0) return reading.value;

      let places: ReadonlyMap<string, readonly string[]> | undefined;
      const where = (stepId: string): readonly string[] => {
        places ??= reading.placesOfSteps?.();
        return (places?.get(stepId) ?? []).map((pointer) => path + pointer);
      };
      for (const stepId of stepIds) {
        if (outline.byId.has(stepId)) continue;
        const message = `there is no step ${quote(stepId)}${didYouMean(near(stepId))}`;
        for (const place of where(stepId)) list.add(place, "UNKNOWN_STEP", message);
      }
      if (at !== undefined) {
        const outputs = reading.parsed?.reads.stepOutputs ?? [];
        const { reader, moment, told = [] } = at;
        const minded = reading.isCondition === true ? stepIds : told;
        const bare = bareOutputs.filter(({ stepId }) => !minded.includes(stepId));
        reads.push({ reader, moment, stepIds, outputs, bare, where });
      }
      return reading.value;
    };
    return {
      names,
      text: (path, value, read) =>
        typeof value === "string" ? take(path, read(value, names)) : undefined,
      // The whole document has been found to be JSON.
      json: (path, value, read) =>
        value === undefined ? undefined : take(path, read(value as Json, names)),
    };
  };
  return { checker, found: { reads, asked } satisfies ReadsFound };
}

function noteAsked(
  asked: Map<number, Set<string>>,
  reader: number,
  { parsed }: Reading<unknown>,
): void {
  if (parsed === undefined) return;
  const { steps, variables, input, item, instance } = parsed.reads;
  const known = asked.get(reader) ?? new Set();
  asked.set(reader, known);
  for (const stepId of steps === "ALL" ? [] : steps) known.add(stepId);
  if (variables || steps === "ALL") known.add(sources.variables);
  if (input || item) known.add(sources.input);
  if (instance) known.add(sources.instance);
}

/**
 * What the schemas and the types of steps prove of an expression, and of what its place needs.
 *
 * @returns The outputs that it reads without a care whether they are there.
 */
function checkTypes(
  path: string,
  { parsed, wants, problems }: Reading<unknown>,
  { roots, guards }: Pick<Surroundings, "roots" | "guards">,
  list: ProblemList,
): StepRead["bare"] {
  if (parsed === undefined) return [];
  const known = problems.length === 0 ? knownOutcome(parsed) : undefined;
  if (known !== undefined) {
    checkKnown(path, parsed, known, wants, list);
    return [];
  }
  const { shape, mismatches, bareOutputs, bareMembers } = inspect(parsed, roots, guards);
  const bare = [...bareOutputs, ...bareMembers].map(({ pointer, ...each }) => ({
    ...each,
    path: path + pointer,
  }));
  const mistaken = new Set<string>();
  for (const { pointer, code, message } of mismatches) {
    if (code === "NEVER_EQUAL") list.warn(path + pointer, code, message);
    else {
      list.add(path + pointer, code, message);
      mistaken.add(pointer);
    }
  }
  const failures = failuresOf(parsed, workOfKnown).filter(
    ({ pointer = "" }) => !mistaken.has(pointer),
  );
  for (const failure of failures) warnOfFailure(path, failure, list);
  if (mistaken.has("")) return bare;
  if (wants === undefined || failures.length > 0) return bare;
  if (shape.types.length === 0 || shape.types.includes(wants)) return bare;
  const message = `${described({ types: [wants] })} is wanted here, and this is ${described(shape)}`;
  list.add(path, "TYPE_MISMATCH", message);
  return bare;
}

function warnOfFailure(
  path: string,
  { pointer = "", message }: ExpressionError,
  list: ProblemList,
): void {
  list.warn(path + pointer, "ALWAYS_FAILS", `this fails each time: ${message}`);
}

/** What reads nothing comes to the same in each run. */
function checkKnown(
  path: string,
  parsed: NonNullable<Reading<unknown>["parsed"]>,
  outcome: NonNullable<ReturnType<typeof knownOutcome>>,
  wants: Reading<unknown>["wants"],
  list: ProblemList,
): void {
  if (outcome instanceof ExpressionError) {
    const failures = failuresOf(parsed, workOfKnown);
    // It may as well be what the parts come to together: a value that is too large.
    for (const each of failures.length > 0 ? failures : [outcome]) warnOfFailure(path, each, list);
    return;
  }
  const { value } = outcome;
  const type = value === null ? "null" : Array.isArray(value) ? "array" : typeof value;
  if (wants === undefined || type === wants) return;
  const message = `${described({ types: [wants] })} is wanted here, and this is ${quote(value)}`;
  list.add(path, "TYPE_MISMATCH", message);
}

/** What the checks of a step have at hand. */
export interface StepContext {
  /** For what is evaluated when the step has run. */
  readonly leaving: Check;
  /** For its own condition. */
  readonly asking: Check;
  /** For what is evaluated when it is entered, as its condition holds. */
  readonly entering: Check;
  /** For what is evaluated when an attempt has failed. */
  readonly failing: Check;
  readonly list: ProblemList;
  /** Takes note of targets that are never gone to. */
  readonly close: (paths: readonly string[]) => void;
  readonly longest: number | Template;
  readonly outline: Outline;
}

export function quote(value: unknown): string {
  return JSON.stringify(value) ?? "undefined";
}
