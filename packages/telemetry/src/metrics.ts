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
  /** Adds what another process has counted. */
  count(counts: readonly Count[]): void;
};

/** Something that happened once, for a counter or a histogram. */
export interface Count {
  /** Its key in the table. */
  readonly metric: string;
  readonly labels: Readonly<Record<string, string | number>>;
  readonly value: number;
}

export interface MetricsOptions {
  /** True when absent: with those of Node. */
  readonly isWithDefaults?: boolean;
  /** Gets each thing that is counted, too. */
  readonly onCount?: ((count: Count) => void) | undefined;
}

/** Values of labels that users name, told apart per process and label. */
const mostValues = 200;
const other = "(other)";
const namedByUsers: ReadonlySet<string> = new Set(["workflow", "step", "task", "queue", "route"]);
const samplerMs = 2_000;

/** Creates the metrics of a process in a registry of their own, with those of Node beside them. */
export function createMetrics({ isWithDefaults = true, onCount }: MetricsOptions = {}): Metrics {
  const registry = new Registry();
  if (isWithDefaults) collectDefaultMetrics({ register: registry });
  const bound = boundValues();
  const samplers: (() => Promise<void> | void)[] = [];
  const metrics: Record<string, AnyMetric> = {};
  for (const [key, spec] of Object.entries(metricTable)) {
    const metric = createMetric(spec, registry, bound);
    metrics[key] = onCount === undefined ? metric : reporting(key, metric, onCount);
  }

  const own = {
    contentType: registry.contentType,
    async text() {
      await Promise.all(samplers.map(runSampler));
      return registry.metrics();
    },
    addSampler(sample: () => Promise<void> | void) {
      samplers.push(sample);
    },
    count(counts: readonly Count[]) {
      for (const { metric: key, labels, value } of counts) {
        const metric = Object.hasOwn(metrics, key) ? metrics[key] : undefined;
        (metric?.add ?? metric?.observe)?.(labels, value);
      }
    },
  };
  // The table is walked above, so each key has the metric that its row describes.
  return { ...metrics, ...own } as unknown as Metrics;
}

type AnyLabels = Readonly<Record<string, string | number>>;
type Bound = (labels: AnyLabels) => AnyLabels;

interface AnyMetric {
  readonly add?: (labels: AnyLabels, by?: number) => void;
  readonly observe?: (labels: AnyLabels, value: number) => void;
  readonly set?: (labels: AnyLabels, value: number) => void;
  readonly replace?: Gauge<readonly string[]>["replace"];
}

function createMetric(spec: MetricSpec, registry: Registry, bound: Bound): AnyMetric {
  const { name, help, labels, buckets } = spec;
  const settings = { name, help, labelNames: [...labels], registers: [registry] };
  switch (spec.type) {
    case "counter": {
      const counter = new PromCounter(settings);
      return { add: (values, by = 1) => counter.inc(bound(values), by) };
    }
    case "gauge": {
      const gauge = new PromGauge(settings);
      return {
        set: (values, value) => gauge.set(bound(values), value),
        replace(series) {
          gauge.reset();
          // Several may have become the same `(other)`: then they are one sum.
          for (const { labels: values, value } of series) gauge.inc(bound(values), value);
        },
      };
    }
    case "histogram": {
      const histogram = new PromHistogram({ ...settings, buckets: [...(buckets ?? [])] });
      return { observe: (values, value) => histogram.observe(bound(values), value) };
    }
  }
}

/** What is set rather than counted is of this process alone. */
function reporting(key: string, metric: AnyMetric, onCount: (count: Count) => void): AnyMetric {
  const { add, observe } = metric;
  const told =
    (record: (labels: AnyLabels, value: number) => void) =>
    (labels: AnyLabels, value = 1) => {
      record(labels, value);
      onCount({ metric: key, labels, value });
    };
  return {
    ...metric,
    ...(add && { add: told(add) }),
    ...(observe && { observe: told(observe) }),
  };
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
    // Without a prototype: what a task has added to that of all objects is no label.
    const result = Object.create(null) as Record<string, string | number>;
    for (const label of Object.keys(labels)) {
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
