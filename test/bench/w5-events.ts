import { startWindow } from "./counters.ts";
import { waiter } from "./definitions.ts";
import { startWorkers, wallMs, withRig } from "./rig.ts";
import { inFlight, range } from "./statistics.ts";
import type { Workload } from "./workload.ts";

/** Many workflows wait, each for an event of its own; then the events come, 32 calls in flight. */
export const events: Workload = {
  id: "W5",
  title: "waiting workflows woken by an event each, first call to all done, 1 worker",
  figures: {
    "events/s": { unit: "events/s", isRate: true, floor: "http.echo", target: 2_000 },
    "all waiting s": { unit: "s", isRate: false },
    "sending s": { unit: "s", isRate: false },
  },
  run: (bench) =>
    withRig(bench, async (rig) => {
      const count = bench.isQuick ? 1_000 : 2_000;
      await rig.register(waiter);
      await startWorkers(rig, 1);
      const startedAt = wallMs();
      await rig.start(waiter.id, count, (n) => ({ key: `k${n}` }));
      const waitingAt = await rig.untilCount("WAITING_FOR_EVENT", count);

      const close = await startWindow(bench.servers, rig);
      const from = wallMs();
      const send = (n: number) =>
        rig.http.call("POST", "/v1/events", { pattern: "bench.go", payload: { key: `k${n}` } });
      const sending = inFlight(range(count), 32, send).then(wallMs);
      const [doneAt, sentAt] = await Promise.all([rig.untilCount("COMPLETED", count), sending]);
      const usage = await close();
      return {
        values: {
          "events/s": (count * 1_000) / (doneAt - from),
          "all waiting s": (waitingAt - startedAt) / 1_000,
          "sending s": (sentAt - from) / 1_000,
        },
        cost: { usage, per: "event", count },
      };
    }),
};
