import type { Usage } from "./counters.ts";
import { floorFigures } from "./floors.ts";
import { limitOf } from "./limits.ts";
import type { Machine } from "./machine.ts";
import { median } from "./statistics.ts";
import type { FigureRule, Measured, Workload } from "./workload.ts";

/** One round: the floors, and each workload that was measured in it. */
export interface Round {
  readonly floors: Readonly<Record<string, number>>;
  readonly measured: ReadonlyMap<string, Measured | Error>;
}

export function printFloors(machine: Machine, rounds: readonly Round[]): void {
  const { cpu, cores, memoryGb, node, postgres, redis, commit } = machine;
  print(
    `${cpu}, ${cores} cores, ${memoryGb} GB; Node ${node}, Postgres ${postgres}, Redis ${redis}`,
  );
  print(`commit ${commit}; fsync and synchronous_commit ${machine.settings["fsync"]}`);
  print("");
  print("Floors of this machine, in the same run");
  for (const [name, { unit }] of Object.entries(floorFigures)) {
    const values = rounds.flatMap(({ floors }) => floors[name] ?? []);
    print(`  ${name.padEnd(22)} ${amount(median(values)).padStart(9)} ${unit}${spread(values)}`);
  }
}

export function printWorkload(workload: Workload, rounds: readonly Round[]): void {
  const runs = rounds.flatMap(({ measured }) => measured.get(workload.id) ?? []);
  const good = runs.filter((run): run is Measured => !(run instanceof Error));
  print("");
  print(`${workload.id}: ${workload.title}`);
  for (const [name, rule] of Object.entries(workload.figures)) {
    const values = good.flatMap(({ values: of }) => of[name] ?? []);
    if (values.length === 0) continue;
    const value = median(values);
    const named = `  ${name.padEnd(22)} ${amount(value).padStart(9)} ${unitOf(name, rule)}`;
    print(`${named}${spread(values)}${beside(rule, value, rounds)}`);
  }
  const last = good.at(-1);
  if (last?.cost) {
    print(`  limited by: ${limitOf(last.cost.usage)}`);
    print(`  per ${last.cost.per}: ${costLine(last.cost.usage, last.cost.count)}`);
  }
  if (last?.note) print(`  ${last.note}`);
  for (const run of runs) if (run instanceof Error) print(`  FAILED: ${run.message}`);
}

/** The unit, unless the name ends with it. */
function unitOf(name: string, { unit }: FigureRule): string {
  return name.endsWith(unit) ? "" : unit;
}

function beside(rule: FigureRule, value: number, rounds: readonly Round[]): string {
  const { floor, target, isRate, perFloor = 1 } = rule;
  const parts: string[] = [];
  if (floor !== undefined) {
    const floors = median(rounds.flatMap(({ floors: of }) => of[floor] ?? []));
    parts.push(
      `${amount((value * perFloor) / floors)} × ${floor}${perFloor === 1 ? "" : " a step"}`,
    );
  }
  if (target !== undefined) {
    const isMet = isRate ? value >= target : value <= target;
    parts.push(`target ${isRate ? "≥" : "≤"} ${amount(target)} ${isMet ? "met" : "NOT met"}`);
  }
  return parts.length === 0 ? "" : `  ${parts.join("; ")}`;
}

function costLine(usage: Usage, count: number): string {
  const per = (value: number) => amount(value / count);
  const { api, worker, scheduler, postgres, redis, driver } = usage.cpuMs;
  const micros = (ms: number) => `${Math.round((ms * 1_000) / count)}`;
  return [
    `${per(usage.statements)} round trips`,
    `${per(usage.pages)} pages`,
    `${per(usage.commits)} commits`,
    `${per(usage.rows)} rows (${Math.round(usage.hotShare * 100)} % of updates HOT)`,
    `${per(usage.indexInserts)} index entries`,
    `${amount((usage.walBytes - usage.pageImageBytes) / count)} B WAL + ${per(usage.pageImageBytes)} B page images`,
    `${per(usage.redisCommands)} Redis commands`,
    `CPU µs: worker ${micros(worker)}, api ${micros(api)}, scheduler ${micros(scheduler)}, postgres ${micros(postgres)}, redis ${micros(redis)}, driver ${micros(driver)}`,
  ].join(", ");
}

/** What `bench/results.json` holds; it names no path and no host. */
export function resultsOf(
  machine: Machine,
  workloads: readonly Workload[],
  rounds: readonly Round[],
  isQuick: boolean,
) {
  const floors = Object.fromEntries(
    Object.entries(floorFigures).map(([name, rule]) => [
      name,
      figureOf(
        rule,
        rounds.flatMap(({ floors: of }) => of[name] ?? []),
      ),
    ]),
  );
  return {
    measuredAt: new Date().toISOString(),
    isQuick,
    machine,
    floors,
    workloads: workloads.map((workload) => {
      const runs = rounds.flatMap(({ measured }) => measured.get(workload.id) ?? []);
      const good = runs.filter((run): run is Measured => !(run instanceof Error));
      const last = good.at(-1);
      return {
        id: workload.id,
        title: workload.title,
        figures: Object.fromEntries(
          Object.entries(workload.figures).map(([name, rule]) => [
            name,
            figureOf(
              rule,
              good.flatMap(({ values }) => values[name] ?? []),
            ),
          ]),
        ),
        ...(last?.cost && {
          limitedBy: limitOf(last.cost.usage),
          cost: last.cost,
        }),
        ...(last?.note !== undefined && { note: last.note }),
        failures: runs.filter((run) => run instanceof Error).length,
      };
    }),
  };
}

function figureOf({ unit, floor, target }: FigureRule, runs: readonly number[]) {
  return {
    median: runs.length === 0 ? null : median(runs),
    unit,
    runs,
    ...(floor !== undefined && { floor }),
    ...(target !== undefined && { target }),
  };
}

function spread(values: readonly number[]): string {
  if (values.length < 2) return "";
  return ` (${amount(Math.min(...values))}–${amount(Math.max(...values))})`;
}

function amount(value: number): string {
  if (!Number.isFinite(value)) return "–";
  if (Math.abs(value) >= 100) return Math.round(value).toLocaleString("en");
  return String(Number(value.toPrecision(3)));
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
