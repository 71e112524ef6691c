import type { Queue } from "@millrace/queue";
import { progressOf } from "@millrace/store";
import type { Db, Key } from "@millrace/store";
import type { Log } from "@millrace/telemetry";
import { openBell } from "../bell.ts";
import type { Bell } from "../bell.ts";

/** Hears of changes, and tells those who follow: one subscription and one poll serve all of a process. */
export interface Watch {
  instance(key: Key): Watcher;
  all(): Watcher;
  /** Watchers that are on now. */
  readonly size: number;
  close(): void;
}

export interface Watcher {
  /**
   * Until there may be something new, or the time is up, or `signal` is aborted.
   *
   * @param seen The version of an instance up to which it has been read.
   */
  next(seen: number, ms: number, signal: AbortSignal): Promise<void>;
  close(): void;
}

interface Watched {
  readonly key: Key;
  readonly bell: Bell;
  seen: number;
}

/** Pub/sub says when to look; this is for what it misses. */
const pollMs = 1_000;

export function openWatch(db: Db, { wake }: Queue, log: Log): Watch {
  const instances = new Map<string, Set<Watched>>();
  const ofAll = new Set<Bell>();
  let size = 0;
  let poll: NodeJS.Timeout | undefined;
  let unsubscribe: (() => void) | undefined;

  /** @param changed Where they are not named it may have been any. */
  function hear(changed: unknown): void {
    for (const bell of ofAll) bell.ring();
    const ids = Array.isArray(changed) ? changed : instances.keys();
    for (const id of ids) for (const { bell } of instances.get(id) ?? []) bell.ring();
  }

  function opened(): void {
    size += 1;
    unsubscribe ??= wake.subscribe("stream", ({ instanceIds }) => hear(instanceIds));
    poll ??= setTimeout(() => void look(), pollMs).unref();
  }

  /** Whoever commits hears that nobody listens any more, and tells of nothing. */
  function closed(): void {
    size -= 1;
    if (size > 0) return;
    unsubscribe?.();
    unsubscribe = undefined;
  }

  async function look(): Promise<void> {
    for (const bell of ofAll) bell.ring();
    const watched = [...instances.values()].flatMap((each) => [...each]);
    try {
      const keys = watched.map(({ key }) => key);
      const found = keys.length > 0 ? await progressOf(db, keys) : [];
      // One that has been deleted is not found, and its watchers are to see that too.
      watched.forEach(({ seen, bell }, index) => found[index]?.version !== seen && bell.ring());
    } catch (err) {
      log.debug({ err }, "what is followed could not be looked at; trying again");
    }
    poll = size > 0 ? setTimeout(() => void look(), pollMs).unref() : undefined;
  }

  return {
    instance(key) {
      const watched: Watched = { key, bell: openBell(), seen: 0 };
      const alike = instances.get(key.instanceId) ?? new Set();
      instances.set(key.instanceId, alike.add(watched));
      opened();
      return {
        async next(seen, ms, signal) {
          watched.seen = seen;
          await watched.bell.next(ms, signal);
        },
        close() {
          alike.delete(watched);
          if (alike.size === 0) instances.delete(key.instanceId);
          closed();
        },
      };
    },
    all() {
      const bell = openBell();
      ofAll.add(bell);
      opened();
      return {
        async next(_, ms, signal) {
          await bell.next(ms, signal);
        },
        close() {
          ofAll.delete(bell);
          closed();
        },
      };
    },
    get size() {
      return size;
    },
    close: () => clearTimeout(poll),
  };
}
