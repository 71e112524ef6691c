import pg from "pg";
import { pulse, staleBeatMs } from "./beat.ts";
import { withExits } from "./dead-letters.ts";
import { driverUrl } from "./driver-url.ts";
import { prepared, run, type Db } from "./statement.ts";

/** Worker processes. One that beats is alive; what others hold may be taken over. */

export interface WorkerEntry {
  readonly id: string;
  readonly host: string;
  readonly pid: number;
  readonly tasks: readonly string[];
  /** Those of them that have a process for each run, where it says so. */
  readonly isolatedTasks?: readonly string[] | null;
  readonly queues: readonly string[];
  /** Steps that it runs alone at a time for each of its queues, where it says so. */
  readonly cells?: number | null;
  /** Other steps that it runs at a time, where it says so. */
  readonly concurrency?: number | null;
}

export interface LiveWorker extends WorkerEntry {
  readonly startedAt: Date;
  readonly beatAt: Date;
}

/** Nothing happens the second time: where an answer was lost, nobody knows whether there was a first one. */
export async function registerWorker(db: Db, worker: WorkerEntry): Promise<void> {
  await db
    .insertInto("workers")
    .values({
      id: worker.id,
      host: worker.host,
      pid: worker.pid,
      tasks: [...worker.tasks],
      isolated_tasks: worker.isolatedTasks ? [...worker.isolatedTasks] : null,
      queues: [...worker.queues],
      cells: worker.cells ?? null,
      concurrency: worker.concurrency ?? null,
    })
    .onConflict((conflict) => conflict.column("id").doNothing())
    .execute();
}

/** @returns False where the worker is gone, or was silent for so long that others may have its steps. */
export async function beat(db: Db, workerId: string): Promise<boolean> {
  return (await run<{ ok: boolean }>(db, prepared("beat", pulse), [workerId, null])).length > 0;
}

/** A worker that fell silent, and when it was last heard of. */
export interface SilentWorker {
  readonly id: string;
  readonly beatAt: Date;
}

/** Workers that count as dead since less than `sinceMs`. */
export async function workersLost(
  db: Db,
  sinceMs: number,
  limit: number,
): Promise<readonly SilentWorker[]> {
  const rows = await run<{ id: string; beat_at: Date }>(db, lost, [sinceMs, limit]);
  return rows.map(({ id, beat_at }) => ({ id, beatAt: beat_at }));
}

const lost = prepared(
  "workers_lost",
  `select id, beat_at from workers
  where beat_at <= clock_timestamp() - interval '${staleBeatMs} ms'
    and beat_at > clock_timestamp() - interval '${staleBeatMs} ms' - $1::bigint * interval '1 ms'
  order by beat_at
  limit $2`,
);

/** How the process of a worker ended. */
export interface WorkerExit {
  readonly host: string;
  readonly pid: number;
  /** A signal or an exit code, in words. */
  readonly exit: string;
}

/**
 * For a supervisor, which alone knows it: so that a dead letter says what its step's workers died of. A
 * connection for this once, since workers seldom die.
 *
 * @throws When the database does not answer in time.
 */
export async function noteWorkerExit(
  databaseUrl: string,
  { host, pid, exit }: WorkerExit,
): Promise<void> {
  const client = new pg.Client({
    connectionString: driverUrl(databaseUrl),
    application_name: "millrace-supervisor",
    connectionTimeoutMillis: staleBeatMs,
    query_timeout: staleBeatMs,
  });
  client.on("error", () => {});
  try {
    await client.connect();
    await client.query(noteExit, [host, pid, exit]);
  } finally {
    await client.end().catch(() => {});
  }
}

/** Process ids come again: an entry that has been silent for long is another one's. */
const noteExit = noted(`update workers set exit = $3
  where host = $1 and pid = $2 and exit is null
    and beat_at > clock_timestamp() - interval '1 minute'`);

/** A step may have been given up before its worker's end is known: its dead letter says it then, too. */
function noted(update: string): string {
  return `with noted as (${update} returning id, exit)
  update dead_letters d set deliveries = ${withExits("d.deliveries", "noted")}
  from noted n
  where d.status = 'OPEN' and d.created_at > clock_timestamp() - interval '1 minute'
    and d.deliveries @> jsonb_build_array(jsonb_build_object('workerId', n.id, 'exit', null))`;
}

/**
 * For whoever has started the process and has seen it end: what it held is taken over at once, and not
 * only when its beat has lapsed. Does nothing where the worker has taken its leave.
 */
export async function noteDeath(db: Db, workerId: string, death: WorkerDeath): Promise<void> {
  await run(db, noteOf, [workerId, death.exit, death.peakBytes ?? null]);
}

export interface WorkerDeath {
  /** A signal or an exit code, in words. */
  readonly exit: string;
  /** The most memory that it was seen to have; absent where nobody has looked. */
  readonly peakBytes?: number | undefined;
}

const noteOf = prepared(
  "note_death",
  noted(`update workers set exit = $2, rss_bytes = greatest(rss_bytes, $3::bigint)
  where id = $1 and exit is null`),
);

/** What is said of an entry whose process has not died, and has another one now. */
export const wentOn = "went on under another id";

/** It had been silent for so long that it counted as dead: what it held has not killed it. */
export async function noteWentOn(db: Db, workerId: string): Promise<void> {
  await db.updateTable("workers").set({ exit: wentOn }).where("id", "=", workerId).execute();
}

/** A worker that has ended, and holds nothing any more. */
export async function forgetWorker(db: Db, workerId: string): Promise<void> {
  await db.deleteFrom("workers").where("id", "=", workerId).execute();
}

/** Takes away workers that have been silent so long that nobody asks about them any more. */
export async function forgetDeadWorkers(db: Db, olderMs: number): Promise<number> {
  const rows = await run<{ id: string }>(db, forgetDead, [olderMs]);
  return rows.length;
}

const forgetDead = prepared(
  "forget_dead_workers",
  `delete from workers w
  where w.beat_at < clock_timestamp() - $1::bigint * interval '1 ms'
    and not exists (
      select from step_executions s where s.worker_id = w.id and s.status = 'RUNNING')
  returning w.id`,
);

export async function liveWorkers(db: Db): Promise<readonly LiveWorker[]> {
  const rows = await run<LiveRow>(db, live, []);
  return rows.map(({ isolated_tasks, started_at, beat_at, ...rest }) => ({
    ...rest,
    isolatedTasks: isolated_tasks,
    startedAt: started_at,
    beatAt: beat_at,
  }));
}

interface LiveRow {
  readonly id: string;
  readonly host: string;
  readonly pid: number;
  readonly tasks: readonly string[];
  readonly isolated_tasks: readonly string[] | null;
  readonly queues: readonly string[];
  readonly cells: number | null;
  readonly concurrency: number | null;
  readonly started_at: Date;
  readonly beat_at: Date;
}

const live = prepared(
  "live_workers",
  `select id, host, pid, tasks, isolated_tasks, queues, cells, concurrency, started_at, beat_at from workers
  where beat_at > clock_timestamp() - interval '${staleBeatMs} ms' and exit is null
  order by started_at, id`,
);

/** A step that live workers run alone: a suspect, or any that runs in a cell, which serves no queue. */
export interface Suspect {
  readonly tenantId: string;
  readonly instanceId: string;
  readonly stepId: string;
  readonly queue: string;
}

/** Those that began first, first. */
export async function runningSuspects(
  db: Db,
  least: { readonly lapses: number; readonly handOvers: number },
  limit: number,
): Promise<readonly Suspect[]> {
  const rows = await run<SuspectRow>(db, suspects, [least.lapses, least.handOvers, limit]);
  return rows.map(({ tenant_id, instance_id, step_id, queue }) => ({
    tenantId: tenant_id,
    instanceId: instance_id,
    stepId: step_id,
    queue,
  }));
}

interface SuspectRow {
  readonly tenant_id: string;
  readonly instance_id: string;
  readonly step_id: string;
  readonly queue: string;
}

const suspects = prepared(
  "running_suspects",
  `select s.tenant_id, s.instance_id, s.step_id, s.queue
  from workers w join step_executions s on s.worker_id = w.id and s.status = 'RUNNING'
  where w.beat_at > clock_timestamp() - interval '${staleBeatMs} ms' and w.exit is null
    and (s.lapses >= $1 or s.hand_overs >= $2 or w.queues = '{}')
  order by s.started_at, s.instance_id
  limit $3`,
);

/** The queues that workers have served, those included that are gone for a while. */
export async function knownQueues(db: Db): Promise<readonly string[]> {
  return (await run<{ queue: string }>(db, queues, [])).map(({ queue }) => queue);
}

const queues = prepared("known_queues", "select distinct unnest(queues) as queue from workers");
