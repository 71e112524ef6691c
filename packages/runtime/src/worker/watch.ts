import { executionKey } from "@millrace/engine";
import { disownSteps, heldSteps, lostHolds } from "@millrace/store";
import type { HeldStep } from "@millrace/store";
import { startLoop } from "../loop.ts";
import type { Loop } from "../loop.ts";
import { heldStepOf } from "./held.ts";
import type { Held } from "./held.ts";
import { persistently } from "./persist.ts";
import type { WorkerState } from "./worker-state.ts";

const watchMs = 1_000;
/** Between the claim and the run of a step lie moments in which the row is ahead. */
const strayLooks = 3;

/**
 * Keeps what this worker runs and what the rows say that it holds in step. Steps that are no longer its
 * own, or are awaited by a cancel: their handlers are told, at once by pub/sub, within a second by the
 * rows themselves. Steps that it holds and does not run: they are given up.
 */
export function startWatch(worker: WorkerState): Loop {
  const { services, holdings } = worker;
  const unsubscribe = services.queue.wake.subscribe("step", (message) => {
    const { tenantId, instanceId, path, iteration, attempt, reason } = message;
    const held = holdings.find(
      String(tenantId),
      String(instanceId),
      String(path),
      Number(iteration),
    );
    if (held === undefined || held.step.attempt !== attempt) return;
    held.abort.abort(new Error(typeof reason === "string" ? reason : "the step was stopped"));
  });
  const strays = strayHolds(worker);
  const loop = startLoop({ name: "watch", log: services.log, maxDelayMs: watchMs }, async () => {
    await abortLost(worker);
    await strays.disown();
    return watchMs;
  });
  return {
    wake: () => loop.wake(),
    async stop() {
      unsubscribe();
      await loop.stop();
    },
  };
}

async function abortLost({ services, holdings, id }: WorkerState): Promise<void> {
  // What was taken under a former id is given back before its handlers hear of it: run-worker.ts.
  const all = holdings.all().filter(({ workerId }) => workerId === id);
  if (all.length === 0) return;
  for (const lost of await lostHolds(services.database.db, id, all.map(heldStepOf))) {
    const { tenantId, instanceId, path, iteration, fence } = lost;
    const held = holdings.find(tenantId, instanceId, path, iteration);
    if (held === undefined || held.step.fence !== fence) continue;
    held.abort.abort(new Error("the step was taken away or stopped"));
  }
}

/** Tells it of a step before its handler is called: aborted, it never is. */
export async function abortIfLost({ services, id }: WorkerState, held: Held): Promise<void> {
  const { db } = services.database;
  const lost = await persistently(services.log, () => lostHolds(db, id, [heldStepOf(held)]));
  if (lost.length > 0) held.abort.abort(new Error("the step was taken away or stopped"));
}

/**
 * Steps that the rows give to this worker and that it does not run: the answer to a claim, or to the
 * commit that carried the step on, was lost with its connection. This worker is alive, so nobody would
 * take them over; it gives them up itself once it has met them `strayLooks` times.
 */
function strayHolds(worker: WorkerState) {
  const { services, holdings } = worker;
  const { db } = services.database;
  let seen = new Map<string, number>();
  return {
    async disown(): Promise<void> {
      const running = new Set(holdings.all().map((held) => keyOf(heldStepOf(held))));
      const strays = (await heldSteps(db, worker.id)).filter((step) => !running.has(keyOf(step)));
      seen = new Map(strays.map((step) => [keyOf(step), (seen.get(keyOf(step)) ?? 0) + 1]));
      const given = strays.filter((step) => (seen.get(keyOf(step)) ?? 0) >= strayLooks);
      if (given.length === 0) return;
      services.log.warn({ steps: given.length }, "held, but not running here: giving them up");
      await disownSteps(db, worker.id, given);
    },
  };
}

function keyOf({ tenantId, instanceId, path, iteration, fence }: HeldStep): string {
  return `${tenantId}/${instanceId}/${executionKey(path, iteration)}/${fence}`;
}
