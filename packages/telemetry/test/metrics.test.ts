import { expect, test } from "vitest";
import { type Count, createMetrics } from "../src/metrics.ts";
import { type MetricSpec, metricTable } from "../src/metrics-table.ts";

const table: [string, MetricSpec][] = Object.entries(metricTable);

test("every metric has a name of its own, in the form that its type asks for, and a help text", () => {
  const names = table.map(([, { name }]) => name);
  expect(new Set(names).size).toBe(names.length);
  const wrong = table.filter(
    ([, { name, type, help, buckets }]) =>
      !/^millrace_[a-z][a-z0-9_]*$/.test(name) ||
      name.endsWith("_total") !== (type === "counter") ||
      !/^[A-Z].*\.$/.test(help) ||
      (buckets !== undefined) !== (type === "histogram") ||
      buckets?.some((bucket, index) => bucket <= (buckets[index - 1] ?? 0)),
  );
  expect(wrong).toEqual([]);
});

test("no label can be an id of something that there is no end of", () => {
  const wrong = table.filter(
    ([, { labels }]) =>
      new Set(labels).size !== labels.length ||
      labels.some((label) => /id$|instance|tenant|event|key/i.test(label)),
  );
  expect(wrong).toEqual([]);
});

test("what is counted, set and observed comes out in the exposition format", async () => {
  const metrics = createMetrics({ isWithDefaults: false });
  metrics.steps.add({ task: "charge_card", outcome: "COMPLETED" });
  metrics.steps.add({ task: "charge_card", outcome: "COMPLETED" }, 2);
  metrics.takeOvers.add({});
  metrics.pool.set({ state: "idle" }, 4);
  metrics.commitBatchSize.observe({}, 3);
  metrics.errors.add({ workflow: 'a "quoted"\nname', step: "x" });

  const samples = parse(await metrics.text());

  expect(samples.get('millrace_steps_total{task="charge_card",outcome="COMPLETED"}')).toBe(3);
  expect(samples.get("millrace_take_overs_total")).toBe(1);
  expect(samples.get('millrace_pool_connections{state="idle"}')).toBe(4);
  expect(samples.get('millrace_commit_batch_instances_bucket{le="2"}')).toBe(0);
  expect(samples.get('millrace_commit_batch_instances_bucket{le="4"}')).toBe(1);
  expect(samples.get('millrace_step_errors_total{workflow="a \\"quoted\\"\\nname",step="x"}')).toBe(
    1,
  );
  expect(metrics.contentType).toMatch(/^text\/plain; version=0\.0\.4/);
});

test("a histogram counts each value below the first bound that is not below it", async () => {
  const metrics = createMetrics({ isWithDefaults: false });
  for (const value of [0.01, 0.05, 0.051, 5_000])
    metrics.stepDuration.observe({ task: "t" }, value);

  const samples = parse(await metrics.text());

  const counted = (le: string) =>
    samples.get(`millrace_step_duration_seconds_bucket{le="${le}",task="t"}`);
  expect(["0.005", "0.01", "0.05", "0.1", "3600", "+Inf"].map(counted)).toEqual([0, 1, 2, 3, 3, 4]);
  expect(samples.get('millrace_step_duration_seconds_count{task="t"}')).toBe(4);
  expect(samples.get('millrace_step_duration_seconds_sum{task="t"}')).toBeCloseTo(5_000.111);
});

test("the metrics of Node are there too, and two processes' worth do not meet", async () => {
  const [one, other] = [createMetrics(), createMetrics()];
  one.takeOvers.add({});
  expect(parse(await one.text()).has("process_cpu_user_seconds_total")).toBe(true);
  expect(parse(await other.text()).get("millrace_take_overs_total")).toBe(0);
});

test("a replaced gauge forgets the series that are gone", async () => {
  const metrics = createMetrics({ isWithDefaults: false });
  metrics.instances.replace([
    { labels: { status: "RUNNING" }, value: 3 },
    { labels: { status: "FAILED" }, value: 1 },
  ]);
  metrics.instances.replace([{ labels: { status: "RUNNING" }, value: 5 }]);

  const samples = parse(await metrics.text());

  expect(samples.get('millrace_instances{status="RUNNING"}')).toBe(5);
  expect(samples.has('millrace_instances{status="FAILED"}')).toBe(false);
});

test("names given by users make a bounded number of series", async () => {
  const metrics = createMetrics({ isWithDefaults: false });
  for (let n = 0; n < 1_000; n += 1) metrics.steps.add({ task: `task-${n}`, outcome: "FAILED" });
  metrics.steps.add({ task: "task-7", outcome: "FAILED" });

  const samples = parse(await metrics.text());

  const steps = [...samples].filter(([name]) => name.startsWith("millrace_steps_total"));
  expect(steps).toHaveLength(201);
  expect(samples.get('millrace_steps_total{task="(other)",outcome="FAILED"}')).toBe(800);
  expect(samples.get('millrace_steps_total{task="task-7",outcome="FAILED"}')).toBe(2);
});

test("samplers run before each exposition; one that fails or hangs does not keep it", async () => {
  const metrics = createMetrics({ isWithDefaults: false });
  let size = 0;
  metrics.addSampler(() => metrics.pool.set({ state: "total" }, (size += 1)));
  metrics.addSampler(() => Promise.reject(new Error("Postgres is away")));
  metrics.addSampler(() => {
    throw new Error("at once");
  });

  await metrics.text();

  expect(parse(await metrics.text()).get('millrace_pool_connections{state="total"}')).toBe(2);
});

test("a misspelt label does not compile", () => {
  const metrics = createMetrics({ isWithDefaults: false });
  // @ts-expect-error it is "task"
  expect(() => metrics.steps.add({ taks: "a", outcome: "b" })).toThrow("taks");
  // @ts-expect-error a label is missing
  metrics.steps.add({ task: "a" });
  // @ts-expect-error a counter is not observed
  expect(() => metrics.steps.observe({}, 1)).toThrow(TypeError);
});

/** Reads the text format 0.0.4 strictly: every sample has its HELP and TYPE, none comes twice. */
function parse(text: string): Map<string, number> {
  const samples = new Map<string, number>();
  const declared = new Set<string>();
  expect(text.endsWith("\n")).toBe(true);
  for (const line of text.split("\n")) {
    if (line === "") continue;
    const type = /^# (?:HELP (\S+) \S.*|TYPE (\S+) (?:counter|gauge|histogram|summary))$/.exec(
      line,
    );
    if (type) {
      declared.add(type[1] ?? type[2] ?? "");
      continue;
    }
    const sample =
      /^([a-zA-Z_:][\w:]*)((?:\{(?:[a-zA-Z_]\w*="(?:[^"\\\n]|\\["\\n])*",?)*\})?) (\S+)$/.exec(
        line,
      );
    if (!sample) throw new Error(`not a sample: ${line}`);
    const [, name = "", labels = "", value = ""] = sample;
    const family = name.replace(/_(bucket|sum|count)$/, "");
    if (!declared.has(name) && !declared.has(family)) throw new Error(`not declared: ${line}`);
    if (samples.has(name + labels)) throw new Error(`comes twice: ${line}`);
    samples.set(name + labels, Number(value.replace("Inf", "Infinity")));
  }
  return samples;
}

test("what one process counts another adds, as if it had been counted there", async () => {
  const counts: Count[] = [];
  const cell = createMetrics({ isWithDefaults: false, onCount: (count) => counts.push(count) });
  const worker = createMetrics({ isWithDefaults: false });
  worker.steps.add({ task: "pay", outcome: "ok" });

  cell.steps.add({ task: "pay", outcome: "ok" });
  cell.steps.add({ task: "pay", outcome: "failed" }, 2);
  cell.stepDuration.observe({ task: "pay" }, 0.25);
  cell.waitingCalls.set({}, 7);
  worker.count([...counts, { metric: "ofAnotherRelease", labels: {}, value: 1 }]);

  const text = await worker.text();
  expect(text).toContain('millrace_steps_total{task="pay",outcome="ok"} 2');
  expect(text).toContain('millrace_steps_total{task="pay",outcome="failed"} 2');
  expect(text).toContain('millrace_step_duration_seconds_sum{task="pay"} 0.25');
  expect(text).not.toContain("millrace_waiting_calls 7");
});

test("what is added to the prototype of all objects is no label", async () => {
  const metrics = createMetrics({ isWithDefaults: false });
  const prototype = Object.prototype as { evil?: string };
  prototype.evil = "x";
  try {
    metrics.stepDuration.observe({ task: "pay" }, 1);
  } finally {
    delete prototype.evil;
  }

  expect(await metrics.text()).not.toContain("evil");
});
