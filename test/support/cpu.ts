import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

/** Milliseconds of CPU that each process takes while `ms` pass; none where the system does not say. */
export async function cpuTaken(pids: readonly number[], ms: number): Promise<readonly number[]> {
  const before = pids.map(cpuMs);
  await sleep(ms);
  return pids.flatMap((pid, index) => {
    const [from, to] = [before[index], cpuMs(pid)];
    return from === undefined || to === undefined ? [] : [to - from];
  });
}

/** Linux counts in hundredths of a second. The name, in brackets, may hold spaces. */
function cpuMs(pid: number): number | undefined {
  try {
    const [, fields = ""] = /\)\s(.*)$/s.exec(readFileSync(`/proc/${pid}/stat`, "utf8")) ?? [];
    const [user, system] = fields.split(" ").slice(11, 13).map(Number);
    return ((user ?? 0) + (system ?? 0)) * 10;
  } catch {
    return undefined;
  }
}
