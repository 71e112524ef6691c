import type { InstanceView } from "@millrace/contract";
import { type Output, printable } from "../output.ts";
import { table } from "../table.ts";
import type { Outcome } from "./drive.ts";
import { ORDER_PATHS, orderPaths } from "./orders.ts";

/** Steps that each worker process ran to an end, by the worker's id. */
export function stepsByWorker(instances: readonly InstanceView[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const { state } of instances) {
    for (const { workerId, type, status } of Object.values(state.steps)) {
      if (!workerId || (type !== undefined && type !== "TASK")) continue;
      if (status !== "COMPLETED" && status !== "FAILED") continue;
      counts.set(workerId, (counts.get(workerId) ?? 0) + 1);
    }
  }
  return counts;
}

/** One line per path: how its orders ended, what was undone, and whether that is right. */
export function outcomeLines(output: Output, outcomes: readonly Outcome[]): readonly string[] {
  const rows = orderPaths.flatMap((path) => {
    const ofPath = outcomes.filter(({ order }) => order.path === path);
    if (ofPath.length === 0) return [];
    const right = ofPath.filter(({ faults }) => faults.length === 0).length;
    const verdict = `${right} of ${ofPath.length}`;
    return [
      [
        ORDER_PATHS[path].title,
        distinct(ofPath.map(({ instance }) => instance?.status ?? "not ended")),
        distinct(ofPath.map(({ instance }) => compensationText(instance))),
        output.paint(right === ofPath.length ? "green" : "red", verdict),
      ],
    ];
  });
  return table(["ORDERS", "ENDED", "UNDONE, IN THIS ORDER", "AS EXPECTED"], rows);
}

export function faultLines(output: Output, outcomes: readonly Outcome[]): readonly string[] {
  return outcomes.flatMap(({ order, instance, faults }) => {
    if (faults.length === 0) return [];
    const head = `${order.orderId}${instance === undefined ? "" : ` (${instance.id})`}:`;
    return [output.paint("red", head), ...faults.map((fault) => `  ${printable(fault)}`)];
  });
}

function compensationText(instance: InstanceView | undefined): string {
  const compensation = instance?.compensation;
  if (!compensation) return "–";
  const failed = new Set(compensation.failed.map(({ stepId }) => stepId));
  return compensation.plan
    .map((stepId) => (failed.has(stepId) ? `${stepId} (failed)` : stepId))
    .join(", ");
}

function distinct(texts: readonly string[]): string {
  return [...new Set(texts)].join(" / ");
}
