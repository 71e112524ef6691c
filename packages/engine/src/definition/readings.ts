import type {
  Expression,
  Problem as ExpressionProblem,
  Json,
  KnownType,
  Reads,
  Template,
  TemplateOptions,
} from "@millrace/expressions";
import { ExpressionSyntaxError, parseExpression, parseSoundParts } from "@millrace/expressions";
import { pointer } from "@millrace/contract";
import type { ProblemCode, WarningCode } from "./problem.ts";

// What comes of reading a value: what it means, and what was found in it.

/** One thing found in a value; `at` is the JSON pointer below the value. */
export interface Finding<Code> {
  readonly at: string;
  readonly code: Code;
  readonly message: string;
}

export interface Reading<T> {
  /** Undefined where there are problems. */
  readonly value?: T;
  readonly problems: readonly Finding<ProblemCode>[];
  readonly warnings: readonly Finding<WarningCode>[];
  /**
   * What was parsed, where it was an expression or a value that may hold some. Where there are problems
   * it is for looking at alone: a value's strings that have none.
   */
  readonly parsed?: Expression | Template;
  /** Its value is taken for true or false, and a missing one for false. */
  readonly isCondition?: boolean;
  /** Of what type its value must be. */
  readonly wants?: KnownType;
  /** The steps that its expressions read; absent where it has no expressions. */
  readonly steps?: Reads["steps"];
  /** For each of them the JSON pointers, below the value, of the expressions that read it. */
  readonly placesOfSteps?: () => ReadonlyMap<string, readonly string[]>;
}

export function sound<T>(value: T): Reading<T> {
  return { value, problems: [], warnings: [] };
}

export function faulty(code: ProblemCode, message: string): Reading<never> {
  return { problems: [{ at: "", code, message }], warnings: [] };
}

/** What an expression may read, and where it may stand. */
export type Options = TemplateOptions & { readonly roots: readonly string[] };

export function readExpression(text: string, options: Options): Reading<Expression> {
  return parsed(
    (each) => {
      try {
        return { found: parseExpression(text, each), problems: [] };
      } catch (error) {
        if (error instanceof ExpressionSyntaxError) return { problems: error.problems };
        throw error;
      }
    },
    options,
    ({ reads }) =>
      reads.steps === "ALL" ? new Map() : new Map(reads.steps.map((stepId) => [stepId, [""]])),
  );
}

export function readTemplate(value: Json, options: Options): Reading<Template> {
  return parsed(
    (each) => {
      const { template, problems } = parseSoundParts(value, each);
      return { found: template, problems };
    },
    options,
    () => placesOfSteps(value, options),
  );
}

interface Parsed<T> {
  readonly found?: T;
  readonly problems: readonly ExpressionProblem[];
}

function parsed<T extends Expression | Template>(
  parse: (options: Options) => Parsed<T>,
  options: Options,
  locate: (value: T) => ReadonlyMap<string, readonly string[]>,
): Reading<T> {
  const { found, problems: refused } = parse(options);
  const refusals = refused.length === 0 ? [] : findingsOf(refused, parse, options);
  if (found === undefined) return { problems: refusals, warnings: [] };
  const findings = found.warnings.map((each) => ({ ...each, at: each.pointer ?? "" }));
  // What has a fixed shape never has another member: it is a slip, and found here or never.
  const slips: Finding<ProblemCode>[] = findings.flatMap(({ at, code, message }) =>
    code === "UNKNOWN_PROPERTY" ? [{ at, code, message }] : [],
  );
  const warnings: Finding<WarningCode>[] = findings.flatMap(({ at, code, message }) =>
    code === "UNKNOWN_PROPERTY" ? [] : [{ at, code, message }],
  );
  const problems = [...refusals, ...slips];
  return {
    ...(problems.length === 0 && { value: found }),
    parsed: found,
    problems,
    warnings,
    steps: found.reads.steps,
    placesOfSteps: () => locate(found),
  };
}

/** Every string of the value is parsed once more, on its own: only who has to report asks for it. */
function placesOfSteps(value: Json, options: Options): ReadonlyMap<string, readonly string[]> {
  // Only a value that is wholly a string can be an expression without `${}`.
  const each = typeof value === "string" ? options : { ...options, stringIsExpression: false };
  const places = new Map<string, string[]>();
  for (const { at, text } of textsOf(value)) {
    const { template, problems } = parseSoundParts(text, each);
    const { steps } = template.reads;
    if (problems.length > 0 || steps === "ALL") continue;
    for (const stepId of steps) {
      const known = places.get(stepId);
      if (known === undefined) places.set(stepId, [at]);
      else known.push(at);
    }
  }
  return places;
}

/** Of what does not parse; a root that would be known if an event were at hand has a code of its own. */
function findingsOf(
  problems: readonly ExpressionProblem[],
  parse: (options: Options) => Parsed<unknown>,
  options: Options,
): readonly Finding<ProblemCode>[] {
  const placeOf = ({ pointer: at = "", offset }: ExpressionProblem): string => `${at} ${offset}`;
  const withAnEvent = parse({ ...options, roots: [...options.roots, "event"] });
  const unlessEvent = new Set(withAnEvent.problems.map(placeOf));
  return problems.map((each) => {
    const at = each.pointer ?? "";
    return each.code === "UNKNOWN_ROOT" && !unlessEvent.has(placeOf(each))
      ? { at, code: "EVENT_NOT_AT_HAND", message: noEvent }
      : { at, code: each.code, message: each.message };
  });
}

const noEvent =
  'there is no event at hand here, only in an eventCondition and in the reason of a trigger; after a wait it is steps.<id>.output, and a text is kept as it is by { "$literal": … }';

/** The strings of a value that may be expressions, with their pointers. */
function textsOf(value: Json): readonly { readonly at: string; readonly text: string }[] {
  const texts: { at: string; text: string }[] = [];
  const visit = (each: Json, path: readonly (string | number)[]): void => {
    if (typeof each === "string") texts.push({ at: pointer(path), text: each });
    if (typeof each !== "object" || each === null || Object.hasOwn(each, "$literal")) return;
    if (Array.isArray(each)) {
      for (const [index, item] of (each as readonly Json[]).entries())
        visit(item, [...path, index]);
    } else {
      for (const [key, member] of Object.entries(each)) visit(member, [...path, key]);
    }
  };
  visit(value, []);
  return texts;
}
