import type { InstanceStatus, QueueView, StatsView } from "@millrace/contract";
import { pauseQueue, resumeQueue, type Services } from "@millrace/runtime";
import {
  blockedTasks,
  heldCounts,
  instanceFigures,
  liveWorkers,
  pausedQueues,
  queueFigures,
  type StatusFigures,
} from "@millrace/store";
import type { Caller, Runtime } from "./runtime.ts";

/** Instances and rows that are looked at for figures: it bounds what one question can cost. */
const MOST_ROWS = 50_000;

/** The operators' questions about the installation as a whole. */
export function operationsOf(
  services: Services,
): Pick<Runtime, "stats" | "workers" | "tasks" | "queues" | "pauseQueue" | "resumeQueue"> {
  const { db } = services.database;
  return {
    async stats({ tenantId }, workflowId) {
      const rows = await instanceFigures(db, { tenantId, workflowId, limit: MOST_ROWS });
      return statsView(rows, services.clock.now());
    },
    async workers() {
      const [live, held] = await Promise.all([liveWorkers(db), heldCounts(db)]);
      return {
        items: live.map(({ id, host, pid, tasks, queues, startedAt, beatAt }) => ({
          id,
          host,
          pid,
          tasks: tasks.toSorted(),
          queues: [...queues],
          running: held.get(id) ?? 0,
          startedAt: startedAt.toISOString(),
          lastBeatAt: beatAt.toISOString(),
        })),
      };
    },
    async tasks({ tenantId }) {
      const [live, blocked] = await Promise.all([liveWorkers(db), blockedTasks(db, tenantId)]);
      const known = new Set([...live.flatMap(({ tasks }) => tasks), ...blocked.keys()]);
      return {
        items: [...known].toSorted().map((id) => ({
          id,
          workers: live.filter(({ tasks }) => tasks.includes(id)).map((worker) => worker.id),
          isolated: live.some(({ isolatedTasks }) => isolatedTasks?.includes(id)),
          blocked: blocked.get(id) ?? 0,
        })),
      };
    },
    queues: async ({ tenantId }) => ({ items: await queueViews(services, tenantId) }),
    async pauseQueue(caller, name, request) {
      await pauseQueue(services, caller, name, request);
      return queueView(services, caller, name);
    },
    async resumeQueue(caller, name) {
      await resumeQueue(services, caller, name);
      return queueView(services, caller, name);
    },
  };
}

async function queueView(
  services: Services,
  { tenantId }: Caller,
  name: string,
): Promise<QueueView> {
  const [view] = await queueViews(services, tenantId, name);
  if (view === undefined) throw new Error(`queue ${name} is not among those that were asked for`);
  return view;
}

/** @param only One of them, whether anybody knows it or not; absent: all that somebody knows. */
async function queueViews(
  services: Services,
  tenantId: string,
  only?: string,
): Promise<QueueView[]> {
  const { db } = services.database;
  const [live, figures, pauses] = await Promise.all([
    liveWorkers(db),
    queueFigures(db, tenantId, MOST_ROWS),
    pausedQueues(db),
  ]);
  const byName = new Map(figures.map((each) => [each.queue, each]));
  const paused = new Map(pauses.map((each) => [each.queue, each]));
  const served = live.flatMap(({ queues }) => queues);
  const known = new Set(["default", ...served, ...byName.keys(), ...paused.keys()]);
  const names = only === undefined ? [...known].toSorted() : [only];
  const jobs = await jobsOf(services, names);
  return names.map((name) => {
    const { pending = 0, retrying = 0, running = 0, oldestPendingAt } = byName.get(name) ?? {};
    const pause = paused.get(name);
    return {
      name,
      pending,
      retrying,
      running,
      oldestPendingAt: oldestPendingAt?.toISOString() ?? null,
      workers: live.filter(({ queues }) => queues.includes(name)).map(({ id }) => id),
      paused: pause !== undefined,
      pause: pause ? { at: pause.at.toISOString(), by: pause.by, reason: pause.reason } : null,
      jobs: jobs.get(name) ?? null,
    };
  });
}

/** Nothing where the queue's server is away: Postgres says what there is to do. */
async function jobsOf(
  { queue, log }: Services,
  names: readonly string[],
): Promise<ReadonlyMap<string, NonNullable<QueueView["jobs"]>>> {
  try {
    const depths = await queue.depths(names);
    return new Map(depths.map(({ queue: name, ...jobs }) => [name, jobs]));
  } catch (error) {
    log.warn({ err: error }, "the depths of the queues cannot be read");
    return new Map();
  }
}

type Figures = Omit<StatsView, "at" | "isComplete" | "workflows">;

export function statsView(rows: readonly StatusFigures[], at: Date): StatsView {
  const workflowIds = [...new Set(rows.map(({ workflowId }) => workflowId))];
  const all = figuresOf(rows);
  return {
    ...all,
    at: at.toISOString(),
    isComplete: all.total < MOST_ROWS,
    workflows: workflowIds.map((workflowId) => ({
      workflowId,
      ...figuresOf(rows.filter((row) => row.workflowId === workflowId)),
    })),
  };
}

function figuresOf(rows: readonly StatusFigures[]): Figures {
  const instances: Partial<Record<InstanceStatus, number>> = {};
  for (const { status, count } of rows) instances[status] = (instances[status] ?? 0) + count;
  const { COMPLETED = 0, FAILED = 0, CANCELLED = 0 } = instances;
  const ended = COMPLETED + FAILED + CANCELLED;
  const timed = sum(rows.map((row) => row.timed));
  const least = rows.flatMap(({ minMs }) => minMs ?? []);
  const most = rows.flatMap(({ maxMs }) => maxMs ?? []);
  return {
    total: sum(rows.map(({ count }) => count)),
    instances,
    successRate: ended === 0 ? null : COMPLETED / ended,
    executionTimeMs:
      timed === 0
        ? null
        : {
            min: Math.min(...least),
            mean: sum(rows.map(({ sumMs }) => sumMs)) / timed,
            max: Math.max(...most),
          },
    retries: sum(rows.map(({ retries }) => retries)),
  };
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
