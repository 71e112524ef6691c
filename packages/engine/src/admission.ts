/**
 * Who is admitted: the rule, without rows or locks.
 *
 * A queue holds those that need a slot under the same limits. It is in the order of the narrowest of them, which is
 * the last. Of the heads of several queues the limit that is the widest of theirs says who is first. Who is held up
 * by one limit holds up nobody under another.
 */

export type QueueOrder = "FIFO" | "PRIORITY" | "DEADLINE";

/** One that waits. Times are milliseconds. */
export interface Waiting {
  readonly instanceId: string;
  readonly hasRun: boolean;
  /** -Infinity: nobody has put it at the head. */
  readonly promotedAt: number;
  readonly priority: number;
  /** Infinity: none. */
  readonly deadline: number;
  readonly wantedAt: number;
}

export interface WaitingQueue<W extends Waiting> {
  /** Names of the limits, the widest first. */
  readonly limits: readonly string[];
  /** In their order. */
  readonly waiting: readonly W[];
}

/** A limit as it is now. */
export interface Room {
  /** Slots that nobody has. */
  readonly free: number;
  readonly order: QueueOrder;
}

/**
 * As many as there is room for: of those that are left out each has a limit that is full then, unless there are
 * `most`.
 *
 * @param rooms By the name of the limit; the widest ones come first. A limit that is not there has no room.
 */
export function chooseAdmissions<W extends Waiting>(
  queues: readonly WaitingQueue<W>[],
  rooms: ReadonlyMap<string, Room>,
  most: number,
): readonly W[] {
  const free = new Map([...rooms].map(([name, room]) => [name, room.free]));
  const chosen: W[] = [];
  const next = new Map(queues.map((queue) => [queue, 0]));
  const underLimit = new Map<string, WaitingQueue<W>[]>();
  for (const queue of queues) {
    for (const name of queue.limits) {
      const under = underLimit.get(name);
      if (under === undefined) underLimit.set(name, [queue]);
      else under.push(queue);
    }
  }
  const isOpen = ({ limits }: WaitingQueue<W>) => limits.every((name) => (free.get(name) ?? 0) > 0);
  const headOf = (queue: WaitingQueue<W>) => queue.waiting[next.get(queue) ?? 0];

  for (const [name, { order }] of rooms) {
    const under = underLimit.get(name) ?? [];
    while (chosen.length < most) {
      let first: WaitingQueue<W> | undefined;
      for (const queue of under) {
        const head = isOpen(queue) ? headOf(queue) : undefined;
        const best = first && headOf(first);
        if (head === undefined) continue;
        if (best === undefined || compareWaiting(order, head, best) < 0) first = queue;
      }
      const head = first && headOf(first);
      if (first === undefined || head === undefined) break;
      chosen.push(head);
      next.set(first, (next.get(first) ?? 0) + 1);
      for (const limit of first.limits) free.set(limit, (free.get(limit) ?? 0) - 1);
    }
  }
  return chosen;
}

/**
 * Of more queues than can be read, those whose heads come first. What their widest limits say of them cannot be
 * compared where those are different ones: then each of these has its best, and its second best, in turn.
 */
export function foremost<Q extends WaitingQueue<Waiting>>(
  queues: readonly Q[],
  rooms: ReadonlyMap<string, Room>,
  most: number,
): readonly Q[] {
  const byWidest = new Map<string, { readonly queue: Q; readonly head: Waiting }[]>();
  for (const queue of queues) {
    const [head] = queue.waiting;
    const [widest] = queue.limits;
    if (head === undefined || widest === undefined) continue;
    const group = byWidest.get(widest);
    if (group === undefined) byWidest.set(widest, [{ queue, head }]);
    else group.push({ queue, head });
  }
  return [...byWidest]
    .flatMap(([widest, group]) => {
      const order = rooms.get(widest)?.order ?? "PRIORITY";
      return group
        .toSorted((one, other) => compareWaiting(order, one.head, other.head))
        .map((each, rank) => ({ ...each, rank }));
    })
    .toSorted(
      (one, other) => one.rank - other.rank || compare(one.head.wantedAt, other.head.wantedAt),
    )
    .slice(0, most)
    .map(({ queue }) => queue);
}

/** Negative where `one` is admitted first: those that have run before, then who was promoted last. */
export function compareWaiting(order: QueueOrder, one: Waiting, other: Waiting): number {
  return (
    Number(other.hasRun) - Number(one.hasRun) ||
    compare(other.promotedAt, one.promotedAt) ||
    (order === "DEADLINE" ? compare(one.deadline, other.deadline) : 0) ||
    (order === "FIFO" ? 0 : other.priority - one.priority) ||
    compare(one.wantedAt, other.wantedAt) ||
    (one.instanceId < other.instanceId ? -1 : Number(one.instanceId > other.instanceId))
  );
}

/** Of infinities too, whose difference is none. */
function compare(one: number, other: number): number {
  if (one === other) return 0;
  return one < other ? -1 : 1;
}
