import type { FormatRule, Formats } from "./keywords.ts";
import { isMatch, stepsOf } from "./keywords.ts";
import { namedIn } from "./kinds.ts";

/** Schemas that are looked at, all together; beyond that anything may fit. */
const maxLooks = 50_000;
/** Steps of a regular expression that take as long as a look at a schema. */
const stepsOfLook = 1_000;

/** What all that is found out of one schema shares: the schema, and how much more may be looked at. */
export interface Look {
  readonly root: unknown;
  readonly named: ReturnType<typeof namedIn>;
  readonly formats: Formats;
  /** Whether there is time left for what takes as long as so many looks at a schema. */
  pay(looks?: number): boolean;
  /** Whether a text matches a pattern; undefined where that takes long, or is no pattern. */
  matches(pattern: string, text: string): boolean | undefined;
  isOfFormat(rule: FormatRule, text: string): boolean | undefined;
}

export function openLook(
  root: unknown,
  formats: Formats,
  { most = maxLooks, mostOfText = Infinity } = {},
): Look {
  let left = most;
  const pay = (looks = 1): boolean => {
    if (looks >= left) return false;
    left -= looks;
    return true;
  };
  const paySteps = (steps: number): boolean => {
    const looks = Math.ceil(steps / stepsOfLook);
    return looks <= mostOfText && pay(looks);
  };
  return {
    root,
    named: namedIn(root),
    formats,
    pay,
    matches: (pattern, text) =>
      paySteps(stepsOf(pattern, text)) ? isMatch(pattern, text) : undefined,
    // None takes longer than that.
    isOfFormat: (rule, text) => (paySteps(text.length ** 2) ? formats.has(rule, text) : undefined),
  };
}
