import type { NewScheduleRun } from "@millrace/store";
import type { Services } from "../services.ts";

export function countTicks({ metrics, clock }: Services, runs: readonly NewScheduleRun[]): void {
  const now = clock.now().getTime();
  for (const { status, reason, tickAt } of runs) {
    const outcome = reason === "MISSED" ? "missed" : status.toLowerCase();
    metrics.scheduleTicks.add({ outcome });
    if (status !== "STARTED") continue;
    metrics.scheduleLateness.observe({}, Math.max(0, now - tickAt.getTime()) / 1_000);
  }
}
