import { startWindow } from "./counters.ts";
import { fanOut } from "./definitions.ts";
import { startWorkers, withRig } from "./rig.ts";
import { range } from "./statistics.ts";
import { startAndWait } from "./w2-latency.ts";
import type { Workload } from "./workload.ts";

/** One workflow with many items at once, and their join: start call to result. */
export const fanOuts: readonly Workload[] = [
  fan("W4", 1_000, 0.6, false),
  fan("W4L", 10_000, 6, true),
];

function fan(id: string, count: number, target: number, isOnce: boolean): Workload {
  return {
    id,
    title: `fan-out to ${count.toLocaleString("en")} steps and their join, start call to result`,
    isOnce,
    figures: {
      "total s": {
        unit: "s",
        isRate: false,
        floor: "commit.single p50",
        perFloor: 1_000 / count,
        target,
      },
      "steps/s": { unit: "steps/s", isRate: true, floor: "skeleton.drain" },
    },
    run: (bench) =>
      withRig(bench, async (rig) => {
        await rig.register(fanOut);
        await startWorkers(rig, 1);
        await startAndWait(rig.http, fanOut.id, { items: range(20) });
        const close = await startWindow(bench.servers, rig);
        const { totalMs } = await startAndWait(rig.http, fanOut.id, { items: range(count) });
        const usage = await close();
        return {
          values: { "total s": totalMs / 1_000, "steps/s": (1_000 * count) / totalMs },
          cost: { usage, per: "step", count },
        };
      }),
  };
}
