import { groupBy } from "./oracle/evidence.ts";
import type { FaultRecord, RunRecord } from "./record.ts";

/** How soon things went on after faults of one kind. */
export interface Recovery {
  readonly kind: string;
  readonly faults: number;
  /** After each fault was over, and Postgres and Redis were both there: until any task began to run. */
  readonly firstProgress: Spread;
  /**
   * What the fault had held up: steps whose time had come before it was over, each until it began to
   * run, and runs that died with their worker, each until the next run of the same execution.
   */
  readonly heldUp: Spread;
}

/** In milliseconds. */
export interface Spread {
  readonly count: number;
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}

export function recoveriesOf(record: RunRecord): readonly Recovery[] {
  const runs = record.entries.filter(({ details }) => details["kind"] === "run");
  const runTimes = runs.map(({ receivedAt }) => receivedAt);
  const waits = [...handOvers(record), ...reruns(record)];
  const outages = record.faults.filter(({ kind }) => isOutage(kind));
  return [...groupBy(record.faults, ({ kind }) => kind)].map(([kind, faults]) => ({
    kind,
    faults: faults.length,
    firstProgress: spreadOf(
      faults.flatMap(({ healedAt }) => {
        const from = whenAllIsThere(healedAt, outages);
        const next = runTimes.find((at) => at > from);
        return next === undefined ? [] : [next - from];
      }),
    ),
    heldUp: spreadOf(faults.flatMap((fault) => heldUpBy(fault, waits))),
  }));
}

/** Nothing can begin while one of these lasts, whatever else is over. */
function isOutage(kind: string): boolean {
  return ["postgres stopped", "redis stopped", "redis restarted empty", "redis full"].includes(
    kind,
  );
}

/** That moment, or the end of the outages that it falls into. */
function whenAllIsThere(moment: number, outages: readonly FaultRecord[]): number {
  const around = outages.find(({ at, healedAt }) => at <= moment && healedAt > moment);
  return around === undefined ? moment : whenAllIsThere(around.healedAt, outages);
}

/** Something that was to happen, and when it did. */
interface Wait {
  readonly dueAt: number;
  readonly at: number;
  /** Of the run that it continues; undefined where a step follows another one. */
  readonly pid?: number;
}

function heldUpBy({ at, healedAt, pid }: FaultRecord, waits: readonly Wait[]): readonly number[] {
  // Whoever takes over from a worker that stands still does not wait for it to go on.
  const over = pid === undefined ? healedAt : at;
  return waits
    .filter((wait) => wait.dueAt <= over && wait.at >= at && (wait.pid ?? pid) === pid)
    .map((wait) => Math.max(0, wait.at - Math.max(over, wait.dueAt)));
}

/** First runs of a step that owe nothing to a clock, from the outcome before them. */
function handOvers({ cases, entries, instances }: RunRecord): readonly Wait[] {
  const scenarios = new Map(cases.map(({ key, scenario }) => [key, scenario]));
  const keys = new Map(instances.map(({ view }) => [view.id, view.correlationId ?? ""]));
  return [...groupBy(entries, ({ instance }) => instance)].flatMap(([instance, told]) => {
    const scenario = scenarios.get(keys.get(instance) ?? "") ?? "";
    if (!/^(chain|parallel|map)/.test(scenario)) return [];
    return told.slice(1).flatMap((entry, index): readonly Wait[] => {
      const before = told[index];
      const isHandOver =
        before?.details["kind"] === "outcome" &&
        entry.details["kind"] === "run" &&
        entry.details["deliveries"] === 1;
      return isHandOver ? [{ dueAt: before.receivedAt, at: entry.receivedAt }] : [];
    });
  });
}

function reruns({ entries }: RunRecord): readonly Wait[] {
  return [...groupBy(entries, ({ idempotencyKey }) => idempotencyKey).values()].flatMap((told) => {
    const runs = told.filter(({ details }) => details["kind"] === "run");
    return runs.slice(1).flatMap((run, index): readonly Wait[] => {
      const before = runs[index];
      if (!before || before.attempt !== run.attempt) return [];
      return [{ dueAt: before.receivedAt, at: run.receivedAt, pid: Number(before.details["pid"]) }];
    });
  });
}

export function spreadOf(values: readonly number[]): Spread {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (part: number) =>
    sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] ?? 0;
  return { count: sorted.length, p50: at(0.5), p99: at(0.99), max: sorted.at(-1) ?? 0 };
}
