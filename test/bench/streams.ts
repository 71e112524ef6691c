import { get } from "node:http";
import { finished } from "node:stream/promises";
import { residentMb, startWindow } from "./counters.ts";
import { waiter } from "./definitions.ts";
import { startWorkers, wallMs, withRig } from "./rig.ts";
import { inFlight, percentile, range } from "./statistics.ts";
import type { Workload } from "./workload.ts";

/** Many instances are followed, each by a stream of its own, and then all move on. */
export const streams: Workload = {
  id: "STREAMS",
  title: "memory of an API with many streams open; commit to told",
  isOnce: true,
  figures: {
    "api before MB": { unit: "MB", isRate: false },
    "api open MB": { unit: "MB", isRate: false, target: 400 },
    "api after MB": { unit: "MB", isRate: false, target: 400 },
    "told p50 ms": { unit: "ms", isRate: false },
    "told p99 ms": { unit: "ms", isRate: false },
    "events/s": { unit: "events/s", isRate: true },
  },
  run: (bench) =>
    withRig(bench, async (rig) => {
      const count = bench.isQuick ? 500 : 2_000;
      await rig.register(waiter);
      await startWorkers(rig, 1);
      const ids = await rig.start(waiter.id, count, (n) => ({ key: `k${n}` }));
      await rig.untilCount("WAITING_FOR_EVENT", count);
      const apiMb = () => residentMb(rig.pids().api?.[0] ?? 0);
      const before = apiMb();

      const lateMs: number[] = [];
      const ends: Promise<void>[] = [];
      await inFlight(ids, 32, async (id) => {
        const url = `${rig.stack.apiUrl}/v1/instances/${id}/stream`;
        const { ended } = await follow(url, (at) => lateMs.push(wallMs() - at));
        ends.push(ended);
      });
      const open = apiMb();

      const close = await startWindow(bench.servers, rig);
      const from = wallMs();
      await inFlight(range(count), 32, (n) =>
        rig.http.call("POST", "/v1/events", { pattern: "bench.go", payload: { key: `k${n}` } }),
      );
      await Promise.all(ends);
      const doneAt = wallMs();
      const usage = await close();
      return {
        values: {
          "api before MB": before,
          "api open MB": open,
          "api after MB": apiMb(),
          "told p50 ms": percentile(lateMs, 50),
          "told p99 ms": percentile(lateMs, 99),
          "events/s": (count * 1_000) / (doneAt - from),
        },
        cost: { usage, per: "event", count },
        note: `${count.toLocaleString("en")} streams`,
      };
    }),
};

/**
 * Settles with the first event.
 *
 * @param onCompleted Given the time of the commit, in ms since 1970.
 * @returns Settles when the API has ended the stream.
 */
function follow(
  url: string,
  onCompleted: (at: number) => void,
): Promise<{ readonly ended: Promise<void> }> {
  const completed = "event: workflow.completed\ndata: ";
  return new Promise((resolve, reject) => {
    get(url, { agent: false }, (response) => {
      const ended = finished(response);
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => {
        text += chunk;
        if (text.includes("\nevent: ")) resolve({ ended });
        const from = text.indexOf(completed) + completed.length;
        const to = text.indexOf("\n", from);
        if (from < completed.length || to < 0) return;
        const { at } = JSON.parse(text.slice(from, to)) as { at: string };
        onCompleted(Date.parse(at));
        text = "";
      });
    }).once("error", reject);
  });
}
