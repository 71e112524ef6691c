import type { Metric as PromMetric, Registry } from "prom-client";
import type { MetricSpec } from "./metrics-table.ts";

/**
 * Counters and histograms, of which a worker counts half a dozen things a step. A series is found by the values of
 * its labels as they are given: prom-client copies, checks and joins all labels for each thing that is counted,
 * which costs more than the decision about the step.
 */

export type Labels = Readonly<Record<string, string | number>>;

/** Labels as they are shown: of several series that are not told apart, the same. */
export type Bound = (labels: Labels) => Labels;

/** Adds to the counter that the table describes. */
export function openCounter(
  spec: MetricSpec,
  registry: Registry,
  bound: Bound,
): (labels: Labels, by?: number) => void {
  const series = openSeries(spec.labels, bound, (labels) => ({ labels, value: 0 }));
  register(registry, spec, () => [...series.all()]);
  return (labels, by = 1) => {
    if (!(by >= 0 && by < Infinity)) throw new RangeError(`${spec.name} cannot grow by ${by}`);
    series.of(labels).value += by;
  };
}

/** Observes for the histogram that the table describes. */
export function openHistogram(
  spec: MetricSpec,
  registry: Registry,
  bound: Bound,
): (labels: Labels, value: number) => void {
  const bounds = spec.buckets ?? [];
  const series = openSeries(spec.labels, bound, (labels) => ({
    labels,
    /** By the first bound that is not below the value; those above all bounds come last. */
    counts: Array<number>(bounds.length + 1).fill(0),
    sum: 0,
  }));
  register(registry, spec, () =>
    [...series.all()].flatMap(({ labels, counts, sum }) => {
      let count = 0;
      const buckets = counts.map((each, index) => ({
        metricName: `${spec.name}_bucket`,
        labels: { le: bounds[index] ?? "+Inf", ...labels },
        value: (count += each),
      }));
      return [
        ...buckets,
        { metricName: `${spec.name}_sum`, labels, value: sum },
        { metricName: `${spec.name}_count`, labels, value: count },
      ];
    }),
  );
  return (labels, value) => {
    if (!Number.isFinite(value)) throw new RangeError(`${spec.name} cannot hold ${value}`);
    const each = series.of(labels);
    let index = 0;
    while (index < bounds.length && value > (bounds[index] as number)) index++;
    each.counts[index] = (each.counts[index] as number) + 1;
    each.sum += value;
  };
}

interface SeriesOf<S> {
  of(labels: Labels): S;
  all(): Iterable<S>;
}

/** Where there are no labels, the one series is there from the beginning. */
function openSeries<S>(
  names: readonly string[],
  bound: Bound,
  begin: (labels: Labels) => S,
): SeriesOf<S> {
  const known = new Map<string, S>();

  function keyOf(labels: Labels): string {
    let key = "";
    for (let index = 0; index < names.length; index++) key += `${labels[names[index] as string]}\n`;
    return key;
  }

  function shown(labels: Labels): S {
    const unknown = Object.keys(labels).find((label) => !names.includes(label));
    if (unknown !== undefined) throw new Error(`the metric has no label "${unknown}"`);
    const bounded = bound(labels);
    const key = keyOf(bounded);
    const series = known.get(key) ?? begin(bounded);
    known.set(key, series);
    return series;
  }

  if (names.length === 0) shown({});
  return {
    of: (labels) => known.get(keyOf(labels)) ?? shown(labels),
    all: () => known.values(),
  };
}

interface Value {
  readonly metricName?: string;
  readonly labels: Labels;
  readonly value: number;
}

function register(
  registry: Registry,
  { name, help, type }: MetricSpec,
  valuesOf: () => readonly Value[],
): void {
  const metric = { name, get: async () => ({ name, help, type, values: valuesOf() }) };
  // A registry asks its metrics for no more than this, as the tests of what it writes hold.
  registry.registerMetric(metric as unknown as PromMetric);
}
