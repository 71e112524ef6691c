import type { Services } from "../services.ts";
import { startTimerLoop } from "./fire-timers.ts";
import { startReconciler } from "./reconcile.ts";

export interface RunningScheduler {
  close(): Promise<void>;
}

/** Fires timers and mends what was left undone. Any number may run; none leads. */
export async function runScheduler(services: Services): Promise<RunningScheduler> {
  const loops = [startTimerLoop(services), startReconciler(services)];
  services.log.info("scheduler started");
  return {
    async close() {
      await Promise.all(loops.map((loop) => loop.stop()));
      services.log.info("scheduler stopped");
    },
  };
}
