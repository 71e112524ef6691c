import { fork } from "node:child_process";
import { join } from "node:path";
import { Queue } from "bullmq";
import { Redis } from "ioredis";
import pg from "pg";
import { openHttp } from "./http.ts";
import type { Servers } from "./servers.ts";
import { inFlight, percentile, range } from "./statistics.ts";
import type { FigureRule } from "./workload.ts";

/**
 * What this machine gives to bare code of the same shape, in the same run: no engine, no step rows, no
 * HTTP validation. Every figure of the workloads is set in relation to one of these.
 */
export const floorFigures: Readonly<Record<string, FigureRule>> = {
  "bullmq.drain": { unit: "jobs/s", isRate: true },
  "bullmq.hop p50": { unit: "ms", isRate: false },
  "bullmq.hop p99": { unit: "ms", isRate: false },
  "commit.single p50": { unit: "ms", isRate: false },
  "update.single": { unit: "updates/s", isRate: true },
  "update.batched": { unit: "updates/s", isRate: true },
  "skeleton.drain": { unit: "steps/s", isRate: true },
  "http.echo": { unit: "calls/s", isRate: true },
};

export async function measureFloors(
  servers: Servers,
  isQuick: boolean,
): Promise<Record<string, number>> {
  const database = await servers.freshDatabase();
  try {
    await createTables(database.url);
    const updates = await updateFloors(database.url, isQuick ? 700 : 1_500);
    await createTables(database.url);
    const queue = await queueFloors(servers, database.url, isQuick ? 4_000 : 8_000);
    return { ...updates, ...queue, "http.echo": await httpFloor(isQuick ? 4_000 : 10_000) };
  } finally {
    await database.drop();
  }
}

const rowCount = 50_000;

async function createTables(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query("drop table if exists items, entries");
  await client.query(
    `create table items (id int primary key, version int not null, body jsonb not null)
     with (fillfactor = 80)`,
  );
  await client.query(
    "create table entries (item int, version int, body jsonb, primary key (item, version))",
  );
  await client.query(
    `insert into items select n, 0, '{"at":"a"}' from generate_series(0, ${rowCount - 1}) n`,
  );
  await client.query("vacuum analyze items");
  await client.query("checkpoint");
  await client.end();
}

/** A version-checked update and a row of history, in one statement. */
export const updateOne = {
  name: "update-one",
  text: `with changed as (
      update items set version = version + 1, body = $3 where id = $1 and version = $2
      returning id, version)
    insert into entries select id, version, $4::jsonb from changed returning item`,
};

export const updateMany = {
  name: "update-many",
  text: `with asked as (
      select * from unnest($1::int[], $2::int[], $3::jsonb[], $4::jsonb[]) as t(id, version, body, entry)),
    changed as (
      update items set version = items.version + 1, body = asked.body from asked
      where items.id = asked.id and items.version = asked.version
      returning items.id, items.version, asked.entry)
    insert into entries select id, version, entry from changed returning item`,
};

export const itemBody = '{"at":"b","input":{"orderId":"order-1"}}';
export const entryBody = '{"result":{"ok":true}}';

async function updateFloors(url: string, ms: number): Promise<Record<string, number>> {
  const pool = new pg.Pool({ connectionString: url, max: 8 });
  const versions = new Int32Array(rowCount);
  let next = 0;
  const take = () => (next++ * 7_919) % rowCount;
  const one = async () => {
    const id = take();
    const values = [id, versions[id], itemBody, entryBody];
    const { rowCount: changed } = await pool.query({ ...updateOne, values });
    if (changed !== 1) throw new Error("an update did not find its version");
    versions[id] = (versions[id] ?? 0) + 1;
    return 1;
  };
  const many = async () => {
    const ids = range(200).map(take);
    const values = [
      ids,
      ids.map((id) => versions[id]),
      ids.map(() => itemBody),
      ids.map(() => entryBody),
    ];
    const { rowCount: changed } = await pool.query({ ...updateMany, values });
    for (const id of ids) versions[id] = (versions[id] ?? 0) + 1;
    return changed ?? 0;
  };

  const latencies: number[] = [];
  await rate(ms / 2, 1, one);
  await rate(ms, 1, async () => {
    const from = performance.now();
    await one();
    latencies.push(performance.now() - from);
    return 1;
  });
  const single = await rate(ms, 8, one);
  const batched = await rate(ms, 2, many);
  await pool.end();
  return {
    "commit.single p50": percentile(latencies, 50),
    "update.single": single,
    "update.batched": batched,
  };
}

/** Units per second of `work`, which says how many it did, with so many in flight. */
async function rate(ms: number, width: number, work: () => Promise<number>): Promise<number> {
  const from = performance.now();
  let done = 0;
  const lane = async () => {
    while (performance.now() - from < ms) {
      const more = await work();
      done += more;
    }
  };
  await Promise.all(range(width).map(lane));
  return (done * 1_000) / (performance.now() - from);
}

/** One worker process on empty jobs; then jobs of three steps each, committed in groups. */
async function queueFloors(
  servers: Servers,
  databaseUrl: string,
  jobs: number,
): Promise<Record<string, number>> {
  const empty = await drainJobs(servers, databaseUrl, "empty", jobs);
  const skeleton = await drainJobs(servers, databaseUrl, "skeleton", jobs / 2);
  return {
    "bullmq.drain": empty.jobsPerSecond,
    "bullmq.hop p50": percentile(empty.hops, 50),
    "bullmq.hop p99": percentile(empty.hops, 99),
    "skeleton.drain": 3 * skeleton.jobsPerSecond,
  };
}

export type FloorJob = "empty" | "skeleton";

async function drainJobs(
  { redis }: Servers,
  databaseUrl: string,
  kind: FloorJob,
  count: number,
): Promise<{ readonly jobsPerSecond: number; readonly hops: readonly number[] }> {
  const connection = new Redis(redis.url, { maxRetriesPerRequest: null });
  const queue = new Queue(`floor-${kind}`, { connection });
  const options = { removeOnComplete: true, priority: 10 };
  for (let from = 0; from < count; from += 1_000) {
    const chunk = range(Math.min(1_000, count - from)).map((index) => from + index);
    await queue.addBulk(chunk.map((id) => ({ name: "job", data: { id }, opts: options })));
  }
  const worker = fork(join(import.meta.dirname, "floor-worker.js"), [kind, redis.url, databaseUrl]);
  const heard = new Listener();
  worker.on("message", (ids: readonly number[]) => heard.hear(ids));
  const from = await heard.atLeast(1).then(() => performance.now());
  const before = heard.count;
  await heard.atLeast(count);
  const jobsPerSecond = ((count - before) * 1_000) / (performance.now() - from);

  const hops: number[] = [];
  for (const index of range(kind === "empty" ? 150 : 0)) {
    const addedAt = performance.now();
    await queue.add("job", { id: count + index }, options);
    await heard.atLeast(count + index + 1);
    hops.push(performance.now() - addedAt);
  }
  worker.kill();
  await queue.close();
  connection.disconnect();
  return { jobsPerSecond, hops: hops.slice(20) };
}

/** Counts what the worker process says it has done. */
class Listener {
  count = 0;
  #wanted: { readonly count: number; readonly resolve: () => void } | undefined;

  hear(ids: readonly number[]): void {
    this.count += ids.length;
    if (this.#wanted !== undefined && this.count >= this.#wanted.count) this.#wanted.resolve();
  }

  atLeast(count: number): Promise<void> {
    return new Promise((resolve) => {
      this.#wanted = { count, resolve };
      this.hear([]);
    });
  }
}

/** A server that parses a body and answers it, in a process of its own, 32 calls in flight. */
async function httpFloor(count: number): Promise<number> {
  const server = fork(join(import.meta.dirname, "floor-server.js"));
  const url = await new Promise<string>((resolve) => {
    server.once("message", (message: string) => resolve(message));
  });
  const http = openHttp(url);
  const call = (n: number) =>
    http.call("POST", "/v1/instances", { workflowId: "bench_chain3", input: { n } });
  await inFlight(range(count / 4), 32, call);
  const from = performance.now();
  await inFlight(range(count), 32, call);
  const callsPerSecond = (count * 1_000) / (performance.now() - from);
  http.close();
  server.kill();
  return callsPerSecond;
}
