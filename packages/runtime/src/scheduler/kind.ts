import { DatabaseUnavailableError } from "@millrace/store";
import type { RowPlace } from "@millrace/store";
import type { Services } from "../services.ts";
import { openPatience } from "./patience.ts";
import type { Patience } from "./patience.ts";

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
   *
   * @param after Of the last one of the part before; undefined: from the start.
   */
  readonly find: (
    services: Services,
    limit: number,
    after: RowPlace | undefined,
  ) => Promise<readonly Item[]>;
  /** Made good by a job: left alone while the queue takes none. */
  readonly needsQueue?: boolean;
  /** Since when it could have been done. */
  readonly since: (item: Item) => Date;
  /**
   * Of a kind whose items stay as they are until they are made good: what nobody can make good is tried less
   * and less often, and looked past. The others are put off by the question itself.
   */
  readonly place?: (item: Item) => RowPlace;
  /** Whatever it cannot do is found again. @returns How many were made good. */
  readonly repair: (services: Services, items: readonly Item[]) => Promise<number>;
}

export interface Kind {
  readonly name: string;
  readonly needsQueue: boolean;
  /**
   * One look, and its repairs.
   *
   * @param limit Items looked at.
   * @returns Whether there may be more that can be done at once.
   */
  sweep(services: Services, limit?: number): Promise<boolean>;
}

const batchSize = 500;

export function kind<Item>(options: KindOf<Item>): Kind {
  const { name, needsQueue = false, find, since, place, repair } = options;
  // Of each installation that this process serves.
  const patienceOf = new WeakMap<Services, Patience>();

  async function sweep(services: Services, limit = batchSize): Promise<boolean> {
    const { metrics, clock } = services;
    const patience = patienceOf.get(services) ?? openPatience();
    patienceOf.set(services, patience);
    const { after } = patience;
    const found = await find(services, limit, after);
    if (after === undefined) {
      const oldest = Math.min(...found.map((item) => since(item).getTime()));
      const ageMs = found.length === 0 ? 0 : Math.max(0, clock.now().getTime() - oldest);
      metrics.reconcilerOldest.set({ kind: name }, ageMs / 1_000);
    }
    const isFull = found.length >= limit;
    const last = found.at(-1);
    patience.after = isFull && last !== undefined ? place?.(last) : undefined;
    const due = place === undefined ? found : found.filter((item) => patience.isDue(place(item)));
    if (due.length === 0) return isFull;
    metrics.reconcilerFound.add({ kind: name }, due.length);
    const repaired = await repair(services, due);
    metrics.reconcilerRepaired.add({ kind: name }, repaired);
    if (place !== undefined) for (const item of due) patience.note(place(item));
    return isFull && repaired > 0;
  }

  return { name, needsQueue, sweep };
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
