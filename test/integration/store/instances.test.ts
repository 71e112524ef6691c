import type { Snapshot } from "@millrace/engine";
import {
  BadCursorError,
  countByStatus,
  definitionVersions,
  getDefinition,
  instanceReadOf,
  latestVersion,
  listDefinitions,
  listInstances,
  listSteps,
  readInstance,
  readSetting,
  registerDefinition,
  takeDueTimers,
  deleteTimer,
  nextTimerDue,
  writeSetting,
} from "@millrace/store";
import type { Db, DefinitionDocument, InstanceFilter, InstanceOrder } from "@millrace/store";
import { sql } from "kysely";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import {
  blank,
  commit,
  commitOne,
  create,
  execution,
  firstCommit,
  instanceId,
  live,
  openTestDatabase,
  openWait,
  stepUpdate,
  tenantId,
} from "./support.ts";
import type { OpenedDatabase } from "./support.ts";

let database: OpenedDatabase;
beforeAll(async () => {
  database = await openTestDatabase();
});
afterAll(() => database.drop());
beforeEach(async () => {
  await sql`truncate workflow_instances, step_executions, waits, timers, history`.execute(
    database.db,
  );
});

test("pages hold each instance once, though all began in one millisecond and new ones come", async () => {
  const { db } = database;
  const now = Date.now();
  const ids = Array.from({ length: 500 }, () => instanceId(now));
  await insert(ids, now);

  for (const order of ["createdAt", "-createdAt", "updatedAt", "-updatedAt"] as const) {
    let arrivals = 0;
    const seen = await pagesOf({}, order, 7, async () => {
      arrivals += 1;
      const at = now + (arrivals % 3) * 1_000;
      await insert([instanceId(at)], at);
    });

    const counts = new Map<string, number>();
    for (const id of seen) counts.set(id, (counts.get(id) ?? 0) + 1);
    expect(ids.map((id) => counts.get(id))).toEqual(ids.map(() => 1));
    await sql`delete from workflow_instances where not id = any (${ids}::uuid[])`.execute(db);
  }
});

test("an order is kept over pages", async () => {
  const base = Date.parse("2026-01-01T00:00:00Z");
  for (let n = 0; n < 20; n++) await insert([instanceId(base + n * 1_000)], base + n * 1_000);

  const ascending = await pagesOf({}, "createdAt", 6);
  const descending = await pagesOf({}, "-createdAt", 6);

  expect(ascending).toEqual(ascending.toSorted());
  expect(descending).toEqual(ascending.toReversed());
  expect(await pagesOf({}, "updatedAt", 6)).toEqual(ascending);
});

test("a page of large instances ends early, and the list goes on behind it", async () => {
  const { db } = database;
  const ids = Array.from({ length: 60 }, () => instanceId()).toSorted();
  await insert(ids, Date.now());
  await sql`update workflow_instances set variables = json_build_object('large', repeat('x', 1000000))
    where id = ${ids[0]}::uuid`.execute(db);
  await sql`update workflow_instances set variables = (select variables from workflow_instances
    where id = ${ids[0]}::uuid) where id = any (${ids.slice(0, 10)}::uuid[])`.execute(db);

  const first = await listInstances(db, { tenantId, filter: {}, order: "createdAt", limit: 60 });

  expect(first.items.length).toBeLessThan(60);
  expect(first.nextCursor).not.toBeNull();
  expect(await pagesOf({}, "createdAt", 60)).toEqual(ids);
});

test("a cursor of another list, or none at all, is refused", async () => {
  const { db } = database;
  await insert([instanceId(), instanceId()], Date.now());
  const { nextCursor } = await listInstances(db, { tenantId, filter: {}, limit: 1 });
  const list = (cursor: string, order?: InstanceOrder) =>
    listInstances(db, { tenantId, filter: {}, limit: 1, cursor, order });

  await expect(list(nextCursor ?? "", "createdAt")).rejects.toThrow(BadCursorError);
  await expect(list("bm90IGpzb24")).rejects.toThrow(BadCursorError);
  await expect(list(Buffer.from('["-createdAt","x"]').toString("base64url"))).rejects.toThrow(
    BadCursorError,
  );
});

test("each filter leaves what it says", async () => {
  const { db } = database;
  const old = blank({ createdAt: new Date("2026-01-01T00:00:00.500Z"), workflowId: "other" });
  await create(db, firstCommit(old));
  const waiting = await create(
    db,
    firstCommit(
      blank({ correlationId: "c-1", variables: { order: { id: 7, tags: ["a"] }, none: null } }),
      {
        inserts: [execution("w", { type: "EVENT_WAIT", status: "WAITING", taskId: null })],
        commands: [openWait("w", "thing.happened")],
      },
    ),
  );
  const failed = await create(db, firstCommit(blank({ workflowVersion: 2 })));
  await commitOne(
    db,
    commit(
      failed,
      { status: "FAILED", live: {} },
      {
        updates: [stepUpdate("a", { status: "FAILED" })],
        commands: [{ kind: "settle" }],
      },
    ),
  );
  const found = async (filter: InstanceFilter) =>
    (await pagesOf(filter, "createdAt", 10)).map((id) =>
      id === old.id ? "old" : id === waiting.id ? "waiting" : "failed",
    );

  expect(await found({})).toEqual(["old", "waiting", "failed"]);
  expect(await found({ status: ["FAILED", "CANCELLED"] })).toEqual(["failed"]);
  expect(await found({ workflowId: "other" })).toEqual(["old"]);
  expect(await found({ workflowVersion: 2 })).toEqual(["failed"]);
  expect(await found({ correlationId: "c-1" })).toEqual(["waiting"]);
  expect(await found({ ids: [old.id, instanceId(), "no uuid"] })).toEqual(["old"]);
  expect(await found({ currentStep: "a" })).toEqual(["old"]);
  expect(await found({ waitingFor: "thing.happened" })).toEqual(["waiting"]);
  expect(await found({ waitingFor: "w" })).toEqual(["waiting"]);
  expect(await found({ createdBefore: old.createdAt })).toEqual([]);
  expect(await found({ createdBefore: new Date(old.createdAt.getTime() + 1) })).toEqual(["old"]);
  expect(await found({ createdAfter: old.createdAt })).toEqual(["waiting", "failed"]);
  expect(await found({ createdAfter: new Date(old.createdAt.getTime() - 1) })).toHaveLength(3);
  expect(await found({ updatedAfter: new Date(Date.now() + 60_000) })).toEqual([]);
  const variable = (path: string[], json: string) => found({ variables: [{ path, json }] });
  expect(await variable(["order", "id"], "7")).toEqual(["waiting"]);
  expect(await variable(["order", "id"], '"7"')).toEqual([]);
  expect(await variable(["order", "tags", "0"], '"a"')).toEqual(["waiting"]);
  expect(await variable(["order"], '{"tags":["a"],"id":7.0}')).toEqual(["waiting"]);
  expect(await variable(["none"], "null")).toEqual(["waiting"]);
  expect(await variable(["missing"], "null")).toEqual([]);
  expect((await listInstances(db, { tenantId: "other", filter: {}, limit: 10 })).items).toEqual([]);
  expect(Object.fromEntries(await countByStatus(db, tenantId))).toEqual({ RUNNING: 2, FAILED: 1 });
});

describe("an instance with ten thousand items", () => {
  const live17 = { ...live("ship[17].label"), stepId: "label" };
  const label = (at: number) => `ship[${at}].label`;

  async function withItems(count: number): Promise<Snapshot> {
    const { db } = database;
    const first = firstCommit(blank(), {
      inserts: [execution("pay"), execution("ship", { type: "MAP" }), execution("zip")],
    });
    const { decision } = first;
    const frontier = { "ship#1": live("ship"), "ship[17].label#1": live17 };
    const snapshot = await create(db, {
      ...first,
      decision: { ...decision, snapshot: { ...decision.snapshot, live: frontier } },
    });
    await sql`
      insert into step_executions (tenant_id, instance_id, path, iteration, step_id, type, status,
        attempt, output, completion, entry, created_at)
      select ${tenantId}, ${snapshot.id}, 'ship[' || n || '].label', 1, 'label', 'TASK',
        case when n = 17 then 'RUNNING' when n % 4000 = 1 then 'FAILED' else 'COMPLETED' end, 1,
        to_json(n), n, (n + 8765) % 10000 + 1, now() from generate_series(0, ${count - 1}) n`.execute(
      db,
    );
    return snapshot;
  }

  test("shows those that are live or failed, and some of the others, reading no more than that", async () => {
    const { id } = await withItems(10_000);

    const { read, fetched } = await database.db.transaction().execute(async (trx) => ({
      read: await readInstance(trx, { tenantId, instanceId: id }),
      fetched: await rowsFetched(trx),
    }));

    const paths = read?.steps.map(({ path }) => path) ?? [];
    expect(paths).toEqual(expect.arrayContaining(["pay", "ship", "zip", label(17)]));
    expect(paths).toEqual(expect.arrayContaining([1, 4001, 8001].map(label)));
    expect(new Set(paths).size).toBe(paths.length);
    // The one that was entered last, too.
    expect(paths).toContain(label(1234));
    expect(paths).toHaveLength(3 + 1 + 3 + 100 + 1);
    expect(fetched).toBeLessThan(600);
  });

  test("shows all items where they are few", async () => {
    const { id } = await withItems(50);

    const read = await readInstance(database.db, { tenantId, instanceId: id });

    expect(read?.steps).toHaveLength(53);
  });

  test("lists every one of them, page by page, and those of one path", async () => {
    const { db } = database;
    const { id } = await withItems(2_000);
    const key = { tenantId, instanceId: id };
    const pathsOf = async (query: { readonly path?: string; readonly status?: string[] }) => {
      const paths: string[] = [];
      let cursor: string | undefined;
      do {
        const page = await listSteps(db, key, { status: [], ...query, limit: 300, cursor });
        paths.push(...page.items.map(({ path }) => path));
        cursor = page.nextCursor ?? undefined;
      } while (cursor !== undefined);
      return paths;
    };

    expect(await pathsOf({})).toHaveLength(2_003);
    const labels = Array.from({ length: 2_000 }, (_, at) => label(at));
    expect(await pathsOf({ path: "ship" })).toEqual(["ship", ...labels.toSorted()]);
    expect(await pathsOf({ path: "ship[17]" })).toEqual([label(17)]);
    expect(await pathsOf({ path: label(17) })).toEqual([label(17)]);
    expect(await pathsOf({ path: "sh" })).toEqual([]);
    expect(await pathsOf({ status: ["FAILED", "RUNNING"] })).toEqual([label(17), label(1)]);
    const elsewhere = { tenantId: "other", instanceId: id };
    expect((await listSteps(db, elsewhere, { status: [], limit: 1 })).items).toEqual([]);
    await expect(
      listSteps(db, key, { status: [], limit: 1, cursor: "nonsense" }),
    ).rejects.toBeInstanceOf(BadCursorError);
  });

  test("has pages of its steps that end early where they are large, and can be read without what they answered", async () => {
    const { db } = database;
    const { id } = await withItems(50);
    await sql`update step_executions set output = json_build_object('large', repeat('x', 400000))
      where instance_id = ${id} and (completion < 30 or step_id = 'pay')`.execute(db);
    const key = { tenantId, instanceId: id };

    const first = await listSteps(db, key, { status: [], limit: 500 });
    const cursor = first.nextCursor ?? undefined;
    const second = await listSteps(db, key, { status: [], limit: 500, cursor });
    const [bare, some] = [await readInstance(db, key, []), await readInstance(db, key, ["pay"])];

    expect(first.items.length).toBeLessThan(53);
    expect(first.items.length + second.items.length).toBe(53);
    expect(second.nextCursor).toBeNull();
    const told = [bare, some].map((read) =>
      read?.steps.flatMap(({ stepId, output }) => (output === undefined ? [] : stepId)),
    );
    expect(told).toEqual([[], ["pay"]]);
    expect(bare?.steps).toHaveLength(53);
  });

  test("is found by the path of an item that it is at", async () => {
    const { id } = await withItems(50);
    const at = async (currentStep: string) =>
      (await listInstances(database.db, { tenantId, filter: { currentStep }, limit: 5 })).items.map(
        ({ snapshot }) => snapshot.id,
      );

    expect(await at("label")).toEqual([id]);
    expect(await at(label(17))).toEqual([id]);
    expect(await at(label(18))).toEqual([]);
  });
});

/** Rows of steps that this transaction has fetched so far. */
async function rowsFetched(db: Db): Promise<number> {
  const { rows } = await sql<{ n: number }>`
    select (seq_tup_read + idx_tup_fetch)::integer as n from pg_stat_xact_user_tables
    where relname = 'step_executions'`.execute(db);
  return rows[0]?.n ?? 0;
}

test("an instance is read with the latest execution of each step, however often it loops", async () => {
  const { db } = database;
  const dueAt = new Date(Date.now() + 60_000);
  const first = firstCommit(
    blank(),
    {
      inserts: [execution("a"), execution("a.b/c"), execution("z")],
      commands: [
        openWait("w", "thing.happened"),
        { kind: "setTimer", timer: "wait", path: "w", iteration: 1, attempt: 1, dueAt },
      ],
    },
    { create: { metadata: { k: "v" }, deadline: dueAt } },
  );
  const snapshot = await create(db, first);
  await sql`
    insert into step_executions (tenant_id, instance_id, path, iteration, step_id, type, status,
      attempt, output, created_at)
    select ${tenantId}, ${snapshot.id}, 'loop', n, 'loop', 'TASK', 'COMPLETED', 1,
      to_json(n), now() + interval '1 s' from generate_series(1, 2000) n`.execute(db);

  const read = await readInstance(db, { tenantId, instanceId: snapshot.id });

  expect(read).toMatchObject({ snapshot, metadata: { k: "v" }, deadline: dueAt });
  expect(read?.steps.map(({ path, iteration }) => `${path}#${iteration}`)).toEqual([
    "a#1",
    "a.b/c#1",
    "z#1",
    "loop#2000",
  ]);
  expect(read?.steps.at(-1)).toMatchObject({ output: 2000 });
  expect(read?.waits).toMatchObject([
    { path: "w", pattern: "thing.happened", matchedEventId: null },
  ]);
  expect(read?.timers).toEqual([{ path: "w", iteration: 1, kind: "wait", dueAt }]);
  expect(await readInstance(db, { tenantId: "other", instanceId: snapshot.id })).toBeUndefined();
  const { updatedAt: _read, ...made } = instanceReadOf(first);
  expect(made).toMatchObject({ snapshot, metadata: { k: "v" }, timers: read?.timers });
});

test("a definition gets its next version unless the latest has the same content", async () => {
  const { db } = database;
  const document = { id: "flow", steps: [] } as unknown as DefinitionDocument;
  const register = (contentHash: string, tenant = tenantId) =>
    registerDefinition(db, { tenantId: tenant, id: "flow", document, contentHash, actor: "me" });

  const racing = await Promise.all(Array.from({ length: 10 }, () => register("one")));
  const second = await register("two");
  const back = await register("one");

  expect(racing.filter(({ created }) => created)).toHaveLength(1);
  expect(racing.every(({ version }) => version === 1)).toBe(true);
  expect([second, back]).toMatchObject([
    { version: 2, created: true },
    { version: 3, created: true },
  ]);
  expect(await register("one")).toMatchObject({ version: 3, created: false });
  expect(await register("one", "other")).toMatchObject({ version: 1, created: true });
  expect(await latestVersion(db, tenantId, "flow")).toBe(3);
  expect(await getDefinition(db, tenantId, "flow")).toMatchObject({ version: 3, document });
  expect(await getDefinition(db, tenantId, "flow", 2)).toMatchObject({ contentHash: "two" });
  expect(await getDefinition(db, tenantId, "none")).toBeUndefined();
  expect((await definitionVersions(db, tenantId, "flow")).map(({ version }) => version)).toEqual([
    3, 2, 1,
  ]);
  await registerDefinition(db, {
    tenantId,
    id: "another",
    document,
    contentHash: "x",
    actor: "me",
  });
  const page = await listDefinitions(db, tenantId, { limit: 1 });
  const rest = await listDefinitions(db, tenantId, { limit: 9, cursor: page.nextCursor ?? "" });
  expect([...page.items, ...rest.items].map(({ id, version }) => [id, version])).toEqual([
    ["another", 1],
    ["flow", 3],
  ]);
  expect(rest.nextCursor).toBeNull();
});

test("timers come when they are due by the database's clock, to one taker at a time", async () => {
  const { db } = database;
  const soon = new Date(Date.now() + 250);
  const timer = (path: string, dueAt: Date) =>
    ({ kind: "setTimer", timer: "delay", path, iteration: 1, attempt: 1, dueAt }) as const;
  const first = firstCommit(blank(), {
    commands: [timer("a", soon), timer("b", new Date(Date.now() + 60_000))],
  });
  await create(db, first);

  expect(await takeDueTimers(db, 10, 5_000)).toEqual([]);
  expect(await nextTimerDue(db)).toEqual(soon);
  await new Promise((resolve) => setTimeout(resolve, soon.getTime() - Date.now() + 10));
  const taken = (await Promise.all([1, 2, 3].map(() => takeDueTimers(db, 10, 5_000)))).flat();

  expect(taken).toMatchObject([{ path: "a", kind: "delay", dueAt: soon }]);
  const [due] = taken;
  if (due === undefined) return;
  await deleteTimer(db, { ...due, attempt: 2 });
  await sql`update timers set look_at = due_at`.execute(db);
  expect(await takeDueTimers(db, 10, 5_000)).toHaveLength(1);
  await deleteTimer(db, due);
  await sql`update timers set look_at = due_at`.execute(db);
  expect(await takeDueTimers(db, 10, 5_000)).toEqual([]);
});

test("settings are written over", async () => {
  const { db } = database;
  expect(await readSetting(db, "epoch")).toBeUndefined();
  await writeSetting(db, "epoch", "one");
  await writeSetting(db, "epoch", "two");
  expect(await readSetting(db, "epoch")).toBe("two");
});

async function insert(ids: readonly string[], at: number): Promise<void> {
  await sql`
    insert into workflow_instances (tenant_id, id, workflow_id, workflow_version, version, status,
      status_at, priority, variables, snapshot, created_at, updated_at)
    select ${tenantId}, id, 'wf', 1, 1, 'RUNNING', now(), 0, '{}', '{"format":1}',
      ${new Date(at)}, ${new Date(at)} from unnest(${ids}::uuid[]) id`.execute(database.db);
}

/** The ids of every page, one after the other. */
async function pagesOf(
  filter: InstanceFilter,
  order: InstanceOrder,
  limit: number,
  between: () => Promise<void> = async () => {},
): Promise<readonly Snapshot["id"][]> {
  const ids: string[] = [];
  let cursor: string | undefined;
  do {
    const page = await listInstances(database.db, { tenantId, filter, order, limit, cursor });
    ids.push(...page.items.map(({ snapshot }) => snapshot.id));
    cursor = page.nextCursor ?? undefined;
    await between();
  } while (cursor !== undefined);
  return ids;
}
