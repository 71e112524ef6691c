/** Places for what runs at once, given in the order in which they are asked for. */
export interface Slots {
  readonly taken: number;
  readonly free: number;
  /** Whether one is got within the patience; a shut consumer does not wait at all. */
  take(patienceMs: number): Promise<boolean>;
  give(): void;
  /** Settles when one is free. While they are shut it does not wait. */
  room(): Promise<void>;
  /** Nobody waits any more, until `open`. */
  shut(): void;
  open(): void;
  /** Settles when none is taken. */
  idle(): Promise<void>;
}

interface Waiting {
  readonly answer: (isTaken: boolean) => void;
}

export function openSlots(size: number): Slots {
  let taken = 0;
  let isShut = false;
  const waiting = new Set<Waiting>();
  let forRoom: (() => void)[] = [];
  let whenIdle: (() => void)[] = [];

  const tell = (listeners: readonly (() => void)[]) => {
    for (const listener of listeners) listener();
  };

  function tellRoom(): void {
    const told = forRoom;
    forRoom = [];
    tell(told);
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
      tell(told);
    },
    room: () =>
      taken < size || isShut
        ? Promise.resolve()
        : new Promise((resolve) => void forRoom.push(resolve)),
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
