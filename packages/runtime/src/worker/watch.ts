import { lostHolds } from "@millrace/store";
import { startLoop } from "../loop.ts";
import type { Loop } from "../loop.ts";
import type { WorkerState } from "./run-worker.ts";

const watchMs = 1_000;

/**
 * Finds out which held steps are no longer this worker's, or are awaited by a cancel, and tells their
 * handlers: at once by pub/sub, within a second by the rows themselves.
 */
export function startWatch(worker: WorkerState): Loop {
  const { services, holdings } = worker;
  const unsubscribe = services.queue.wake.subscribe("step", (message) => {
    const { tenantId, instanceId, path, iteration, reason } = message;
    const held = holdings.find(String(tenantId), String(instanceId), String(path), Number(iteration));
    held?.abort.abort(new Error(typeof reason === "string" ? reason : "the step was stopped"));
  });
  const loop = startLoop({ name: "watch", log: services.log, maxDelayMs: watchMs }, async () => {
    const all = holdings.all();
    if (all.length === 0) return watchMs;
    const lost = await lostHolds(
      services.database.db,
      worker.id,
      all.map(({ snapshot, step }) => ({
        tenantId: snapshot.tenantId,
        instanceId: snapshot.id,
        path: step.path,
        iteration: step.iteration,
        fence: step.fence,
      })),
    );
    for (const { tenantId, instanceId, path, iteration, fence } of lost) {
      const held = holdings.find(tenantId, instanceId, path, iteration);
      if (held === undefined || held.step.fence !== fence) continue;
      held.abort.abort(new Error("the step was taken away or stopped"));
    }
    return watchMs;
  });
  return {
    wake: () => loop.wake(),
    async stop() {
      unsubscribe();
      await loop.stop();
    },
  };
}
