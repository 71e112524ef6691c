import { startWindow } from "./counters.ts";
import { sleeper } from "./definitions.ts";
import { startWorkers, withRig } from "./rig.ts";
import type { Rig } from "./rig.ts";
import { inFlight, percentile, range } from "./statistics.ts";
import type { Workload } from "./workload.ts";

/**
 * Many workflows that sleep five seconds: how late the step after the sleep runs. W6 starts them by single
 * calls, 32 in flight, as other engines are measured; W6B by `:batch`, so that all come due at once.
 */
export const sleeps: readonly Workload[] = [
  sleepers("W6", "started by single calls, 32 in flight", startSingly),
  sleepers("W6B", "started by :batch, so that they come due within 0.3 s", startTogether),
];

function sleepers(
  id: string,
  how: string,
  start: (rig: Rig, count: number) => Promise<unknown>,
): Workload {
  return {
    id,
    title: `workflows that sleep 5 s, ${how}: lateness of the step that follows`,
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
        await start(rig, count);
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
}

function startSingly(rig: Rig, count: number): Promise<unknown> {
  const start = (n: number) =>
    rig.http.call("POST", "/v1/instances", { workflowId: sleeper.id, input: { n } });
  return inFlight(range(count), 32, start);
}

function startTogether(rig: Rig, count: number): Promise<unknown> {
  return rig.start(sleeper.id, count);
}
