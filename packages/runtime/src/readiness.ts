import {
  type Checks,
  createHealth,
  type HealthReport,
  type MetricsServer,
  openMetricsServer,
} from "@millrace/telemetry";
import type { Services } from "./services.ts";
import type { Settings } from "./settings.ts";

export interface Readiness extends HealthReport {
  /** Names of the checks without which nothing goes; what the others name only slows things. */
  readonly required: readonly string[];
}

/** Tells, as often as it is asked, which of the services that a process needs answer, and take writes. */
export function watchServices({ database, queue }: Services): () => Promise<Readiness> {
  const checks: Checks = {
    postgres: () => database.tryWrite(),
    [queue.backend === "redis" ? "redis" : "queue"]: () => queue.tryWrite(),
  };
  const required = ["postgres"];
  const health = createHealth(checks);
  return async () => {
    const report = await health();
    const isReady = report.checks.every(
      ({ name, status }) => status === "ok" || !required.includes(name),
    );
    return { ...report, status: isReady ? "ok" : "failed", required };
  };
}

/** Serves the metrics and health of a process without an API, where its settings name a port. */
export async function openMetricsOf(
  services: Services,
  { host, metricsPort }: Settings,
): Promise<MetricsServer | undefined> {
  if (metricsPort === undefined) return undefined;
  const { metrics, log } = services;
  const health = watchServices(services);
  const server = await openMetricsServer({ host, port: metricsPort, metrics, health });
  log.info({ host, port: server.port }, "metrics are served");
  return server;
}
