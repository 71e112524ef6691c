import { readFile } from "node:fs/promises";

/** So often another process is looked at while it is at work. */
const lookMs = 250;

export interface MemoryWatch {
  /** The most that was seen; undefined where the system does not tell. */
  readonly peakBytes: number | undefined;
  stop(): void;
}

/** Watches the memory of a process from outside: one that dies of it has no time left to tell. */
export function watchMemory(pid: number): MemoryWatch {
  let peakBytes: number | undefined;
  const look = async () => {
    const bytes = await residentBytes(pid);
    if (bytes !== undefined) peakBytes = Math.max(peakBytes ?? 0, bytes);
  };
  const looking = setInterval(() => void look(), lookMs).unref();
  return {
    get peakBytes() {
      return peakBytes;
    },
    stop: () => clearInterval(looking),
  };
}

/** Undefined where there is no `/proc`, or no such process any more. */
async function residentBytes(pid: number): Promise<number | undefined> {
  const status = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "");
  const kilobytes = /^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1];
  return kilobytes === undefined ? undefined : Number(kilobytes) * 1_024;
}
