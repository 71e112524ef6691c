import { parseArgs } from "node:util";
import { GROUPS, type Group } from "./faults.ts";

export interface Arguments {
  readonly seed: number;
  /** Of load and faults, for each group; the time to come to rest is on top. May be a fraction. */
  readonly minutes: number;
  readonly groups: readonly Group[];
  /** Instances started per second. */
  readonly rate: number;
  readonly workers: number;
  /** Keeps logs and data of the processes, and the record of the run, even where all is well. */
  readonly isKept: boolean;
  /** Does without writing through to the disk: faults stop processes, never the machine. */
  readonly isQuick: boolean;
}

export const usage =
  "usage: npm run test:chaos -- [--seed 1] [--minutes 2] [--only A,B,C,D] [--rate 5] [--workers 3] [--quick] [--keep]";

/** @throws Error in words for people. */
export function readArguments(args: readonly string[]): Arguments {
  const { values } = parseArgs({
    args: [...args],
    options: {
      seed: { type: "string", default: String(1 + Math.floor(Math.random() * 1_000_000)) },
      minutes: { type: "string", default: "2" },
      only: { type: "string", default: GROUPS.join(",") },
      rate: { type: "string", default: "5" },
      workers: { type: "string", default: "3" },
      quick: { type: "boolean", default: false },
      keep: { type: "boolean", default: false },
    },
  });
  const names = values.only.split(",").map((name) => name.trim().toUpperCase());
  const groups = GROUPS.filter((group) => names.includes(group));
  if (groups.length !== names.length) {
    throw new Error(`--only takes some of ${GROUPS.join(", ")}, not ${values.only}`);
  }
  return {
    seed: numberIn("--seed", values.seed, 0, 2 ** 32 - 1, { isWhole: true }),
    minutes: numberIn("--minutes", values.minutes, 0.1, 24 * 60),
    groups,
    rate: numberIn("--rate", values.rate, 0.1, 1_000),
    workers: numberIn("--workers", values.workers, 1, 20, { isWhole: true }),
    isKept: values.keep,
    isQuick: values.quick,
  };
}

function numberIn(
  name: string,
  text: string,
  least: number,
  most: number,
  { isWhole = false } = {},
): number {
  const value = Number(text);
  if (value >= least && value <= most && (!isWhole || Number.isInteger(value))) return value;
  throw new Error(`${name} takes a ${isWhole ? "whole " : ""}number from ${least} to ${most}`);
}
