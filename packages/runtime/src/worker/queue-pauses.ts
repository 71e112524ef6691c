import type { Consumer } from "@millrace/queue";
import { pausedQueues } from "@millrace/store";
import { startLoop } from "../loop.ts";
import type { Services } from "../services.ts";

/** A pause or resume that is not heard of is seen by then. */
const lookMs = 1_000;

/**
 * Leaves the jobs of paused queues where they are. That only saves what comes of taking them, since no claim gives out
 * their steps (paused-queues.ts in the store).
 *
 * @param consumers Those of each queue that the worker serves.
 */
export function startQueuePauses(
  { database, queue, log }: Services,
  consumers: ReadonlyMap<string, readonly Consumer[]>,
): { stop(): Promise<void> } {
  if (consumers.size === 0) return { stop: () => Promise.resolve() };
  const paused = new Set<string>();
  let isOver = false;
  const loop = startLoop({ name: "queue pauses", log, maxDelayMs: lookMs }, async () => {
    const now = new Set((await pausedQueues(database.db)).map(({ queue: name }) => name));
    for (const [name, each] of consumers) {
      if (isOver || now.has(name) === paused.has(name)) continue;
      if (now.has(name)) {
        paused.add(name);
        log.info({ queue: name }, "the queue is paused");
        await Promise.all(each.map((consumer) => consumer.pause()));
      } else {
        paused.delete(name);
        log.info({ queue: name }, "the queue goes on");
        for (const consumer of each) consumer.resume();
      }
    }
    return lookMs;
  });
  const unsubscribe = queue.wake.subscribe("queue", () => loop.wake());
  return {
    stop() {
      isOver = true;
      unsubscribe();
      return loop.stop();
    },
  };
}
