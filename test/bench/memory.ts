import { setTimeout as sleep } from "node:timers/promises";
import { residentMb, startWindow } from "./counters.ts";
import { chain3 } from "./definitions.ts";
import { startWorkers, wallMs, withRig } from "./rig.ts";
import type { Workload } from "./workload.ts";

/** Resident memory of a worker at rest and after many workflows, and the rate that lasts. */
export const memory: Workload = {
  id: "MEMORY",
  title: "resident memory of one worker, and the rate over many workflows",
  isOnce: true,
  figures: {
    "worker at rest MB": { unit: "MB", isRate: false },
    "worker after MB": { unit: "MB", isRate: false, target: 250 },
    "api after MB": { unit: "MB", isRate: false, target: 400 },
    "steps/s": { unit: "steps/s", isRate: true, floor: "skeleton.drain", target: 4_000 },
  },
  run: (bench) =>
    withRig(bench, async (rig) => {
      const count = bench.isQuick ? 4_000 : 50_000;
      await rig.register(chain3);
      const [worker] = await startWorkers(rig, 1);
      await sleep(2_000);
      const atRest = residentMb(worker?.child.pid ?? 0);
      const close = await startWindow(bench.servers, rig);
      const from = wallMs();
      await rig.start(chain3.id, count);
      const doneAt = await rig.untilCount("COMPLETED", count);
      const usage = await close();
      const [api = 0] = rig.pids().api ?? [];
      return {
        values: {
          "worker at rest MB": atRest,
          "worker after MB": residentMb(worker?.child.pid ?? 0),
          "api after MB": residentMb(api),
          "steps/s": (3_000 * count) / (doneAt - from),
        },
        cost: { usage, per: "step", count: 3 * count },
        note: `${count.toLocaleString("en")} workflows, their starts over HTTP included`,
      };
    }),
};
