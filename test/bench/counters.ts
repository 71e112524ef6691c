import { readdirSync, readFileSync } from "node:fs";
import { cpus } from "node:os";
import type { Servers } from "./servers.ts";

/**
 * What a window of time cost. Rows, commits and WAL are counted in the write-ahead log itself, between
 * two positions: the statistics views lag by up to ten seconds, the log does not.
 */
export interface Usage {
  readonly elapsedMs: number;
  /** Round trips of the measured database. */
  readonly statements: number;
  /** Pages that they touched, in memory or not; the driver's own polling is left out. */
  readonly pages: number;
  readonly commits: number;
  /** Rows inserted, updated and deleted. */
  readonly rows: number;
  /** Updates that touched no index, among all updates; NaN of none. */
  readonly hotShare: number;
  readonly indexInserts: number;
  readonly walBytes: number;
  /** Of which images of whole pages, after a checkpoint. */
  readonly pageImageBytes: number;
  /** Also those that scripts call. */
  readonly redisCommands: number;
  /** CPU time in ms, by role; `others` is whatever else the machine did. */
  readonly cpuMs: Readonly<Record<Role, number>>;
  /** Cores' time that the host gave to others. */
  readonly stealShare: number;
  readonly busyShare: number;
}

export const roles = [
  "api",
  "worker",
  "scheduler",
  "postgres",
  "redis",
  "driver",
  "others",
] as const;
export type Role = (typeof roles)[number];

export interface Watched {
  readonly database: string;
  pids(): Readonly<Partial<Record<Role, readonly number[]>>>;
}

/** In the text of the driver's own statements, so that they are not counted. */
export const driverMark = "bench_driver";

/** Starts a window; calling the answer ends it. */
export async function startWindow(
  servers: Servers,
  watched: Watched,
): Promise<() => Promise<Usage>> {
  const before = await sample(servers, watched);
  return async () => {
    const after = await sample(servers, watched);
    return usageBetween(servers, before, after);
  };
}

interface Sample {
  readonly at: number;
  readonly lsn: string;
  readonly statements: number;
  readonly pages: number;
  readonly redisCommands: number;
  readonly cpuMs: Readonly<Record<Exclude<Role, "others">, number>>;
  readonly machine: MachineTime;
}

async function sample({ admin, redisClient, postgres, redis }: Servers, watched: Watched) {
  const [{ rows }, info] = await Promise.all([
    admin.query<{ lsn: string; statements: string; pages: string }>(
      `select pg_current_wal_insert_lsn()::text as lsn, coalesce(sum(calls), 0)::text as statements,
         coalesce(sum(shared_blks_hit + shared_blks_read), 0)::text as pages
       from pg_stat_statements s join pg_database d on d.oid = s.dbid
       where d.datname = $1 and s.query not like '%${driverMark}%'`,
      [watched.database],
    ),
    redisClient.info("stats"),
  ]);
  const pids = watched.pids();
  const sum = (list: readonly number[] = []) =>
    list.reduce((total, pid) => total + cpuMsOf(pid), 0);
  const driver = process.cpuUsage();
  const found: Sample = {
    at: performance.now(),
    lsn: rows[0]?.lsn ?? "0/0",
    statements: Number(rows[0]?.statements),
    pages: Number(rows[0]?.pages),
    redisCommands: Number(/total_commands_processed:(\d+)/.exec(info)?.[1]),
    cpuMs: {
      api: sum(pids.api),
      worker: sum(pids.worker),
      scheduler: sum(pids.scheduler),
      postgres: treeCpuMs(postgres.pid),
      redis: sum(redis.pid === undefined ? [] : [redis.pid]),
      driver: (driver.user + driver.system) / 1_000,
    },
    machine: machineTime(),
  };
  return found;
}

async function usageBetween({ admin }: Servers, before: Sample, after: Sample): Promise<Usage> {
  const log = await readLog(admin, before.lsn, after.lsn);
  const count = (...types: readonly string[]) =>
    log
      .filter(({ type }) => types.includes(type))
      .reduce((total, record) => total + record.count, 0);
  const hot = count("Heap/HOT_UPDATE", "Heap/HOT_UPDATE+INIT");
  const cold = count("Heap/UPDATE", "Heap/UPDATE+INIT");
  const cores = cpus().length;
  const busyMs = after.machine.busyMs - before.machine.busyMs;
  const allMs = (after.at - before.at) * cores;
  const own = Object.fromEntries(
    Object.entries(after.cpuMs).map(([role, ms]) => [
      role,
      ms - before.cpuMs[role as keyof Sample["cpuMs"]],
    ]),
  ) as Sample["cpuMs"];
  const ownMs = Object.values(own).reduce((total, ms) => total + ms, 0);
  return {
    elapsedMs: after.at - before.at,
    statements: after.statements - before.statements,
    pages: after.pages - before.pages,
    commits: count("Transaction/COMMIT"),
    rows: count("Heap/INSERT", "Heap/INSERT+INIT", "Heap/DELETE") + hot + cold,
    hotShare: hot / (hot + cold),
    indexInserts: count("Btree/INSERT_LEAF", "Btree/SPLIT_L", "Btree/SPLIT_R"),
    walBytes: log.reduce((total, { bytes }) => total + bytes, 0),
    pageImageBytes: log.reduce((total, { imageBytes }) => total + imageBytes, 0),
    redisCommands: after.redisCommands - before.redisCommands,
    cpuMs: { ...own, others: Math.max(0, busyMs - ownMs) },
    busyShare: busyMs / allMs,
    stealShare: (after.machine.stealMs - before.machine.stealMs) / allMs,
  };
}

async function readLog(admin: Servers["admin"], from: string, to: string) {
  if (from === to) return [];
  // The position after the last record may not have been written yet; a flush brings it there.
  await admin.query("select pg_logical_emit_message(false, 'bench', 'end', true)");
  const { rows } = await admin.query<{
    type: string;
    count: string;
    bytes: string;
    image_bytes: string;
  }>(
    `select "resource_manager/record_type" as type, count::text, combined_size::bigint::text as bytes,
       fpi_size::bigint::text as image_bytes
     from pg_get_wal_stats($1, $2, true) where count > 0`,
    [from, to],
  );
  return rows.map(({ type, count, bytes, image_bytes: images }) => ({
    type,
    count: Number(count),
    bytes: Number(bytes),
    imageBytes: Number(images),
  }));
}

/** The kernel counts in hundredths of a second. */
const msPerTick = 10;

/** CPU time of one process so far, 0 when it has ended. */
function cpuMsOf(pid: number): number {
  const fields = statOf(pid);
  return fields === undefined ? 0 : (Number(fields[11]) + Number(fields[12])) * msPerTick;
}

/** CPU time of a process, of the children it has, and of those that it has had. */
function treeCpuMs(pid: number | undefined): number {
  const fields = pid === undefined ? undefined : statOf(pid);
  if (fields === undefined) return 0;
  const ended = (Number(fields[13]) + Number(fields[14])) * msPerTick;
  const children = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map((name) => statOf(Number(name)))
    .filter((stat) => stat !== undefined && Number(stat[1]) === pid);
  const living = children.reduce(
    (total, stat) => total + (Number(stat?.[11]) + Number(stat?.[12])) * msPerTick,
    0,
  );
  return (Number(fields[11]) + Number(fields[12])) * msPerTick + ended + living;
}

/** The fields of /proc/<pid>/stat from the third, which is index 0: state, parent, … */
function statOf(pid: number): readonly string[] | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "latin1");
    return text.slice(text.lastIndexOf(")") + 2).split(" ");
  } catch {
    return undefined;
  }
}

export function residentMb(pid: number): number {
  const text = readFileSync(`/proc/${pid}/status`, "latin1");
  return Number(/VmRSS:\s+(\d+) kB/.exec(text)?.[1]) / 1_024;
}

interface MachineTime {
  readonly busyMs: number;
  readonly stealMs: number;
}

function machineTime(): MachineTime {
  const [line = ""] = readFileSync("/proc/stat", "latin1").split("\n");
  const [, user, nice, system, , , irq, softIrq, steal] = line.trim().split(/\s+/).map(Number);
  const sum = [user, nice, system, irq, softIrq].reduce<number>((a, b) => a + (b ?? 0), 0);
  return { busyMs: sum * msPerTick, stealMs: (steal ?? 0) * msPerTick };
}
