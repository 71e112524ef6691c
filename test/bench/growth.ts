import { copyEnded } from "./copies.ts";
import { startWindow } from "./counters.ts";
import { chain3, waiter } from "./definitions.ts";
import { startWorkers, withRig } from "./rig.ts";
import type { Rig } from "./rig.ts";
import { inFlight, range } from "./statistics.ts";
import type { Bench, FigureRule, Workload } from "./workload.ts";

const kinds = ["start", "step", "event"] as const;
type Kind = (typeof kinds)[number];

/** Instances that are measured at each size. */
const sample = 500;
const most = 1.3;

/**
 * What a start, a step and an event cost among ever more instances that have ended. Told by the pages
 * that Postgres touches, which do not depend on what else the machine does: an index ten times as long
 * is now and then one level deeper, and that is all that may grow.
 */
export const growth: readonly Workload[] = [
  grown("GROWTH", [1_000, 10_000, 100_000]),
  grown("GROWTHL", [1_000, 10_000, 100_000, 1_000_000]),
];

function grown(id: string, allSizes: readonly number[]): Workload {
  const name = (kind: Kind, size: number) => `${kind} among ${size.toLocaleString("en")}`;
  const ratio = (kind: Kind) => `${kind}: last ÷ first`;
  return {
    id,
    title: "pages that Postgres touches for a start, a step and an event, by instances stored",
    isOnce: true,
    figures: Object.fromEntries(
      kinds.flatMap((kind): [string, FigureRule][] => [
        ...allSizes.map((size): [string, FigureRule] => [
          name(kind, size),
          { unit: "pages", isRate: false },
        ]),
        [ratio(kind), { unit: "×", isRate: false, target: most }],
      ]),
    ),
    run: (bench) =>
      withRig(bench, async (rig) => {
        const sizes = bench.isQuick ? allSizes.slice(0, 2) : allSizes;
        await rig.register(chain3);
        await rig.register(waiter);
        await measure(bench, rig, "warm");
        const values: Record<string, number> = {};
        const first: Partial<Record<Kind, number>> = {};
        for (const size of sizes) {
          await fill(rig, size);
          const pages = await measure(bench, rig, `s${size}`);
          for (const kind of kinds) {
            values[name(kind, size)] = pages[kind];
            first[kind] ??= pages[kind];
            values[ratio(kind)] = pages[kind] / (first[kind] ?? Number.NaN);
          }
        }
        return { values };
      }),
  };
}

/** Pages for each. The worker comes once all are started, so that the windows do not overlap. */
async function measure(
  { servers }: Bench,
  rig: Rig,
  prefix: string,
): Promise<Readonly<Record<Kind, number>>> {
  const pages = async (act: (since: Date) => Promise<unknown>): Promise<number> => {
    const { rows } = await rig.sql.query<{ now: Date }>("select clock_timestamp() as now");
    const close = await startWindow(servers, rig);
    await act(rows[0]?.now ?? new Date());
    return (await close()).pages;
  };
  const start = await pages(() => rig.start(chain3.id, sample));
  const [worker] = await startWorkers(rig, 1);
  const steps = await pages((since) => rig.untilCount("COMPLETED", sample, since));
  await rig.start(waiter.id, sample, (n) => ({ key: `${prefix}-${n}` }));
  await rig.untilCount("WAITING_FOR_EVENT", sample);
  const events = await pages(async (since) => {
    await inFlight(range(sample), 32, (n) =>
      rig.http.call("POST", "/v1/events", {
        pattern: "bench.go",
        payload: { key: `${prefix}-${n}` },
      }),
    );
    await rig.untilCount("COMPLETED", sample, since);
  });
  await worker?.child.stop();
  return { start: start / sample, step: steps / (3 * sample), event: events / sample };
}

/** Starting and running so many would take longer than measuring them: all but one are copies. */
async function fill(rig: Rig, size: number): Promise<void> {
  const { rows } = await rig.sql.query<{ id: string; count: number }>(
    `select (array_agg(id))[1] as id, count(*)::int as count from workflow_instances
     where workflow_id = $1 and status = 'COMPLETED'`,
    [chain3.id],
  );
  const [found] = rows;
  if (found === undefined) throw new Error("no instance to copy");
  await copyEnded(rig.sql, found.id, Math.max(0, size - found.count));
}
