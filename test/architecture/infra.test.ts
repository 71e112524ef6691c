import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { type MetricSpec, metricTable } from "@millrace/telemetry";
import { expect, test } from "vitest";

/** What operators watch Millrace with names metrics and labels that it has, and the dashboard all of them. */

const read = (path: string) =>
  readFileSync(resolve(import.meta.dirname, "../../infra", path), "utf8");
const alerts = [
  ...read("prometheus/alerts.yml").matchAll(/^ +expr: (?:>-\n)?(?<expr>.*(?:\n {10,}\S.*)*)/gm),
];
const dashboard = [...read("grafana/millrace.json").matchAll(/"expr": (?<expr>".*")/g)];
const expressions = [
  ...alerts.map(({ groups }) => groups?.["expr"] ?? ""),
  ...dashboard.map(({ groups }) => JSON.parse(groups?.["expr"] ?? "") as string),
];

const metrics: readonly MetricSpec[] = Object.values(metricTable);
const labelsOf = new Map<string, readonly string[]>(
  metrics.flatMap(({ name, type, labels }) =>
    type === "histogram"
      ? [
          [`${name}_bucket`, [...labels, "le"]],
          [`${name}_sum`, labels],
          [`${name}_count`, labels],
        ]
      : [[name, labels]],
  ),
);
/** Prometheus itself says them of each series. */
const ofTarget = ["job", "instance"];

test("there are alerts and panels", () => {
  expect(alerts.length).toBeGreaterThan(5);
  expect(dashboard.length).toBeGreaterThan(20);
});

test.each(expressions)("%s asks for metrics and labels that there are", (expression) => {
  const named = [...expression.matchAll(/millrace_\w+/g)].map(([name]) => name);
  const known = named.flatMap((name) => labelsOf.get(name) ?? []);
  const grouped = [...expression.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, list = ""]) =>
    list.split(", "),
  );
  const filtered = [...expression.matchAll(/(\w+)=~?"/g)].map(([, label = ""]) => label);

  expect(named.filter((name) => !labelsOf.has(name))).toEqual([]);
  expect([...grouped, ...filtered].filter((it) => ![...known, ...ofTarget].includes(it))).toEqual(
    [],
  );
});

test("every metric is on the dashboard", () => {
  const shown = new Set(read("grafana/millrace.json").match(/millrace_\w+/g));
  const isShown = ({ name }: MetricSpec) =>
    ["", "_bucket", "_count"].some((suffix) => shown.has(`${name}${suffix}`));

  expect(metrics.filter((metric) => !isShown(metric))).toEqual([]);
});
