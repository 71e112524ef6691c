import type { NewScheduleRun } from "@millrace/store";
import type { Services } from "../services.ts";

export function countTicks(services: Services, runs: readonly NewScheduleRun[]): void {
  for (const run of runs) countRun(services, run);
}

/** A run that waits is counted when it waits, and again when it no longer does. */
export function countRun(
  { metrics, clock }: Services,
  {
    status,
    reason,
    tickAt,
  }: Pick<NewScheduleRun, "status" | "tickAt"> & { reason?: string | null },
): void {
  metrics.scheduleTicks.add({ outcome: reason === "MISSED" ? "missed" : status.toLowerCase() });
  if (status !== "STARTED") return;
  const latenessMs = clock.now().getTime() - tickAt.getTime();
  metrics.scheduleLateness.observe({}, Math.max(0, latenessMs) / 1_000);
}
