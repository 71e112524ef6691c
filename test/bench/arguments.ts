import { parseArgs } from "node:util";

export interface Arguments {
  /** Ids of workloads; all when empty. */
  readonly only: readonly string[];
  readonly runs: number;
  /** How long STEADY lasts. */
  readonly minutes: number;
  /** Smaller sizes and one run. */
  readonly isQuick: boolean;
  /** Keeps the data folder, for a look at logs and profiles. */
  readonly isKept: boolean;
  /** Writes V8 CPU profiles of API and workers into this folder. */
  readonly profileFolder: string | undefined;
  /** Leaves the floors out: to compare two builds by their costs. */
  readonly skipsFloors: boolean;
  /** Prints the statements on which Postgres spent most, after each workload. */
  readonly showsStatements: boolean;
}

export const usage = `usage: npm run bench -- [--only W1,W2] [--runs 3] [--minutes 60] [--quick] [--keep] [--profile folder] [--statements] [--no-floors]`;

/** @throws Error in words for people. */
export function readArguments(args: readonly string[]): Arguments {
  const { values } = parseArgs({
    args: [...args],
    options: {
      only: { type: "string" },
      runs: { type: "string" },
      minutes: { type: "string", default: "60" },
      quick: { type: "boolean", default: false },
      keep: { type: "boolean", default: false },
      profile: { type: "string" },
      statements: { type: "boolean", default: false },
      "no-floors": { type: "boolean", default: false },
    },
  });
  const runs = Number(values.runs ?? (values.quick ? 1 : 3));
  if (!Number.isInteger(runs) || runs < 1) throw new Error("--runs takes a whole number from 1");
  const minutes = Number(values.minutes);
  if (!(minutes > 0)) throw new Error("--minutes takes a number above 0");
  const only = (values.only ?? "").split(",").map((id) => id.trim().toUpperCase());
  return {
    only: only.filter((id) => id !== ""),
    runs,
    minutes,
    isQuick: values.quick,
    isKept: values.keep,
    profileFolder: values.profile,
    showsStatements: values.statements,
    skipsFloors: values["no-floors"],
  };
}
