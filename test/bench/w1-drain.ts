import { startWindow } from "./counters.ts";
import { chain3 } from "./definitions.ts";
import { withRig } from "./rig.ts";
import type { Rig } from "./rig.ts";
import type { Bench, Measured, Workload } from "./workload.ts";

/** Three-step workflows that were started before there was a worker, until the store shows the last. */
export const drains: readonly Workload[] = [
  ...[1, 2, 4].map((workers) => drainBy(workers, 2_000, "")),
  ...[1, 2, 4].map((workers) => drainBy(workers, 20_000, "L")),
];

/** 6,000 steps take about a second, in which half the code is not compiled yet; 60,000 show what lasts. */
function drainBy(workers: number, count: number, suffix: string): Workload {
  const number = workers === 1 ? "" : `X${workers}`;
  const processes = `${workers} worker process${workers > 1 ? "es" : ""}`;
  return {
    id: `W1${number}${suffix}`,
    title: `drain of ${count.toLocaleString("en")} 3-step workflows started up front, ${processes}`,
    figures: {
      "steps/s": { unit: "steps/s", isRate: true, floor: "skeleton.drain", target: 4_000 },
      "workflows/s": { unit: "workflows/s", isRate: true, floor: "bullmq.drain" },
      "first step ms": { unit: "ms", isRate: false },
    },
    run: (bench: Bench) =>
      withRig(bench, async (rig) => drain(bench, rig, bench.isQuick ? count / 2 : count, workers)),
  };
}

/**
 * The clock starts when the first worker enters its row, before it takes jobs. Workers have loaded their
 * program by then, as those of the systems that Millrace is compared with.
 */
async function drain(
  { servers }: Bench,
  rig: Rig,
  count: number,
  workers: number,
): Promise<Measured> {
  await rig.register(chain3);
  await rig.start(chain3.id, count);
  const held = await rig.holdWorkers(workers);
  const close = await startWindow(servers, rig);
  held.begin();
  const endedAt = await rig.untilCount("COMPLETED", count);
  const usage = await close();
  const startedAt = await firstWorkerAt(rig);
  const { rows } = await rig.sql.query<{ at: string }>(
    "select extract(epoch from min(completed_at))::text as at from step_executions",
  );
  const seconds = (endedAt - startedAt) / 1_000;
  return {
    values: {
      "steps/s": (3 * count) / seconds,
      "workflows/s": count / seconds,
      "first step ms": Number(rows[0]?.at) * 1_000 - startedAt,
    },
    cost: { usage, per: "step", count: 3 * count },
  };
}

/** When the first worker entered its row, in ms since 1970. */
export async function firstWorkerAt({ sql }: Rig): Promise<number> {
  const { rows } = await sql.query<{ at: string }>(
    "select extract(epoch from min(started_at))::text as at from workers",
  );
  return Number(rows[0]?.at) * 1_000;
}
