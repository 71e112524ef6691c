import { copyWaiting } from "./copies.ts";
import { waiter } from "./definitions.ts";
import { startWorkers, withRig } from "./rig.ts";
import type { Rig } from "./rig.ts";
import { percentile } from "./statistics.ts";
import type { Workload } from "./workload.ts";

const sizes = [100, 10_000, 100_000] as const;

/** One event for one waiter among many: what it costs must not depend on how many wait. */
export const oneEvent: Workload = {
  id: "W5B",
  title: "one event against many waiters, publish call to settled",
  isOnce: true,
  figures: Object.fromEntries(
    sizes.flatMap((size) => {
      const name = size.toLocaleString("en");
      return [
        [`${name}: p50 ms`, { unit: "ms", isRate: false, floor: "bullmq.hop p50" }],
        [`${name}: p99 ms`, { unit: "ms", isRate: false, floor: "bullmq.hop p99", target: 20 }],
        [`${name}: call p99 ms`, { unit: "ms", isRate: false }],
      ];
    }),
  ),
  run: (bench) =>
    withRig(bench, async (rig) => {
      await rig.register(waiter);
      await startWorkers(rig, 1);
      const values: Record<string, number> = {};
      const rounds = bench.isQuick ? 50 : 150;
      await measure(rig, rounds, "warm");
      for (const size of bench.isQuick ? sizes.slice(0, 2) : sizes) {
        await fill(rig, size);
        const { totals, calls } = await measure(rig, rounds, `s${size}`);
        const name = size.toLocaleString("en");
        values[`${name}: p50 ms`] = percentile(totals, 50);
        values[`${name}: p99 ms`] = percentile(totals, 99);
        values[`${name}: call p99 ms`] = percentile(calls, 99);
      }
      return { values };
    }),
};

async function measure(rig: Rig, count: number, prefix: string) {
  const ids = await rig.start(waiter.id, count, (n) => ({ key: `${prefix}-${n}` }));
  const { rows } = await rig.sql.query<{ id: string; key: string }>(
    "select id, input->>'key' as key from workflow_instances where id = any($1)",
    [ids],
  );
  const totals: number[] = [];
  const calls: number[] = [];
  for (const { id, key } of rows) {
    const from = performance.now();
    const { delivered } = await rig.http.call<{ delivered: number }>("POST", "/v1/events", {
      pattern: "bench.go",
      payload: { key },
    });
    calls.push(performance.now() - from);
    if (delivered !== 1) throw new Error(`the event was delivered ${delivered} times`);
    await rig.http.call("GET", `/v1/instances/${id}?wait=30`);
    totals.push(performance.now() - from);
  }
  return { totals, calls };
}

/** Starting 100,000 would take longer than measuring them: all but one are copies of it. */
async function fill(rig: Rig, size: number): Promise<void> {
  const { rows } = await rig.sql.query<{ count: number }>(
    "select count(*)::int as count from waits where matched_event_id is null",
  );
  const [model] = await rig.start(waiter.id, 1, () => ({ key: `model-${size}` }));
  if (model === undefined) throw new Error("no instance to copy");
  await copyWaiting(rig.sql, model, size - (rows[0]?.count ?? 0) - 1);
}
