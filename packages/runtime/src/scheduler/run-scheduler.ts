import type { Services } from "../services.ts";
import { startScheduleLoop } from "./fire-schedules.ts";
import { startAdmission } from "./admission.ts";
import { startWebhooks } from "./deliver-webhooks.ts";
import { startTimerLoop } from "./fire-timers.ts";
import { startLifecycleEvents } from "./make-lifecycle-events.ts";
import { startReconciler } from "./reconcile.ts";
import { startRetention } from "./retention.ts";
import { startConsistencySample } from "./sample-consistency.ts";

export interface RunningScheduler {
  close(): Promise<void>;
}

export interface SchedulerOptions {
  /** Instances whose consistency is checked in a minute; none when absent. */
  readonly checksPerMinute?: number;
  /** What has ended is deleted after so long; never when absent. */
  readonly retentionMs?: number;
  /** Whom webhooks may reach although the address is not a public one. */
  readonly httpAllow?: readonly string[];
}

/**
 * Fires timers, makes schedules tick, admits what waits for a slot, makes lifecycle events for those who wait for
 * them and sends them to webhooks, mends what was left undone, and deletes what has been kept for its time. Any number may run; none leads.
 */
export async function runScheduler(
  services: Services,
  { checksPerMinute = 0, retentionMs, httpAllow = [] }: SchedulerOptions = {},
): Promise<RunningScheduler> {
  const loops = [
    startTimerLoop(services),
    startScheduleLoop(services),
    startAdmission(services),
    startReconciler(services),
    startLifecycleEvents(services),
    startWebhooks(services, httpAllow),
    ...(checksPerMinute > 0 ? [startConsistencySample(services, checksPerMinute)] : []),
    ...(retentionMs !== undefined ? [startRetention(services, retentionMs)] : []),
  ];
  services.log.info("scheduler started");
  return {
    async close() {
      await Promise.all(loops.map((loop) => loop.stop()));
      services.log.info("scheduler stopped");
    },
  };
}
