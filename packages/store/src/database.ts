import { Kysely, PostgresDialect } from "kysely";
import type { PostgresPool, PostgresPoolClient } from "kysely";
import pg from "pg";
import { driverUrl } from "./driver-url.ts";
import { breaksConnection, isStalePlan, isTransient, storeErrorOf } from "./errors.ts";
import { columnsOf, PreparedQuery, requestOf } from "./prepared-query.ts";
import type { Columns } from "./prepared-query.ts";
import { openResignation } from "./resignation.ts";
import type { Resignation } from "./resignation.ts";
import { prepared, preparedName, registerPool } from "./statement.ts";
import { parseTime } from "./stored-time.ts";
import type { Database } from "./tables.ts";

/** Where the pool tells what it met; a pino logger is one. */
export interface StoreLog {
  warn(fields: object, message: string): void;
  debug(fields: object, message: string): void;
}

export interface DatabaseOptions {
  readonly url: string;
  /** Connections at most; 10 when absent. */
  readonly poolSize?: number;
  /** Shown in `pg_stat_activity`. */
  readonly applicationName?: string;
  /** Longest that one statement may take; 30 s when absent. */
  readonly statementTimeoutMs?: number;
  /** Longest wait for a connection; 5 s when absent. */
  readonly connectTimeoutMs?: number;
  /** How long to wait for a server that is away; 0 when absent. */
  readonly waitMs?: number;
  readonly log?: StoreLog;
}

export interface PoolStats {
  readonly open: number;
  readonly idle: number;
  /** Callers that wait for a connection. */
  readonly waiting: number;
  readonly size: number;
}

export interface DatabaseHandle {
  readonly db: Kysely<Database>;
  readonly url: string;
  stats(): PoolStats;
  /** The database's clock, to the millisecond, read after the question was sent. */
  now(): Promise<{ readonly now: Date }>;
  /** Whether it answers and takes writes. @throws Error in words, where it is read-only; DatabaseUnavailableError */
  tryWrite(): Promise<void>;
  /**
   * From now on no statement is waited for: all fail as with a server that is away. For the end of a process
   * whose server does not answer, and does not hang up either.
   */
  resign(): void;
  /** Waits for statements under way. Nothing happens the second time. */
  close(): Promise<void>;
}

/**
 * Opens the pool. A server that stays away is no failure: each statement then is.
 *
 * Connections that die are replaced: one that was terminated (57P01), timed out or was left inside a
 * transaction is destroyed when it comes back, never handed on.
 */
export async function openDatabase(options: DatabaseOptions): Promise<DatabaseHandle> {
  const { url, poolSize = 10, log } = options;
  const pool: Pool = Object.assign(new pg.Pool(poolConfig(options, poolSize)), {
    resignation: openResignation(),
  });
  // Without a listener an error of an idle connection ends the process, and so does one of a
  // connection that was taken out but has no statement under way.
  pool.on("error", (error) => log?.warn({ err: error }, "an idle database connection was lost"));
  pool.on("connect", (client) => {
    client.on("error", (error) => log?.debug({ err: error }, "a database connection was lost"));
  });
  const db = new Kysely<Database>({
    dialect: new PostgresDialect({ pool: guardedPool(pool) }),
  });
  registerPool(db, (text, values) => runOn(pool, text, values));
  let closing: Promise<void> | undefined;
  await waitForServer(pool, options.waitMs ?? 0, log);
  return {
    db,
    url,
    stats: () => ({
      open: pool.totalCount,
      idle: pool.idleCount,
      waiting: pool.waitingCount,
      size: poolSize,
    }),
    now: () => askTime(pool),
    tryWrite: () => tryWrite(pool),
    resign: () => pool.resignation.resign(),
    close: () => (closing ??= endPool(pool)),
  };
}

type Pool = pg.Pool & { readonly resignation: Resignation };

async function endPool(pool: Pool): Promise<void> {
  await pool.resignation.unless(pool.end()).catch((error: unknown) => {
    if (!isTransient(error)) throw error;
  });
}

/** Asks until the server answers or the time is over; then it is for the first statement to fail. */
async function waitForServer(pool: Pool, waitMs: number, log: StoreLog | undefined): Promise<void> {
  const end = performance.now() + waitMs;
  let saidAt = -Infinity;
  while (performance.now() < end) {
    try {
      await askTime(pool);
      return;
    } catch (error) {
      if (!isTransient(error)) throw error;
      if (performance.now() - saidAt > sayAgainMs) {
        log?.warn({ reason: error.message }, "the database does not answer; waiting for it");
        saidAt = performance.now();
      }
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}

const sayAgainMs = 10_000;

async function askTime(pool: Pool): Promise<{ readonly now: Date }> {
  const [answer] = await runOn(pool, clockQuestion, []);
  return answer as { now: Date };
}

async function tryWrite(pool: Pool): Promise<void> {
  const rows = await runOn(pool, writeQuestion, []);
  const [{ readOnly, hasTables }] = rows as [{ readOnly: string; hasTables: boolean }];
  if (!hasTables) throw new Error("it lacks the tables of Millrace; make them: millrace migrate");
  if (readOnly === "on") throw new Error("it takes no writes: it is read-only, or a standby");
}

const writeQuestion = prepared(
  "try_write",
  `select current_setting('transaction_read_only') as "readOnly",
    to_regclass('workflow_instances') is not null as "hasTables"`,
);

async function runOn(
  pool: Pool,
  text: string,
  values: readonly unknown[],
): Promise<readonly unknown[]> {
  const client = await guardedConnect(pool);
  try {
    return (await client.query(text, values)).rows;
  } finally {
    client.release();
  }
}

const clockQuestion = prepared("clock", "select clock_timestamp() as now");

/**
 * A process that stands still in the middle of a transaction holds an instance's row. It is given up after
 * as long as a worker that is silent: nobody else is to wait longer for the one than for the other.
 */
const standingMs = 5_000;

function poolConfig(options: DatabaseOptions, poolSize: number): pg.PoolConfig {
  const { url, applicationName = "millrace", statementTimeoutMs = 30_000 } = options;
  return {
    connectionString: driverUrl(url),
    max: poolSize,
    application_name: applicationName,
    connectionTimeoutMillis: options.connectTimeoutMs ?? 5_000,
    idleTimeoutMillis: 60_000,
    keepAlive: true,
    // The server ends what takes too long; the driver only where the server itself is gone.
    statement_timeout: statementTimeoutMs,
    query_timeout: statementTimeoutMs + 5_000,
    idle_in_transaction_session_timeout: standingMs,
    options: sessionSettings.map((setting) => `-c ${setting}`).join(" "),
    types: { getTypeParser: parserOf },
  };
}

const sessionSettings = [
  // Short statements gain nothing from compilation.
  "jit=off",
  // Times come in a form that `Date` reads.
  "TimeZone=UTC",
  // Every statement has its index. A plan that was made while the tables were empty would scan them,
  // and a prepared statement keeps its plan until the next analyze: measured in the first minute of a
  // new database, 141 µs of server CPU per commit after 3,000 instances, 243 µs after 6,000, against 80.
  "enable_seqscan=off",
  // One plan a statement. With few rows Postgres finds a plan for just these parameters cheaper and so
  // makes a new one each time: measured at rest, 1.1 ms of planning beside 0.5 ms of execution for a
  // commit, and the same for reading an instance. Where parameters decide the plan, as in a list with
  // filters, the statement asks for its own (`planned`, statement.ts).
  "plan_cache_mode=force_generic_plan",
];

const parsers: ReadonlyMap<number, (text: string) => unknown> = new Map<
  number,
  (text: string) => unknown
>([
  [pg.types.builtins.INT8, parseInt8],
  // As text: see tables.ts.
  [pg.types.builtins.JSON, (text) => text],
  [pg.types.builtins.TIMESTAMPTZ, parseTime],
]);

const parserOf: pg.CustomTypesConfig["getTypeParser"] = (typeId, format) =>
  parsers.get(typeId) ?? pg.types.getTypeParser(typeId, format);

/** @throws RangeError rather than a number that is not the one that is stored. */
function parseInt8(text: string): number {
  const number = Number(text);
  if (Number.isSafeInteger(number)) return number;
  throw new RangeError(`the database has ${text}, which is no exact number here`);
}

/** What Kysely needs of a pool, with prepared statements, our errors, and no broken connection back. */
function guardedPool(pool: Pool): PostgresPool {
  return { connect: () => guardedConnect(pool), end: () => pool.end() };
}

async function guardedConnect(pool: Pool): Promise<PostgresPoolClient> {
  try {
    return guard(await pool.resignation.unless(pool.connect()), pool.resignation);
  } catch (error) {
    throw storeErrorOf(error);
  }
}

/** The first run of a statement is the driver's. */
function queryPrepared(
  client: pg.PoolClient,
  columns: Map<string, Columns>,
  text: string,
  values: readonly unknown[],
): Promise<{ readonly rows: readonly object[] }> {
  const name = preparedName(text);
  if (name === undefined) return client.query({ text, values: values as unknown[] });
  const known = columns.get(name);
  const request = known && requestOf(name, values);
  if (known === undefined || request === undefined) {
    return client.query({ name, text, values: values as unknown[] }).then((result) => {
      columns.set(name, columnsOf(result.fields, parserOf));
      return result;
    });
  }
  return new Promise((resolve, reject) => {
    client.query(
      new PreparedQuery(request, known, (error, query) =>
        query === undefined ? reject(error) : resolve(query),
      ),
    );
  });
}

/** Kysely knows a connection by its object, so that each has one guard for as long as it lives. */
const guards = new WeakMap<pg.PoolClient, PostgresPoolClient>();

function guard(client: pg.PoolClient, { unless }: Resignation): PostgresPoolClient {
  const known = guards.get(client);
  if (known !== undefined) return known;

  let isBroken = false;
  /** Of the statements that this connection has prepared. */
  const columns = new Map<string, Columns>();
  const query = async (text: string, values: readonly unknown[]) => {
    try {
      return await unless(queryPrepared(client, columns, text, values));
    } catch (error) {
      isBroken ||= breaksConnection(error);
      if (!isStalePlan(error) || client.getTransactionStatus() !== "I") throw storeErrorOf(error);
    }
    // A migration has come since it was prepared. Planned anew it is right; the next caller has a new connection.
    try {
      return await unless(client.query({ text, values: values as unknown[] }));
    } catch (error) {
      throw storeErrorOf(error);
    }
  };
  const guarded: PostgresPoolClient = {
    // Its other form, with a cursor, is for streams, which need a driver option that is not set.
    query: query as unknown as PostgresPoolClient["query"],
    /** One that is broken, or still inside a transaction, is not for the next caller. */
    release(destroy = false) {
      client.release(destroy || isBroken || client.getTransactionStatus() !== "I");
    },
  };
  guards.set(client, guarded);
  return guarded;
}
