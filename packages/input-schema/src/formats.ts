import type { FormatRule, Formats, TextPattern } from "@millrace/engine";
import type { ValidateFunction } from "ajv";
import { openAjv } from "./ajv.ts";

const checks = new Map<string, ValidateFunction>();
const ajv = openAjv();

/** What the validator knows of the formats of texts. */
export const formats: Formats = {
  has: (rule, text) => {
    const { format } = rule;
    if (!Object.hasOwn(ajv.formats, format)) return undefined;
    const check = checks.get(format) ?? ajv.compile({ format });
    checks.set(format, check);
    return check(text) && isWithinLimits(rule, text);
  },
  patternOf,
};

function isWithinLimits({ format, limits }: FormatRule, text: string): boolean {
  const compare = compareOf(ajv.formats[format]);
  return Object.entries(limits).every(([key, limit]) => {
    // Undefined where they cannot be compared: then the validator lets it pass.
    const order = compare?.(text, limit);
    return order === undefined || !isBeyond[key]?.(order);
  });
}

const isBeyond: Readonly<Record<string, (order: number) => boolean>> = {
  formatMinimum: (order) => order < 0,
  formatMaximum: (order) => order > 0,
  formatExclusiveMinimum: (order) => order <= 0,
  formatExclusiveMaximum: (order) => order >= 0,
};

type Compare = (left: string, right: string) => number | undefined;

function compareOf(format: (typeof ajv.formats)[string]): Compare | undefined {
  return typeof format === "object" && "compare" in format
    ? (format.compare as Compare | undefined)
    : undefined;
}

/** What texts of a format match at least, where the validator does not tell by a regular expression. */
const day =
  String.raw`(?:\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)|02-(?:0[1-9]|1\d|2[0-8]))` +
  String.raw`|(?:\d\d(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29)`;
/** Which hour and minute a leap second may have hangs on the zone. */
const time = String.raw`\d\d:\d\d:(?:[0-5]\d|60)(?:\.\d+)?`;
const zone = String.raw`(?:z|[+-](?:[01]\d|2[0-3])(?::?[0-5]\d)?)`;
const written: Readonly<Record<string, string>> = {
  date: `^${day}$`,
  time: `^${time}${zone}$`,
  "iso-time": `^${time}${zone}?$`,
  "date-time": String.raw`^${day}[t\s]${time}${zone}$`,
  "iso-date-time": String.raw`^${day}[t\s]${time}${zone}?$`,
  // Without its length, by which there would be too much to follow.
  hostname: String.raw`^[a-z\d](?:[a-z\d-]*[a-z\d])?(?:\.[a-z\d](?:[a-z\d-]*[a-z\d])?)*\.?$`,
  uri: String.raw`^[a-z][a-z0-9+.-]*:\S*$`,
  url: String.raw`^(?:https?|ftp)://\S+$`,
};

function patternOf(format: string): TextPattern | undefined {
  const source = written[format];
  // Other formats have texts that cannot be compared, and pass all limits: a leap second.
  const isOrdered = format === "date";
  if (source !== undefined) return { pattern: source, ignoreCase: true, isOrdered };
  const known = Object.hasOwn(ajv.formats, format) ? ajv.formats[format] : undefined;
  // Its lines are matched one by one in others, and may be where no character is.
  if (!(known instanceof RegExp) || /[gmsy]/.test(known.flags)) return undefined;
  return { pattern: known.source, ignoreCase: known.ignoreCase, isOrdered };
}
