import { below } from "../outline.ts";
import type { ProblemList } from "../problem.ts";
import { everyMember } from "./every-member.ts";

// V8 compiles a regular expression at its first match, and looks from each part that may be left out to all that can
// come instead. Where many follow one another that takes about the sixth power of how many: 0.1 s for 20, minutes
// for 100, in which the process does nothing else, and which no time limit ends.

/** So many of them are one unit of `mostCost`. */
const unit = 20;
const power = 6;
/** Of all patterns of a schema together: some 0.3 s. */
const mostCost = 2;
/** V8 writes out what is repeated no more often than that. */
const mostWrittenOut = 3;

/** @returns Whether all patterns of a schema can be compiled in good time. */
export function checkPatternCost(schema: unknown, list: ProblemList): boolean {
  let cost = 0;
  let isGood = true;
  for (const { path, key, value } of everyMember(schema)) {
    if (key === "pattern" && typeof value === "string") look(value, path);
    if (key !== "patternProperties" || typeof value !== "object" || value === null) continue;
    for (const pattern of Object.keys(value)) look(pattern, below(path, pattern));
  }
  return isGood;

  function look(pattern: string, path: string): void {
    const optionals = optionalsIn(pattern);
    const own = (optionals / unit) ** power;
    if (cost + own <= mostCost) {
      cost += own;
      return;
    }
    isGood = false;
    const message = `has ${optionals} parts one after another that may be left out ("a?", "a{0,3}", "(a|)"), of which the patterns of a schema can have about ${unit} before it takes seconds to compile them; use * or + instead of ?, or check the text in a first task`;
    list.add(`/inputSchema${path}`, "PATTERN_TOO_COSTLY", message);
  }
}

interface Group {
  /** Of the alternative that is being read, and the most of one before it. */
  sum: number;
  most: number;
  /** Nothing of the alternative has been read; one was read that is empty. */
  isEmpty: boolean;
  hasEmpty: boolean;
}

/**
 * How many parts of a pattern may be left out, along the way through it that has most of them. What is no
 * pattern is read somehow.
 */
export function optionalsIn(pattern: string): number {
  const groups: Group[] = [];
  let group = opened();
  /** Of the part that a quantifier would repeat. */
  let last = 0;
  for (let at = 0; at < pattern.length;) {
    const token = tokenAt(pattern, at);
    at += token.length;
    const first = token[0] ?? "";
    if (first === "(") {
      groups.push(group);
      group = opened();
    } else if (first === ")" && groups.length > 0) {
      endAlternative();
      const { most, hasEmpty } = group;
      group = groups.pop() ?? opened();
      add(most + (hasEmpty ? 1 : 0));
    } else if (first === "|") {
      endAlternative();
    } else if (first === "?") {
      group.sum += 1;
    } else if (first === "+") {
      group.sum += last;
    } else if (first === "{" && token.length > 1) {
      repeat(token);
    } else if (first !== "*") {
      add(0);
    }
  }
  while (groups.length > 0) {
    endAlternative();
    const { most } = group;
    group = groups.pop() ?? opened();
    add(most);
  }
  endAlternative();
  return group.most + (group.hasEmpty ? 1 : 0);

  function add(optionals: number): void {
    group.sum += optionals;
    group.isEmpty = false;
    last = optionals;
  }

  function endAlternative(): void {
    group.most = Math.max(group.most, group.sum);
    group.hasEmpty ||= group.isEmpty;
    group.sum = 0;
    group.isEmpty = true;
  }

  function repeat(token: string): void {
    const [, from = "0", comma, to = ""] = /^\{(\d+)(,?)(\d*)\}/.exec(token) ?? [];
    const least = Number(from);
    const most = comma === "" ? least : to === "" ? Infinity : Number(to);
    if (most <= mostWrittenOut) group.sum += (most - 1) * last + most - least;
    else if (least <= mostWrittenOut) group.sum += least * last;
  }
}

function opened(): Group {
  return { sum: 0, most: 0, isEmpty: true, hasEmpty: false };
}

/** A quantifier with what makes it lazy, the beginning of a group, an escape, a class, or one character. */
const token =
  /\\[^]|\[(?:\\[^]|[^\]\\])*\]|\((?:\?(?:[:=!]|<[=!]|<[^>]*>|[a-z-]*:))?|[?*+]\??|\{\d+(?:,\d*)?\}\??|[^]/y;

function tokenAt(pattern: string, at: number): string {
  token.lastIndex = at;
  return token.exec(pattern)?.[0] ?? pattern.charAt(at);
}
