import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";

/**
 * A process, told apart from a later one with the same number by the time it started.
 * Process numbers come round again, soonest of all in containers.
 */
export interface ProcessIdentity {
  readonly pid: number;
  /** When it started, in whatever form the system tells it; compared, never read. */
  readonly started: string;
}

/** Who runs under this number now, or `undefined` when nobody does (or only a zombie). */
export function identityOf(pid: number): ProcessIdentity | undefined {
  const started = process.platform === "linux" ? startedOnLinux(pid) : startedByPs(pid);
  return started === undefined ? undefined : { pid, started };
}

/** Whether the very process that was recorded still runs. */
export function isAlive(recorded: ProcessIdentity): boolean {
  return identityOf(recorded.pid)?.started === recorded.started;
}

function startedOnLinux(pid: number): string | undefined {
  try {
    // The name in brackets may hold spaces and brackets itself: read from the last one on.
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const state = fields[0];
    return state === "Z" || state === "X" ? undefined : fields[19];
  } catch {
    return undefined;
  }
}

function startedByPs(pid: number): string | undefined {
  try {
    const started = execFileSync("ps", ["-o", "lstart=", "-p", String(pid)], { encoding: "utf8" });
    return started.trim() || undefined;
  } catch {
    return undefined;
  }
}
