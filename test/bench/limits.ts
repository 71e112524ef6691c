import { cpus } from "node:os";
import { roles, type Usage } from "./counters.ts";

/** A process at this share of a core has no more to give: its JavaScript runs on one thread. */
const full = 0.85;

/** What held a window back, told by where its CPU time went. */
export function limitOf({ cpuMs, elapsedMs, busyShare, stealShare }: Usage): string {
  const shares = roles
    .map((role) => ({ role, share: cpuMs[role] / elapsedMs }))
    .filter(({ share }) => share >= 0.05)
    .toSorted((left, right) => right.share - left.share);
  const spent = shares.map(({ role, share }) => `${role} ${percent(share)}`).join(", ");
  const steal = stealShare >= 0.05 ? `, ${percent(stealShare * cpus().length)} stolen` : "";
  const [first] = shares;
  const verdict =
    first !== undefined && first.share >= full && first.role !== "postgres"
      ? `one core of the ${first.role}`
      : busyShare + stealShare >= full
        ? `the ${cpus().length} cores together`
        : "waiting, not CPU";
  return `${verdict} (${spent}${steal})`;
}

function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}
