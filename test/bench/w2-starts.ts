import { startWindow } from "./counters.ts";
import { chain3 } from "./definitions.ts";
import { withRig } from "./rig.ts";
import { inFlight, range } from "./statistics.ts";
import type { Workload } from "./workload.ts";

/** How fast instances are taken in, each durable when it is answered. No worker runs meanwhile. */
export const singleStarts: Workload = {
  id: "STARTS",
  title: "starts over HTTP, single calls, 32 in flight, no worker",
  figures: {
    "starts/s": { unit: "starts/s", isRate: true, floor: "http.echo", target: 2_500 },
  },
  run: (bench) =>
    withRig(bench, async (rig) => {
      await rig.register(chain3);
      const start = (n: number) =>
        rig.http.call("POST", "/v1/instances", { workflowId: chain3.id, input: { n } });
      await inFlight(range(500), 32, start);

      const count = bench.isQuick ? 2_000 : 5_000;
      const close = await startWindow(bench.servers, rig);
      const from = performance.now();
      await inFlight(range(count), 32, start);
      const seconds = (performance.now() - from) / 1_000;
      const usage = await close();
      return {
        values: { "starts/s": count / seconds },
        cost: { usage, per: "start", count },
      };
    }),
};

export const batchStarts: Workload = {
  id: "BATCH",
  title: "starts over HTTP, :batch of 500, 2 in flight, no worker",
  figures: {
    "starts/s": { unit: "starts/s", isRate: true, floor: "update.batched", target: 10_000 },
  },
  run: (bench) =>
    withRig(bench, async (rig) => {
      await rig.register(chain3);
      await rig.start(chain3.id, 1_000);

      const count = bench.isQuick ? 4_000 : 10_000;
      const close = await startWindow(bench.servers, rig);
      const from = performance.now();
      await rig.start(chain3.id, count);
      const seconds = (performance.now() - from) / 1_000;
      const usage = await close();
      return {
        values: { "starts/s": count / seconds },
        cost: { usage, per: "start", count },
      };
    }),
};
