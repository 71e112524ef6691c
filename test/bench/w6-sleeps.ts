import { startWindow } from "./counters.ts";
import { sleeper } from "./definitions.ts";
import { startWorkers, withRig } from "./rig.ts";
import { percentile } from "./statistics.ts";
import type { Workload } from "./workload.ts";

/** Many workflows that sleep five seconds, all at once: how late the step after the sleep runs. */
export const sleeps: Workload = {
  id: "W6",
  title: "workflows that sleep 5 s, all at once: lateness of the step that follows",
  figures: {
    "lateness p50 ms": { unit: "ms", isRate: false, target: 50 },
    "lateness p99 ms": { unit: "ms", isRate: false, target: 250 },
    "lateness min ms": { unit: "ms", isRate: true, target: 0 },
  },
  run: (bench) =>
    withRig(bench, async (rig) => {
      const count = bench.isQuick ? 1_000 : 2_000;
      await rig.register(sleeper);
      await startWorkers(rig, 1);
      await rig.start(sleeper.id, count);
      const close = await startWindow(bench.servers, rig);
      await rig.untilCount("COMPLETED", count);
      const usage = await close();
      const { rows } = await rig.sql.query<{ late: string }>(
        `select ((stamp.output::text)::float8
           - extract(epoch from sleep.started_at) * 1000 - 5000)::text as late
         from step_executions sleep
         join step_executions stamp using (tenant_id, instance_id)
         where sleep.step_id = 'sleep' and stamp.step_id = 'stamp'`,
      );
      const late = rows.map((row) => Number(row.late));
      return {
        values: {
          "lateness p50 ms": percentile(late, 50),
          "lateness p99 ms": percentile(late, 99),
          "lateness min ms": Math.min(...late),
        },
        cost: { usage, per: "sleep", count },
      };
    }),
};
