/**
 * Groups concurrent calls into batches, as group commit does: what is waiting goes out when one of the
 * `lanes` is free, so that a lone call never waits for company and a burst shares its round trips.
 */
export interface GroupOptions<T> {
  readonly lanes: number;
  /**
   * While a lane is busy another one is opened for so many items only: fewer go with the next batch,
   * since a statement costs as much as several of its items do. 1 when absent.
   */
  readonly leastForMore?: number;
  readonly maxBatch: number;
  /** Two items with the same key never share a batch, nor travel at the same time. Absent: any may. */
  readonly keyOf?: (item: T) => string;
}

interface Waiting<T, R> {
  readonly item: T;
  readonly key: string | undefined;
  readonly resolve: (result: R) => void;
  readonly reject: (error: unknown) => void;
}

/** @param run Answers one result per item, in order; an Error as a result rejects that item alone. */
export function groupCalls<T, R>(
  { lanes, leastForMore = 1, maxBatch, keyOf }: GroupOptions<T>,
  run: (items: readonly T[]) => Promise<readonly (R | Error)[]>,
): (item: T) => Promise<R> {
  let waiting: Waiting<T, R>[] = [];
  const travelling = new Set<string | undefined>();
  let busy = 0;
  let armed = false;

  function pump(): void {
    armed = false;
    while (busy < lanes && waiting.length >= (busy === 0 ? 1 : leastForMore)) {
      const batch = takeBatch();
      if (batch.length === 0) return;
      busy += 1;
      void send(batch).finally(() => {
        busy -= 1;
        for (const { key } of batch) if (key !== undefined) travelling.delete(key);
        pump();
      });
    }
  }

  function takeBatch(): Waiting<T, R>[] {
    if (keyOf === undefined) {
      const all = waiting;
      waiting = all.slice(maxBatch);
      return all.slice(0, maxBatch);
    }
    const batch: Waiting<T, R>[] = [];
    const left: Waiting<T, R>[] = [];
    for (const call of waiting) {
      if (batch.length < maxBatch && !travelling.has(call.key)) {
        travelling.add(call.key);
        batch.push(call);
      } else {
        left.push(call);
      }
    }
    waiting = left;
    return batch;
  }

  async function send(batch: readonly Waiting<T, R>[]): Promise<void> {
    try {
      const results = await run(batch.map(({ item }) => item));
      batch.forEach(({ resolve, reject }, index) => {
        const result = results[index];
        if (result instanceof Error) reject(result);
        else resolve(result as R);
      });
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  }

  return (item) =>
    new Promise<R>((resolve, reject) => {
      waiting.push({ item, key: keyOf?.(item), resolve, reject });
      if (armed) return;
      armed = true;
      setImmediate(pump);
    });
}
