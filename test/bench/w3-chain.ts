import { startWindow } from "./counters.ts";
import { chainOf } from "./definitions.ts";
import { startWorkers, withRig } from "./rig.ts";
import { startAndWait } from "./w2-latency.ts";
import type { Workload } from "./workload.ts";

/** One workflow with many sequential steps of 1 KB output: what a step costs late in a long life. */
export const chains: readonly Workload[] = [
  chain("W3", 1_000, 1.0, false),
  chain("W3L", 10_000, 10, true),
];

function chain(id: string, count: number, target: number, isOnce: boolean): Workload {
  return {
    id,
    title: `${count.toLocaleString("en")} sequential steps with outputs of 1 KB, start call to result`,
    isOnce,
    figures: {
      "total s": {
        unit: "s",
        isRate: false,
        floor: "commit.single p50",
        perFloor: 1_000 / count,
        target,
      },
      "first 100 steps/s": { unit: "steps/s", isRate: true },
      "last ÷ first": { unit: "×", isRate: true, target: 0.9 },
    },
    run: (bench) =>
      withRig(bench, async (rig) => {
        await rig.register(chainOf(count));
        await startWorkers(rig, 1);
        const close = await startWindow(bench.servers, rig);
        const { totalMs } = await startAndWait(rig.http, `bench_chain${count}`);
        const usage = await close();
        const { rows } = await rig.sql.query<{ at: string }>(
          `select extract(epoch from completed_at)::text as at from step_executions
           order by completion`,
        );
        const at = rows.map((row) => Number(row.at));
        const rate = (from: number, to: number) => (to - from) / ((at[to] ?? 0) - (at[from] ?? 0));
        const first = rate(0, 99);
        const last = rate(at.length - 100, at.length - 1);
        return {
          values: {
            "total s": totalMs / 1_000,
            "first 100 steps/s": first,
            "last ÷ first": last / first,
          },
          cost: { usage, per: "step", count },
        };
      }),
  };
}
