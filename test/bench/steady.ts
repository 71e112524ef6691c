import { setTimeout as sleep } from "node:timers/promises";
import { residentMb } from "./counters.ts";
import { chain3, sleeper, waiter } from "./definitions.ts";
import { startWorkers, withRig } from "./rig.ts";
import type { Rig } from "./rig.ts";
import { inFlight, median, range } from "./statistics.ts";
import { startAndWait } from "./w2-latency.ts";
import type { Workload } from "./workload.ts";

/**
 * The same load for as long as was asked for (`--minutes`), about a third of what two cores can do: whether
 * memory, waiting or what vacuum leaves behind grow with time. What has ended is kept, so the tables grow.
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
    "dead rows %, last fifth": { unit: "%", isRate: false, target: 20 },
    "worker MB, last − second fifth": { unit: "MB", isRate: false, target: 10 },
    "api MB, last − second fifth": { unit: "MB", isRate: false, target: 10 },
    "scheduler MB, last − second fifth": { unit: "MB", isRate: false, target: 10 },
  },
  run: (bench) =>
    withRig(bench, async (rig) => {
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
    }),
};

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
  /** Of all rows of the installation. */
  readonly deadPercent: number;
  readonly workerMb: number;
  readonly apiMb: number;
  readonly schedulerMb: number;
}

async function sampleOf(rig: Rig, workerPid: number, chainMs: number): Promise<Sample> {
  const { rows } = await rig.sql.query<{ dead: number }>(
    `select (100 * sum(n_dead_tup) / greatest(1, sum(n_live_tup + n_dead_tup)))::float8 as dead
     from pg_stat_user_tables`,
  );
  const { api: [api = 0] = [], scheduler: [scheduler = 0] = [] } = rig.pids();
  return {
    chainMs,
    deadPercent: rows[0]?.dead ?? Number.NaN,
    workerMb: residentMb(workerPid),
    apiMb: residentMb(api),
    schedulerMb: residentMb(scheduler),
  };
}

/** The first fifth is left out for memory: processes reach their size in it. */
function valuesOf(samples: readonly Sample[]): Record<string, number> {
  const fifth = (number: number, read: (sample: Sample) => number) => {
    const size = samples.length / 5;
    return median(samples.slice(number * size, (number + 1) * size).map(read));
  };
  const grown = (read: (sample: Sample) => number) => fifth(4, read) - fifth(1, read);
  const first = fifth(0, ({ chainMs }) => chainMs);
  return {
    "chain p50 ms, first fifth": first,
    "chain p50 ms, last ÷ first": fifth(4, ({ chainMs }) => chainMs) / first,
    "dead rows %, last fifth": fifth(4, ({ deadPercent }) => deadPercent),
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
