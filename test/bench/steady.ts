import { setTimeout as sleep } from "node:timers/promises";
import { residentMb } from "./counters.ts";
import { chain3, sleeper, waiter } from "./definitions.ts";
import { startWorkers, withRig } from "./rig.ts";
import type { Rig } from "./rig.ts";
import { inFlight, median, range } from "./statistics.ts";
import { startAndWait } from "./w2-latency.ts";
import type { Bench, Measured, Workload } from "./workload.ts";

/**
 * The same load for as long as was asked for (`--minutes`), about a third of what two cores can do: whether
 * memory, waiting, tables or what vacuum leaves behind grow with time. What has ended is deleted after a minute,
 * so that after two as much goes as comes. Rows live hardly longer than vacuum sleeps (a minute), so that there are about
 * as many dead ones as live ones, and no more as time goes by. Events stay for a week whatever is set: their table grows.
 */
export const steady: Workload = {
  id: "STEADY",
  title: "a steady load of chains, events and sleeps: what grows with time",
  isOnce: true,
  figures: {
    "workflows/s": { unit: "workflows/s", isRate: true },
    "chain p50 ms, first fifth": { unit: "ms", isRate: false },
    "chain p50 ms, last ÷ first": { unit: "×", isRate: false, target: 1.3 },
    "not ended": { unit: "workflows", isRate: false, target: 0 },
    "dead rows per live row, last fifth": { unit: "rows", isRate: false, target: 1.5 },
    "dead rows, last ÷ third": { unit: "×", isRate: false, target: 1.2 },
    "instances stored, last fifth": { unit: "instances", isRate: false },
    "instances stored, last ÷ third": { unit: "×", isRate: false, target: 1.1 },
    "deleted late, s, most": { unit: "s", isRate: false, target: 5 },
    "tables MB, last fifth": { unit: "MB", isRate: false },
    "tables MB, last ÷ third": { unit: "×", isRate: false, target: 1.1 },
    "worker MB, last − second fifth": { unit: "MB", isRate: false, target: 10 },
    "api MB, last − second fifth": { unit: "MB", isRate: false, target: 10 },
    "scheduler MB, last − second fifth": { unit: "MB", isRate: false, target: 10 },
  },
  run: (bench) => withRig(bench, (rig) => measure(rig, bench), { MILLRACE_RETENTION: retention }),
};

const retention = "PT1M";

async function measure(rig: Rig, bench: Bench): Promise<Measured> {
  for (const document of [chain3, waiter, sleeper]) await rig.register(document);
  const [worker] = await startWorkers(rig, 1);
  const seconds = Math.round(bench.minutes * 60);
  const samples: Sample[] = [];
  const from = performance.now();
  for (const second of range(seconds)) {
    const [{ totalMs }] = await Promise.all([
      startAndWait(rig.http, chain3.id),
      startSome(rig, second),
    ]);
    samples.push(await sampleOf(rig, worker?.child.pid ?? 0, totalMs));
    await sleep(Math.max(0, from + (second + 1) * 1_000 - performance.now()));
  }
  const elapsedS = (performance.now() - from) / 1_000;
  await sleep(10_000);
  const count = seconds * perSecond;
  return {
    values: {
      ...valuesOf(samples),
      "workflows/s": count / elapsedS,
      "not ended": await left(rig),
    },
    note: `${bench.minutes} minutes, ${count.toLocaleString("en")} workflows`,
  };
}

const [chains, waits, sleeps] = [150, 25, 25];
const perSecond = chains + waits + sleeps;

/** Those that wait get their event a moment later. */
async function startSome({ start, http }: Rig, second: number): Promise<void> {
  const keyOf = (n: number) => `${second}-${n}`;
  await Promise.all([
    start(chain3.id, chains),
    start(sleeper.id, sleeps),
    start(waiter.id, waits, (n) => ({ key: keyOf(n) })),
  ]);
  await inFlight(range(waits), 4, (n) =>
    http.call("POST", "/v1/events", { pattern: "bench.go", payload: { key: keyOf(n) } }),
  );
}

interface Sample {
  readonly chainMs: number;
  /** Of all tables. */
  readonly live: number;
  readonly dead: number;
  readonly instances: number;
  /** How long what is to be deleted next has been due. */
  readonly lateS: number;
  /** Of all tables but that of events, with their indexes. */
  readonly tablesMb: number;
  readonly workerMb: number;
  readonly apiMb: number;
  readonly schedulerMb: number;
}

interface StoredRow {
  readonly live: number;
  readonly dead: number;
  readonly mb: number;
  readonly instances: number;
  readonly late: number;
}

async function sampleOf(rig: Rig, workerPid: number, chainMs: number): Promise<Sample> {
  const { rows } = await rig.sql.query<StoredRow>(
    `select sum(n_live_tup)::float8 as live, sum(n_dead_tup)::float8 as dead,
      (sum(pg_total_relation_size(relid)) filter (where relname <> 'events') / 1e6)::float8 as mb,
      (select count(*)::integer from workflow_instances) as instances,
      (select coalesce(greatest(0, extract(epoch from now() - min(completed_at)) - 60), 0)::float8
        from workflow_instances) as late
     from pg_stat_user_tables`,
  );
  const { live, dead, mb, instances, late } = rows[0] as StoredRow;
  const { api: [api = 0] = [], scheduler: [scheduler = 0] = [] } = rig.pids();
  return {
    chainMs,
    live,
    dead,
    instances,
    lateS: late,
    tablesMb: mb,
    workerMb: residentMb(workerPid),
    apiMb: residentMb(api),
    schedulerMb: residentMb(scheduler),
  };
}

/** The first fifth is left out for memory: processes reach their size in it. */
function valuesOf(samples: readonly Sample[]): Record<string, number> {
  const valuesIn = (number: number, read: (sample: Sample) => number) => {
    const size = samples.length / 5;
    return samples.slice(number * size, (number + 1) * size).map(read);
  };
  const fifth = (number: number, read: (sample: Sample) => number) =>
    median(valuesIn(number, read));
  // What grows until vacuum comes by, once a minute at most.
  const mean = (number: number, read: (sample: Sample) => number) => {
    const values = valuesIn(number, read);
    return values.reduce((sum, value) => sum + value, 0) / values.length;
  };
  const grown = (read: (sample: Sample) => number) => fifth(4, read) - fifth(1, read);
  const first = fifth(0, ({ chainMs }) => chainMs);
  return {
    "chain p50 ms, first fifth": first,
    "chain p50 ms, last ÷ first": fifth(4, ({ chainMs }) => chainMs) / first,
    "dead rows per live row, last fifth": mean(4, ({ dead }) => dead) / mean(4, ({ live }) => live),
    "dead rows, last ÷ third": mean(4, ({ dead }) => dead) / mean(2, ({ dead }) => dead),
    "instances stored, last fifth": fifth(4, ({ instances }) => instances),
    "instances stored, last ÷ third":
      fifth(4, ({ instances }) => instances) / fifth(2, ({ instances }) => instances),
    "deleted late, s, most": Math.max(...samples.map(({ lateS }) => lateS)),
    "tables MB, last fifth": fifth(4, ({ tablesMb }) => tablesMb),
    "tables MB, last ÷ third":
      fifth(4, ({ tablesMb }) => tablesMb) / fifth(2, ({ tablesMb }) => tablesMb),
    "worker MB, last − second fifth": grown(({ workerMb }) => workerMb),
    "api MB, last − second fifth": grown(({ apiMb }) => apiMb),
    "scheduler MB, last − second fifth": grown(({ schedulerMb }) => schedulerMb),
  };
}

async function left({ sql }: Rig): Promise<number> {
  const { rows } = await sql.query<{ count: number }>(
    "select count(*)::integer from workflow_instances where status <> 'COMPLETED'",
  );
  return rows[0]?.count ?? Number.NaN;
}
