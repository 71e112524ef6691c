import { DatabaseUnavailableError } from "@millrace/store";
import type { Services } from "../services.ts";

/**
 * One way in which a crash or a lost message leaves something undone: what it is called, the question
 * that finds it, and what makes it good. `kinds.ts` lists them all.
 */
export interface KindOf<Item> {
  /** Label of its metrics. */
  readonly name: string;
  /**
   * Oldest first, at most `limit`. Answered from a partial index that holds this kind only; skips what
   * others have locked, and leaves alone what is young enough to be under way.
   */
  readonly find: (services: Services, limit: number) => Promise<readonly Item[]>;
  /** Made good by a job: left alone while the queue takes none. */
  readonly needsQueue?: boolean;
  /** Since when it could have been done. */
  readonly since: (item: Item) => Date;
  /** Whatever it cannot do is found again. @returns How many were made good. */
  readonly repair: (services: Services, items: readonly Item[]) => Promise<number>;
}

export interface Kind {
  readonly name: string;
  readonly needsQueue: boolean;
  /** One look, and its repairs. @returns Whether there may be more that can be done at once. */
  sweep(services: Services): Promise<boolean>;
}

const batchSize = 500;

export function kind<Item>(options: KindOf<Item>): Kind {
  const { name, needsQueue = false, find, since, repair } = options;
  return {
    name,
    needsQueue,
    async sweep(services) {
      const { metrics, clock } = services;
      const found = await find(services, batchSize);
      const oldest = Math.min(...found.map((item) => since(item).getTime()));
      const ageMs = found.length === 0 ? 0 : Math.max(0, clock.now().getTime() - oldest);
      metrics.reconcilerOldest.set({ kind: name }, ageMs / 1_000);
      if (found.length === 0) return false;
      metrics.reconcilerFound.add({ kind: name }, found.length);
      const repaired = await repair(services, found);
      metrics.reconcilerRepaired.add({ kind: name }, repaired);
      return found.length >= batchSize && repaired > 0;
    },
  };
}

const atOnce = 25;

/**
 * One that cannot be made good holds up none of the others.
 *
 * @param act Answers false where there was nobody to do it.
 * @returns How many were made good.
 * @throws DatabaseUnavailableError
 */
export async function each<Item>(
  { log }: Services,
  items: readonly Item[],
  act: (item: Item) => Promise<unknown>,
): Promise<number> {
  let done = 0;
  for (let from = 0; from < items.length; from += atOnce) {
    const chunk = items.slice(from, from + atOnce);
    for (const outcome of await Promise.allSettled(chunk.map((item) => act(item)))) {
      if (outcome.status === "fulfilled") done += outcome.value === false ? 0 : 1;
      else if (outcome.reason instanceof DatabaseUnavailableError) throw outcome.reason;
      else log.warn({ err: outcome.reason }, "not made good; it is tried again");
    }
  }
  return done;
}
