import {
  type ConsistencyFindingView,
  type ConsistencyView,
  consistencySpec,
  type RepairView,
} from "@millrace/contract";
import type { ConsistencyReport, Repaired } from "@millrace/runtime";

export function consistencyView(report: ConsistencyReport): ConsistencyView {
  const { instanceId, version, checkedAt, findings, skipped } = report;
  return {
    instanceId,
    version,
    checkedAt: checkedAt.toISOString(),
    ok: findings.length === 0,
    findings: findings.map(findingView),
    skipped: [...skipped],
  };
}

export function repairView({ before, repaired, after }: Repaired): RepairView {
  return {
    before: consistencyView(before),
    repaired: repaired.map(findingView),
    after: consistencyView(after),
  };
}

function findingView({
  code,
  message,
  where,
  repair,
}: ConsistencyReport["findings"][number]): ConsistencyFindingView {
  const spec = consistencySpec(code);
  return {
    code,
    severity: spec.severity,
    message,
    where: { ...where },
    repairable: repair !== undefined,
    ...(repair === undefined
      ? { advice: spec.advice }
      : { repair: spec.repair ?? "it is made good" }),
  };
}
