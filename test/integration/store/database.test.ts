import { inStoredOrder } from "@millrace/engine";
import {
  claimSteps,
  commitBatch,
  commitLocked,
  createBatch,
  DatabaseUnavailableError,
  DataRefusedError,
  isTransient,
  loadInstance,
  migrateToLatest,
  openDatabase,
  pendingMigrations,
  readHistory,
  registerWorker,
  StatementTimeoutError,
} from "@millrace/store";
import type { CommitOutcome, DatabaseHandle, Json } from "@millrace/store";
import { createDatabase, createEmptyDatabase } from "@millrace/testkit";
import fc from "fast-check";
import { sql } from "kysely";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openRelay } from "../../support/relay.ts";
import {
  claimRequest,
  commit,
  create,
  firstCommit,
  openTestDatabase,
  openTransaction,
  result,
  tenantId,
  workerId,
} from "./support.ts";
import type { OpenedDatabase } from "./support.ts";

let database: OpenedDatabase;
beforeAll(async () => {
  database = await openTestDatabase(4);
});
afterAll(() => database.drop());

/** Ends every connection of the pool under test, whatever it is doing. */
async function terminateAll(): Promise<void> {
  const killer = openTransaction(database.url);
  await killer.run(`select pg_terminate_backend(pid) from pg_stat_activity
    where datname = current_database() and application_name = 'store-test'`);
  await killer.commit();
}

test("a database without tables answers, and says what it lacks", async () => {
  const { url } = await createEmptyDatabase();
  const empty = await openDatabase({ url, poolSize: 1 });
  await expect(empty.tryWrite()).rejects.toThrow("it lacks the tables of Millrace");
  await empty.close();
});

test("a database that is read-only answers, and says that it takes no writes", async () => {
  const name = new URL(database.url).pathname.slice(1);
  const admin = openTransaction(database.url);
  await admin.run(`alter database "${name}" set default_transaction_read_only = on`);
  await admin.commit();
  const readOnly = await openDatabase({ url: database.url, poolSize: 1 });
  try {
    await expect(readOnly.tryWrite()).rejects.toThrow("it takes no writes: it is read-only");
  } finally {
    await readOnly.close();
    const again = openTransaction(database.url);
    await again.run("set transaction read write");
    await again.run(`alter database "${name}" reset default_transaction_read_only`);
    await again.commit();
  }
});

test("a pool whose connections were terminated, idle or in use, has all its slots again", async () => {
  const { db } = database;
  for (let round = 0; round < 10; round++) {
    const busy = Array.from({ length: 6 }, () => sql`select pg_sleep(0.2)`.execute(db));
    const transaction = db.transaction().execute(async (trx) => {
      await sql`select 1`.execute(trx);
      await new Promise((resolve) => setTimeout(resolve, 60));
      await sql`select 1`.execute(trx);
    });
    const settling = Promise.allSettled([...busy, transaction]);
    await new Promise((resolve) => setTimeout(resolve, 30));
    await terminateAll();
    const reasons = (await settling).flatMap((each) =>
      each.status === "rejected" ? [each.reason] : [],
    );
    expect(reasons.filter((reason) => !(reason instanceof DatabaseUnavailableError))).toEqual([]);
    await Promise.all(Array.from({ length: 4 }, () => sql`select 1`.execute(db)));
  }

  expect(database.stats()).toMatchObject({ waiting: 0, size: 4 });
  expect(database.stats().open).toBeLessThanOrEqual(4);
  await Promise.all(Array.from({ length: 20 }, () => sql`select pg_sleep(0.01)`.execute(db)));
});

test("an aborted transaction is never handed to the next user", async () => {
  const quick = await openDatabase({
    url: database.url,
    poolSize: 2,
    statementTimeoutMs: 100,
  });
  const { db } = quick;
  for (let round = 0; round < 10; round++) {
    const failing = db.transaction().execute(async (trx) => {
      const wrong =
        round % 2 === 0 ? sql`select pg_sleep(1)` : sql`insert into settings values ('x', null)`;
      await wrong.execute(trx);
    });
    await expect(failing).rejects.toBeInstanceOf(
      round % 2 === 0 ? StatementTimeoutError : DataRefusedError,
    );
    await Promise.all(Array.from({ length: 4 }, () => sql`select 1`.execute(db)));
  }
  expect(quick.stats()).toMatchObject({ waiting: 0 });
  await quick.close();
});

test("a server that cannot be reached is told as such, and is transient", async () => {
  const nowhere = await openDatabase({
    url: "postgres://nobody@127.0.0.1:1/nothing",
    connectTimeoutMs: 500,
  });

  const failure = await loadInstance(nowhere.db, { tenantId, instanceId: workerId() }).catch(
    (error: unknown) => error,
  );

  expect(failure).toBeInstanceOf(DatabaseUnavailableError);
  expect(isTransient(failure)).toBe(true);
  await nowhere.close();
});

test("numbers that JavaScript cannot hold are refused rather than rounded", async () => {
  const { db } = database;
  const { rows } = await sql<{ n: number }>`select 9007199254740991::bigint as n`.execute(db);

  expect(rows).toEqual([{ n: 9007199254740991 }]);
  await expect(sql`select 9007199254740993::bigint as n`.execute(db)).rejects.toThrow(RangeError);
});

test("the database's clock is told as it is", async () => {
  const before = Date.now();
  const { now } = await database.now();

  // One machine, one clock.
  expect(Math.abs(now.getTime() - before)).toBeLessThan(1_000);
});

test("a commit whose answer was lost is known as written when it is handed in again", async () => {
  const relay = await openRelay(database.url);
  const cut = await openDatabase({ url: relay.url, poolSize: 2, connectTimeoutMs: 2_000 });
  const worker = workerId();
  await registerWorker(database.db, {
    id: worker,
    host: "test",
    pid: 1,
    tasks: [],
    queues: [],
  });
  const first = firstCommit();

  // The statement arrives and is committed; its answer does not come back.
  await sql`select 1`.execute(cut.db);
  relay.cutAnswers();
  const lost = await createBatch(cut.db, [first]).catch((error: unknown) => error);
  relay.mend();
  const created = await createBatch(cut.db, [first]);

  const snapshot = first.decision.snapshot;
  await claimSteps(cut.db, [claimRequest(snapshot, worker)]);
  const second = result(snapshot, { workerId: worker });
  relay.cutAnswers();
  const lostAgain = await commitBatch(cut.db, [second]).catch((error: unknown) => error);
  relay.mend();
  const committed = await commitBatch(cut.db, [second]);

  expect(lost).toBeInstanceOf(DatabaseUnavailableError);
  expect(created).toEqual([{ kind: "committed", version: 1 }]);
  expect(lostAgain).toBeInstanceOf(DatabaseUnavailableError);
  expect(committed).toEqual([{ kind: "committed", version: 2 }]);
  const history = await readHistory(database.db, { tenantId, instanceId: snapshot.id }, 0, 10);
  expect(history).toHaveLength(2);
  await cut.close();
  await relay.close();
});

test("while connections are killed, commits go on and each is written once", async () => {
  const { db } = database;
  const instances = await Promise.all(Array.from({ length: 20 }, () => create(db)));
  let done = false;
  const killing = (async () => {
    while (!done) {
      await terminateAll();
      await new Promise((resolve) => setTimeout(resolve, 40));
    }
  })();

  await Promise.all(
    instances.map(async ({ id }) => {
      for (let count = 0; count < 15;) {
        const snapshot = await persistently(() => loadInstance(db, { tenantId, instanceId: id }));
        if (snapshot === undefined) throw new Error("gone");
        const next = commit(snapshot, { priority: snapshot.priority + 1 });
        const [outcome] = await persistently(() => commitBatch(db, [next]));
        if (outcome instanceof Error) throw outcome;
        if (outcome?.kind === "committed") count += 1;
      }
    }),
  );
  done = true;
  await killing;

  for (const { id } of instances) {
    expect(await loadInstance(db, { tenantId, instanceId: id })).toMatchObject({
      priority: 15,
      version: 16,
    });
  }
});

test("those who wait for one instance's row leave the pool to others", async () => {
  const { db } = database;
  const { id } = await create(db);
  const other = openTransaction(database.url);
  await other.run(`select from workflow_instances where id = '${id}' for update`);
  const waiting = Array.from({ length: 12 }, () =>
    commitLocked(db, { tenantId, instanceId: id }, async ({ snapshot }) => commit(snapshot, {})),
  );

  await sql`select 1`.execute(db);
  expect(database.stats().waiting).toBe(0);
  await other.commit();

  const outcomes: readonly (CommitOutcome | undefined)[] = await Promise.all(waiting);
  expect(outcomes.every((outcome) => outcome?.kind === "committed")).toBe(true);
});

test("a process that stands still within a transaction loses it, and knows that it may try again", async () => {
  const { id } = await create(database.db);
  const standing = database.db.transaction().execute(async (trx) => {
    await sql`select from workflow_instances where id = ${id} for update`.execute(trx);
    // As a stopped process, or a task that keeps the event loop: the answer comes to the next statement.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 6_500);
    await sql`select 1`.execute(trx);
  });

  const error = await standing.catch((caught: unknown) => caught);

  expect(error).toBeInstanceOf(DatabaseUnavailableError);
  expect(isTransient(error)).toBe(true);
  const { rows } =
    await sql`select from workflow_instances where id = ${id} for update nowait`.execute(
      database.db,
    );
  expect(rows).toHaveLength(1);
});

test("processes that migrate at the same time do it once", async () => {
  const empty = await createEmptyDatabase();
  const pending = await pendingMigrations(empty.url);

  const applied = await Promise.all(Array.from({ length: 4 }, () => migrateToLatest(empty.url)));

  expect(pending.length).toBeGreaterThan(0);
  expect(applied.flat().toSorted()).toEqual(pending);
  expect(await pendingMigrations(empty.url)).toEqual([]);
  expect(await migrateToLatest(empty.url)).toEqual([]);
  await empty.drop();
});

test("a handle that is closed twice is closed once", async () => {
  const created = await createDatabase();
  const handle: DatabaseHandle = await openDatabase({ url: created.url });
  await sql`select 1`.execute(handle.db);

  await Promise.all([handle.close(), handle.close()]);
  await handle.close();

  expect(handle.stats().open).toBe(0);
  await created.drop();
});

async function persistently<T>(act: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await act();
    } catch (error) {
      if (!isTransient(error)) throw error;
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }
}

test("what was prepared before a migration is prepared anew", async () => {
  const other = await openTestDatabase(1);
  const { db } = other;
  const read = sql.raw("/*every_schedule*/select * from schedules");
  await read.execute(db);

  await sql`alter table schedules add column one integer`.execute(db);
  expect(await read.execute(db)).toMatchObject({ rows: [] });
  await read.execute(db);
  await sql`alter table schedules add column two integer`.execute(db);
  const inside = db.transaction().execute((trx) => read.execute(trx));

  await expect(inside).rejects.toSatisfy(isTransient);
  expect(await db.transaction().execute((trx) => read.execute(trx))).toMatchObject({ rows: [] });
  await other.drop();
});

test("what a prepared statement is given and answers is the same in its first run and in those after it", async () => {
  const other = await openTestDatabase(1);
  const { db } = other;
  const text = fc
    .string({ unit: "binary", maxLength: 400 })
    .filter((value) => !/[\0\p{Surrogate}]/u.test(value));
  const row = fc.record({
    text: fc.option(
      fc.oneof(text, fc.constantFrom("", "null", "{}", "ß", "\xff\xff", "€".repeat(70_000))),
    ),
    count: fc.option(fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 })),
    is: fc.option(fc.boolean()),
    at: fc.option(fc.date({ min: new Date(0), max: new Date("9999-12-31"), noInvalidDate: true })),
    list: fc.option(fc.array(text)),
  });
  const rows = fc.sample(row, { numRuns: 200, seed: 1 });
  const echo = async (given: (typeof rows)[number]) => {
    const { text: said, count, is, at, list } = given;
    const answer = await sql`/*echo*/ select ${said}::text as text, ${count}::integer as count,
      ${is}::boolean as is, ${at?.toISOString()}::timestamptz as at, ${list}::text[] as list`.execute(
      db,
    );
    return answer.rows;
  };

  for (const given of rows) expect(await echo(given)).toEqual([given]);

  const listless = rows.map((given) => ({ ...given, list: null }));
  for (const given of listless) expect(await echo(given)).toEqual([given]);
  await other.drop();
});

test("a prepared statement that fails in a later run leaves its connection as good as before", async () => {
  const other = await openTestDatabase(1);
  const { db } = other;
  const twice = async (count: string) =>
    (await sql<{ n: number }>`/*twice*/ select ${count}::bigint * 2 as n`.execute(db)).rows;
  await twice("1");

  await expect(twice("x")).rejects.toBeInstanceOf(DataRefusedError);
  await expect(twice("\0")).rejects.toBeInstanceOf(DataRefusedError);
  await expect(twice("4503599627370497")).rejects.toThrow(RangeError);

  expect(await twice("21")).toEqual([{ n: 42 }]);
  expect(other.stats()).toMatchObject({ open: 1, waiting: 0 });
  await other.drop();
});

test("an object has the order of its keys before it is stored as jsonb that it has after that", async () => {
  const { db } = database;
  const values = fc
    .sample(fc.jsonValue({ stringUnit: "binary" }), { numRuns: 300, seed: 1 })
    .filter((value) => !/\\u0000|\\ud[89a-f]/i.test(JSON.stringify(value)));

  const { rows } = await sql<{ value: unknown }>`
    select value from jsonb_array_elements(${JSON.stringify(values)}::jsonb) as value`.execute(db);

  const ordered = values.map((value) => JSON.stringify(inStoredOrder(value as Json)));
  expect(rows.map(({ value }) => JSON.stringify(value))).toEqual(ordered);
});
