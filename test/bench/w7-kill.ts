import { setTimeout as sleep } from "node:timers/promises";
import { chain3 } from "./definitions.ts";
import { startWorkers, wallMs, withRig } from "./rig.ts";
import type { BenchWorker, Rig } from "./rig.ts";
import type { Workload } from "./workload.ts";

/** kill -9 of a worker at 30 % of a drain: how soon others go on, and when all is done. */
export const kills: readonly Workload[] = [
  {
    id: "W7",
    title: "kill -9 of the only worker mid-drain, another started at once",
    figures: {
      "first done s": { unit: "s", isRate: false, target: 2 },
      "all done s": { unit: "s", isRate: false, target: 5 },
    },
    run: (bench) =>
      withRig(bench, async (rig) => {
        const count = 2_000;
        const [victim] = await drainTo(rig, count, 1);
        const { killedAt, done } = await kill(rig, victim);
        const restarted = rig.startWorker();
        const firstAt = await rig.untilCount("COMPLETED", done + 1);
        const allAt = await rig.untilCount("COMPLETED", count);
        await restarted;
        return {
          values: {
            "first done s": (firstAt - killedAt) / 1_000,
            "all done s": (allAt - killedAt) / 1_000,
          },
        };
      }),
  },
  {
    id: "W7B",
    title: "kill -9 of one of two workers mid-drain: the other takes over what it held",
    figures: { "all done s": { unit: "s", isRate: false, target: 6 } },
    run: (bench) =>
      withRig(bench, async (rig) => {
        const count = 2_000;
        const [victim] = await drainTo(rig, count, 2);
        const { killedAt } = await kill(rig, victim);
        const allAt = await rig.untilCount("COMPLETED", count);
        return { values: { "all done s": (allAt - killedAt) / 1_000 } };
      }),
  },
];

/** Starts so many workflows, then workers, and waits until 30 % are done. */
async function drainTo(rig: Rig, count: number, workers: number): Promise<readonly BenchWorker[]> {
  await rig.register(chain3);
  await rig.start(chain3.id, count);
  const started = startWorkers(rig, workers);
  while ((await doneOf(rig)) < count * 0.3) await sleep(5);
  return started;
}

async function kill(rig: Rig, victim: BenchWorker | undefined) {
  victim?.child.kill("SIGKILL");
  const killedAt = wallMs();
  await victim?.child.exited;
  // What it had sent may still be committed.
  await sleep(20);
  return { killedAt, done: await doneOf(rig) };
}

async function doneOf({ sql }: Rig): Promise<number> {
  const { rows } = await sql.query<{ count: number }>(
    "select count(*)::int as count from workflow_instances where status = 'COMPLETED'",
  );
  return rows[0]?.count ?? 0;
}
