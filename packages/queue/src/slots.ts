/** Places for what runs at once, given in the order in which they are asked for. */
export interface Slots {
  readonly taken: number;
  readonly free: number;
  /** Whether one is got within the patience; a shut consumer does not wait at all. */
  take(patienceMs: number): Promise<boolean>;
  give(): void;
  /** Settles when so many are free, or `patienceMs` after one is. While they are shut it does not wait. */
  room(wanted: number, patienceMs: number): Promise<void>;
  /** Nobody waits any more, until `open`. */
  shut(): void;
  open(): void;
  /** Settles when none is taken. */
  idle(): Promise<void>;
}

interface Waiting {
  readonly answer: (isTaken: boolean) => void;
}

interface WaitingForRoom {
  readonly wanted: number;
  readonly patienceMs: number;
  readonly settle: () => void;
  timer?: NodeJS.Timeout | undefined;
}

export function openSlots(size: number): Slots {
  let taken = 0;
  let isShut = false;
  const waiting = new Set<Waiting>();
  const forRoom = new Set<WaitingForRoom>();
  let whenIdle: (() => void)[] = [];

  function settleRoom(each: WaitingForRoom): void {
    forRoom.delete(each);
    clearTimeout(each.timer);
    each.settle();
  }

  function overdue(each: WaitingForRoom): void {
    each.timer = undefined;
    if (taken < size) settleRoom(each);
  }

  function tellRoom(): void {
    for (const each of forRoom) {
      if (isShut || size - taken >= each.wanted) settleRoom(each);
      else each.timer ??= setTimeout(() => overdue(each), each.patienceMs);
    }
  }

  return {
    get taken() {
      return taken;
    },
    get free() {
      return Math.max(0, size - taken);
    },
    take(patienceMs) {
      if (taken < size) {
        taken += 1;
        return Promise.resolve(true);
      }
      if (isShut) return Promise.resolve(false);
      return new Promise((resolve) => {
        const own: Waiting = {
          answer(isTaken) {
            waiting.delete(own);
            clearTimeout(timer);
            resolve(isTaken);
          },
        };
        const timer = setTimeout(() => own.answer(false), patienceMs);
        waiting.add(own);
      });
    },
    give() {
      // Straight to who waits: the number that are taken stays as it is.
      const [next] = waiting;
      if (next !== undefined) return next.answer(true);
      taken -= 1;
      tellRoom();
      if (taken > 0) return;
      const told = whenIdle;
      whenIdle = [];
      for (const listener of told) listener();
    },
    room(most, patience) {
      const wanted = Math.min(most, size);
      if (isShut || size - taken >= wanted) return Promise.resolve();
      return new Promise((settle) => {
        forRoom.add({ wanted, patienceMs: patience, settle });
        if (taken < size) tellRoom();
      });
    },
    shut() {
      isShut = true;
      for (const each of waiting) each.answer(false);
      tellRoom();
    },
    open() {
      isShut = false;
    },
    idle: () =>
      taken === 0 ? Promise.resolve() : new Promise((resolve) => void whenIdle.push(resolve)),
  };
}
