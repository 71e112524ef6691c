import { setTimeout as sleep } from "node:timers/promises";
import {
  collectDefaultMetrics,
  Counter as PromCounter,
  Gauge as PromGauge,
  Histogram as PromHistogram,
  Registry,
} from "prom-client";
import { type MetricSpec, type MetricTable, metricTable } from "./metrics-table.ts";

type Labels<L extends readonly string[]> = Readonly<Record<L[number], string | number>>;

export interface Counter<L extends readonly string[]> {
  /** Adds `by`, 1 when absent. */
  add(labels: Labels<L>, by?: number): void;
}

export interface Gauge<L extends readonly string[]> {
  set(labels: Labels<L>, value: number): void;
  /** Sets all series at once; those that are not named are gone. */
  replace(series: readonly { readonly labels: Labels<L>; readonly value: number }[]): void;
}

export interface Histogram<L extends readonly string[]> {
  observe(labels: Labels<L>, value: number): void;
}

type MetricOf<S extends MetricSpec> = S["type"] extends "counter"
  ? Counter<S["labels"]>
  : S["type"] extends "gauge"
    ? Gauge<S["labels"]>
    : Histogram<S["labels"]>;

/** The metrics of the table under their keys. A label that the table does not know is a type error. */
export type Metrics = { readonly [K in keyof MetricTable]: MetricOf<MetricTable[K]> } & {
  readonly contentType: string;
  /** The exposition format of Prometheus, after the samplers have run. */
  text(): Promise<string>;
  /**
   * Runs before each exposition, to set what is read rather than counted. One that fails or takes
   * longer than two seconds leaves what it set last.
   */
  addSampler(sample: () => Promise<void> | void): void;
};

/** Values of labels that users name, told apart per process and label. */
const mostValues = 200;
const other = "(other)";
const namedByUsers: ReadonlySet<string> = new Set(["workflow", "step", "task", "queue", "route"]);
const samplerMs = 2_000;

/** Creates the metrics of a process in a registry of their own, with those of Node beside them. */
export function createMetrics(options: { readonly isWithDefaults?: boolean } = {}): Metrics {
  const registry = new Registry();
  if (options.isWithDefaults ?? true) collectDefaultMetrics({ register: registry });
  const bound = boundValues();
  const samplers: (() => Promise<void> | void)[] = [];
  const metrics = Object.fromEntries(
    Object.entries(metricTable).map(([key, spec]) => [key, createMetric(spec, registry, bound)]),
  );

  const own = {
    contentType: registry.contentType,
    async text() {
      await Promise.all(samplers.map(runSampler));
      return registry.metrics();
    },
    addSampler(sample: () => Promise<void> | void) {
      samplers.push(sample);
    },
  };
  // The table is walked above, so each key has the metric that its row describes.
  return { ...metrics, ...own } as unknown as Metrics;
}

type AnyLabels = Readonly<Record<string, string | number>>;
type Bound = (labels: AnyLabels) => AnyLabels;

function createMetric(spec: MetricSpec, registry: Registry, bound: Bound): unknown {
  const { name, help, labels, buckets } = spec;
  const settings = { name, help, labelNames: [...labels], registers: [registry] };
  switch (spec.type) {
    case "counter": {
      const counter = new PromCounter(settings);
      return { add: (values: AnyLabels, by = 1) => counter.inc(bound(values), by) };
    }
    case "gauge": {
      const gauge = new PromGauge(settings);
      return {
        set: (values: AnyLabels, value: number) => gauge.set(bound(values), value),
        replace(series: readonly { labels: AnyLabels; value: number }[]) {
          gauge.reset();
          // Several may have become the same `(other)`: then they are one sum.
          for (const { labels: values, value } of series) gauge.inc(bound(values), value);
        },
      };
    }
    case "histogram": {
      const histogram = new PromHistogram({ ...settings, buckets: [...(buckets ?? [])] });
      return {
        observe: (values: AnyLabels, value: number) => histogram.observe(bound(values), value),
      };
    }
  }
}

function boundValues(): Bound {
  const seen = new Map<string, Set<string>>();
  const bounded = (label: string, value: string | number): string | number => {
    if (!namedByUsers.has(label)) return value;
    let values = seen.get(label);
    if (!values) seen.set(label, (values = new Set()));
    const text = String(value);
    if (values.has(text)) return text;
    if (values.size >= mostValues) return other;
    values.add(text);
    return text;
  };
  return (labels) => {
    const result: Record<string, string | number> = {};
    for (const label in labels) {
      const value = labels[label];
      if (value !== undefined) result[label] = bounded(label, value);
    }
    return result;
  };
}

async function runSampler(sample: () => Promise<void> | void): Promise<void> {
  const timer = new AbortController();
  const patience = sleep(samplerMs, undefined, { signal: timer.signal });
  try {
    await Promise.race([sample(), patience]);
  } catch {
    // What it set last stays; a dependency that is away shows in the readiness report.
  }
  timer.abort();
  await patience.catch(() => {});
}
