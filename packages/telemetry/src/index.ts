export {
  checkAll,
  type Checks,
  createHealth,
  type HealthCheck,
  type HealthOptions,
  type HealthReport,
} from "./health.ts";
export {
  createLog,
  type Log,
  type LogContext,
  type LogLevel,
  logLevels,
  type LogOptions,
  withContext,
} from "./log.ts";
export {
  type Count,
  type Counter,
  createMetrics,
  type Gauge,
  type Histogram,
  type Metrics,
  type MetricsOptions,
} from "./metrics.ts";
export { type MetricSpec, metricTable } from "./metrics-table.ts";
export { type MetricsServer, openMetricsServer } from "./metrics-server.ts";
export { redactText } from "./redact.ts";
