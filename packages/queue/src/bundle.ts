import { createHash } from "node:crypto";
import type { JobsOptions } from "bullmq";

/**
 * Bundles: jobs that travel under one BullMQ job.
 *
 * A BullMQ job costs some 100 µs of Node, 45 µs of Redis and 24 commands, which is more than the step
 * that it nudges, and its data are free up to kilobytes. So what is to be added in one turn of the
 * event loop is bundled. Whoever takes a bundle handles its members one by one, and puts those back
 * for which it has no slot.
 */

/** What is to be added. */
export interface Addition {
  readonly id: string;
  readonly data: object;
  /** BullMQ's: lower first, never 0. */
  readonly priority: number;
  readonly delayMs: number;
}

/** As BullMQ takes it. */
export interface BullJob {
  readonly name: string;
  readonly data: object;
  readonly opts: JobsOptions;
}

/** A burst becomes at least so many jobs, so that the workers of a small fleet share it. */
const leastShares = 4;

/**
 * @param most Members that one job carries at most; 1: each travels alone.
 * @param least Members for which a further job is not worth its cost, though fewer workers then share.
 */
export function bundled(
  additions: readonly Addition[],
  most: number,
  least = 1,
): readonly BullJob[] {
  if (most === 1 || additions.length === 1) return additions.map(alone);
  const jobs: BullJob[] = [];
  for (const [priority, alike] of byPriority(additions)) {
    const size = Math.min(most, Math.max(least, Math.ceil(alike.length / leastShares)));
    for (let from = 0; from < alike.length; from += size) {
      const members = alike.slice(from, from + size);
      const [first] = members;
      if (members.length === 1 && first) jobs.push(alone(first));
      else
        jobs.push(
          together(
            members.map(({ data }) => data),
            members.map(({ id }) => id),
            priority,
          ),
        );
    }
  }
  return [...jobs, ...additions.filter(({ delayMs }) => delayMs > 0).map(alone)];
}

/**
 * Members of a job that nobody had a slot for. The id is a new one: the job that brought them is kept
 * until it has ended, and adding another under its id would do nothing.
 */
export function returned(data: readonly object[], broughtBy: string, priority: number): BullJob {
  return together(data, [broughtBy, JSON.stringify(data)], priority);
}

/** The members of a job, be it a bundle or none. */
export function membersOf(data: unknown): readonly unknown[] {
  const bundle: unknown =
    typeof data === "object" && data !== null && "bundle" in data && data.bundle;
  return Array.isArray(bundle) ? bundle : [data];
}

/** Those that are to run now, each once, in their order. */
function byPriority(additions: readonly Addition[]): ReadonlyMap<number, readonly Addition[]> {
  const groups = new Map<number, Map<string, Addition>>();
  for (const addition of additions) {
    if (addition.delayMs > 0) continue;
    const group = groups.get(addition.priority) ?? new Map<string, Addition>();
    groups.set(addition.priority, group);
    if (!group.has(addition.id)) group.set(addition.id, addition);
  }
  return new Map([...groups].map(([priority, group]) => [priority, [...group.values()]]));
}

/** The same members make the same id, so that adding them twice while they are kept adds them once. */
function together(data: readonly object[], names: readonly string[], priority: number): BullJob {
  const id = createHash("sha1").update(names.join("\n")).digest("hex");
  const opts = { jobId: `bundle.${id}`, priority, attempts: 1 };
  return { name: "bundle", data: { bundle: data }, opts };
}

function alone({ id, data, priority, delayMs }: Addition): BullJob {
  const opts = { jobId: id, priority, attempts: 1 };
  return {
    name: "job",
    data,
    opts: delayMs > 0 ? { ...opts, delay: Math.ceil(delayMs) } : opts,
  };
}
