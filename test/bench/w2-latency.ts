import { startWindow } from "./counters.ts";
import { chain3 } from "./definitions.ts";
import type { Http } from "./http.ts";
import { startWorkers, withRig } from "./rig.ts";
import { percentile, range } from "./statistics.ts";
import type { Workload } from "./workload.ts";

/** One 3-step workflow at a time, at rest: from the start call to its result, over HTTP. */
export const latency: Workload = {
  id: "W2",
  title: "one 3-step workflow at rest, start call to result over HTTP",
  figures: {
    "p50 ms": { unit: "ms", isRate: false, floor: "bullmq.hop p50", target: 8 },
    "p99 ms": { unit: "ms", isRate: false, floor: "bullmq.hop p99", target: 20 },
    "start call p50 ms": { unit: "ms", isRate: false, floor: "commit.single p50" },
  },
  run: (bench) =>
    withRig(bench, async (rig) => {
      await rig.register(chain3);
      await startWorkers(rig, 1);
      for (const _ of range(50)) await startAndWait(rig.http, chain3.id);

      const runs: Timed[] = [];
      const close = await startWindow(bench.servers, rig);
      for (const _ of range(bench.isQuick ? 100 : 200)) {
        runs.push(await startAndWait(rig.http, chain3.id));
      }
      const usage = await close();
      const totals = runs.map(({ totalMs }) => totalMs);
      return {
        values: {
          "p50 ms": percentile(totals, 50),
          "p99 ms": percentile(totals, 99),
          "start call p50 ms": percentile(
            runs.map(({ startMs }) => startMs),
            50,
          ),
        },
        cost: { usage, per: "step", count: 3 * runs.length },
      };
    }),
};

interface Timed {
  readonly startMs: number;
  readonly totalMs: number;
}

export async function startAndWait(http: Http, workflowId: string, input = {}): Promise<Timed> {
  const from = performance.now();
  const { id } = await http.call<{ id: string }>("POST", "/v1/instances", { workflowId, input });
  const startMs = performance.now() - from;
  const { status } = await http.call<{ status: string }>("GET", `/v1/instances/${id}?wait=60`);
  if (status !== "COMPLETED") throw new Error(`instance ${id} is ${status}`);
  return { startMs, totalMs: performance.now() - from };
}
