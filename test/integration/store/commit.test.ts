import { randomBytes } from "node:crypto";
import { applyChanges, blankSnapshot } from "@millrace/engine";
import type { Command, Snapshot } from "@millrace/engine";
import {
  claimSteps,
  commitBatch,
  commitLocked,
  createBatch,
  DataRefusedError,
  insertEvents,
  loadInbox,
  loadInstance,
  loadInstances,
  markMatched,
  readHistory,
  registerWorker,
  takeLapsedSteps,
} from "@millrace/store";
import type { Commit } from "@millrace/store";
import { eventually } from "@millrace/testkit";
import { align } from "../../support/aligned.ts";
import { sql } from "kysely";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  blank,
  claimRequest,
  commit,
  commitOne,
  create,
  execution,
  firstCommit,
  isWaiting,
  live,
  newEvent,
  openTestDatabase,
  openTransaction,
  openWait,
  result,
  statementsOf,
  stepUpdate,
  tenantId,
  waitsOf,
  workerId,
} from "./support.ts";
import type { OpenedDatabase } from "./support.ts";

let database: OpenedDatabase;
beforeAll(async () => {
  database = await openTestDatabase();
});
afterAll(() => database.drop());

test("a commit stores what the decision says, and it comes back the same", async () => {
  const { db } = database;
  const previous = blank({ variables: { a: null, b: { c: [1, "2"] } } });
  const first = firstCommit(previous);
  await create(db, first);

  const stored = await loadInstance(db, { tenantId, instanceId: previous.id });

  expect(stored).toEqual(first.decision.snapshot);
  expect(await readHistory(db, { tenantId, instanceId: previous.id }, 0, 10)).toMatchObject([
    { version: 1, actor: "test", signals: [{ kind: "started" }] },
  ]);
});

test("of two racing commits one wins and the other writes nothing", async () => {
  const { db } = database;
  const snapshot = await create(db);
  const racing = ["x", "y"].map((path) =>
    commit(
      snapshot,
      { live: { ...snapshot.live, [`${path}#1`]: live(path) } },
      { inserts: [execution(path)] },
    ),
  );

  const outcomes = await Promise.all(racing.map((each) => commitOne(db, each)));

  expect(outcomes.map(({ kind }) => kind).toSorted()).toEqual(["committed", "conflict"]);
  expect(await stepsOf(snapshot)).toHaveLength(2);
  expect(await historyOf(snapshot)).toHaveLength(2);
});

test("of two commits on one instance in one batch the first is written", async () => {
  const { db } = database;
  const snapshot = await create(db);
  const both = ["x", "y"].map((path) => commit(snapshot, {}, { inserts: [execution(path)] }));

  const outcomes = await commitBatch(db, both);

  expect(outcomes).toEqual([{ kind: "committed", version: 2 }, { kind: "conflict" }]);
  expect((await stepsOf(snapshot)).map(({ path }) => path)).toEqual(["a", "x"]);
});

test("a commit handed in again is written once and answered the same", async () => {
  const { db } = database;
  const first = firstCommit();
  const worker = await startWorker();
  const created = await createBatch(db, [first]);
  const snapshot = first.decision.snapshot;
  await claimSteps(db, [claimRequest(snapshot, worker)]);
  const second = result(snapshot, { workerId: worker }, "b", { carry: [carry("b", worker)] });

  const once = await commitOne(db, second);
  const again = await commitOne(db, second);

  expect(created).toEqual([{ kind: "committed", version: 1 }]);
  expect(await createBatch(db, [first])).toEqual(created);
  expect(once).toEqual({ kind: "committed", version: 2 });
  expect(again).toEqual(once);
  expect(await historyOf(snapshot)).toHaveLength(2);
});

test("a carried step is inserted held, with the clock of its task", async () => {
  const { db } = database;
  const worker = await startWorker();
  const snapshot = await create(db);
  await claimSteps(db, [claimRequest(snapshot, worker)]);

  await commitOne(
    db,
    result(snapshot, { workerId: worker }, "b", {
      carry: [{ ...carry("b", worker), timeoutMs: 60_000, heartbeatTimeoutMs: 1_000 }],
    }),
  );

  const [a, b] = await stepsOf(snapshot);
  expect(a).toMatchObject({
    status: "COMPLETED",
    worker_id: worker,
    carrier: null,
    due_at: null,
    output: '{"ok":true}',
  });
  expect(b).toMatchObject({ status: "RUNNING", worker_id: worker, fence: 1, deliveries: 1 });
  expect(b).toMatchObject({ carrier: "job-1", due_clock: "heartbeat", look_at: null });
  const started = b?.started_at?.getTime() ?? 0;
  expect((b?.due_at?.getTime() ?? 0) - started).toBe(1_000);
  expect((b?.timeout_at?.getTime() ?? 0) - started).toBe(60_000);
});

test("a result is void once its step was taken over, and writes nothing", async () => {
  const { db } = database;
  const [dead, alive] = [await startWorker(), await startWorker()];
  const snapshot = await create(db);
  await claimSteps(db, [claimRequest(snapshot, dead)]);
  await silence(dead);
  await takeLapsedSteps(db, { lapseMs: 4_000, mostDeliveries: 5, limit: 100 });
  await claimSteps(db, [claimRequest(snapshot, alive, { fence: 2 })]);

  const late = await commitOne(db, result(snapshot, { workerId: dead }));
  const counted = await commitOne(db, result(snapshot, { workerId: alive, fence: 3 }));

  expect(late).toEqual({ kind: "void" });
  expect(counted).toEqual({ kind: "committed", version: 2 });
  expect(await historyOf(snapshot)).toHaveLength(2);
});

test("a take-over that commits between the read and the lock is seen", async () => {
  const { db } = database;
  const worker = await startWorker();
  const snapshot = await create(db);
  await claimSteps(db, [claimRequest(snapshot, worker)]);
  const key = { tenantId, instanceId: snapshot.id };

  // The statement of `commitLocked` waits for the step row, which it has read before: what it gets
  // is the row as the other transaction leaves it.
  const takeOver = openTransaction(database.url);
  await takeOver.run(
    `update step_executions set status = 'PENDING', fence = fence + 1, worker_id = null
    where instance_id = '${snapshot.id}'`,
  );
  const committing = commitLocked(db, key, async ({ snapshot: locked }) =>
    result(locked, { workerId: worker }),
  );
  await eventually("the commit to wait", () => isWaiting(database.db));
  await takeOver.commit();

  expect(await committing).toEqual({ kind: "void" });
  expect(await historyOf(snapshot)).toHaveLength(1);
});

test("rows that somebody else has locked are a conflict of their commit alone", async () => {
  const { db } = database;
  const [locked, free] = [await create(db), await create(db)];
  const other = openTransaction(database.url);
  await other.run(`select from workflow_instances where id = '${locked.id}' for update`);

  const outcomes = await commitBatch(db, [
    commit(locked, { priority: 1 }),
    commit(free, { priority: 1 }),
  ]);
  await other.commit();

  expect(outcomes).toEqual([{ kind: "conflict" }, { kind: "committed", version: 2 }]);
});

test("a commit whose guard does not hold is a conflict and writes nothing", async () => {
  const { db } = database;
  const worker = await startWorker();
  const snapshot = await create(db);
  await claimSteps(db, [claimRequest(snapshot, worker)]);
  const guarded = (status: "PENDING" | "RUNNING", fence: number) =>
    commit(
      snapshot,
      { priority: 7 },
      { guards: [{ kind: "execution", path: "a", iteration: 1, status, fence }] },
    );

  expect(await commitOne(db, guarded("PENDING", 0))).toEqual({ kind: "conflict" });
  expect(await commitOne(db, guarded("RUNNING", 1))).toEqual({ kind: "committed", version: 2 });
});

test("a cancel and a claim meet on the step row: one of them loses", async () => {
  const { db } = database;
  const seen = new Set<string>();
  for (let round = 0; round < 40; round++) {
    const worker = workerId();
    const snapshot = await create(db);
    const cancel = commit(
      snapshot,
      { status: "CANCELLED", live: {} },
      {
        updates: [stepUpdate("a", { status: "CANCELLED" })],
        guards: [{ kind: "execution", path: "a", iteration: 1, status: "PENDING", fence: 0 }],
        commands: [{ kind: "settle" }],
      },
    );

    const [outcome, [claimed]] = await Promise.all([
      commitOne(db, cancel),
      claimSteps(db, [claimRequest(snapshot, worker)]),
    ]);

    const [row] = await stepsOf(snapshot);
    const won = [outcome.kind === "committed" && "cancel", claimed && "claim"].filter(Boolean);
    seen.add(`${won.join()}: ${row?.status} at fence ${row?.fence}`);
  }

  // Where each met the other's lock, neither has won, and both try again.
  const allowed = [
    "cancel: CANCELLED at fence 0",
    "claim: RUNNING at fence 1",
    ": PENDING at fence 0",
  ];
  expect([...seen].filter((ending) => !allowed.includes(ending))).toEqual([]);
  expect(seen).toContain(allowed[0]);
});

test("a pause and a claim meet on the step row: what was not taken before is not taken after", async () => {
  const { db } = database;
  const snapshots = await Promise.all(Array.from({ length: 60 }, () => create(db)));
  const pause = { by: "ada", at: "", reason: null, until: null, from: "RUNNING" } as const;
  const hold = {
    kind: "hold",
    executions: [{ path: "a", iteration: 1 }],
    timers: [],
    waits: [],
  } as const;
  const endings: string[] = [];
  await align(
    snapshots.map((snapshot) => ({
      open: () => claimSteps(db, [claimRequest(snapshot, workerId())]),
      publish: async () => {
        const paused = { status: "PAUSED", pause: { ...pause, cause: "REQUEST" } } as const;
        const { kind } = await commitOne(db, commit(snapshot, paused, { commands: [hold] }));
        const [row] = await stepsOf(snapshot);
        endings.push(`${kind}, ${row?.status}`);
      },
    })),
    { lanes: 4, staggerMs: [-1, 0, 0, 1] },
  );
  const late = await claimSteps(
    db,
    snapshots.map((snapshot) => claimRequest(snapshot, workerId())),
  );
  const rows = (await Promise.all(snapshots.map(stepsOf))).flat();

  expect(new Set(endings)).toEqual(new Set(["committed, RUNNING", "committed, PENDING"]));
  expect(late.filter(Boolean)).toEqual([]);
  expect(rows.every(({ held, look_at: lookAt }) => held && lookAt === null)).toBe(true);
  expect(rows.map(({ status }) => `committed, ${status}`).toSorted()).toEqual(endings.toSorted());
});

test("a wait that an event has taken is not closed by a commit that needs it free", async () => {
  const { db } = database;
  const snapshot = await createWaiting();
  const [event] = await insertEvents(db, [newEvent()]);
  if (event === undefined || event === "duplicate") throw new Error("not stored");
  const [wait] = await waitsOf(db, event);
  if (wait === undefined) throw new Error("no wait");
  await markMatched(db, event, [wait]);

  const timeout = commit(
    snapshot,
    { live: {} },
    {
      guards: [{ kind: "waitUnmatched", path: "w", iteration: 1 }],
      commands: [{ kind: "closeWait", path: "w", iteration: 1 }],
    },
  );

  expect(await commitOne(db, timeout)).toEqual({ kind: "conflict" });
  expect(await loadInbox(db, { tenantId, instanceId: snapshot.id })).toMatchObject([
    { path: "w", event: { id: event.id } },
  ]);
});

test("the end of an instance takes its waits, timers and deliveries with it", async () => {
  const { db } = database;
  const snapshot = await createWaiting([
    { kind: "setTimer", timer: "wait", path: "w", iteration: 1, attempt: 1, dueAt: new Date() },
  ]);
  const [event] = await insertEvents(db, [newEvent()]);
  if (event === undefined || event === "duplicate") throw new Error("not stored");
  await markMatched(db, event, await waitsOf(db, event));

  await commitOne(
    db,
    commit(snapshot, { status: "CANCELLED", live: {} }, { commands: [{ kind: "settle" }] }),
  );

  for (const table of ["waits", "timers", "event_deliveries"] as const) {
    const rows = await db
      .selectFrom(table)
      .select("tenant_id")
      .where("instance_id", "=", snapshot.id)
      .execute();
    expect(rows).toEqual([]);
  }
});

test("timers are set, set anew and cleared", async () => {
  const { db } = database;
  const at = (ms: number) => new Date(Date.now() + ms);
  const timer = (kind: "delay" | "total", dueAt: Date, attempt = 1) =>
    ({ kind: "setTimer", timer: kind, path: "a", iteration: 1, attempt, dueAt }) as const;
  const later = at(120_000);
  let snapshot = await create(
    db,
    firstCommit(blank(), { commands: [timer("delay", at(60_000)), timer("total", at(60_000))] }),
  );

  const second = commit(
    snapshot,
    {},
    {
      commands: [
        timer("delay", later, 2),
        { kind: "clearTimer", timer: "total", path: "a", iteration: 1 },
      ],
    },
  );
  await commitOne(db, second);
  snapshot = second.decision.snapshot;

  const rows = await db
    .selectFrom("timers")
    .select(["kind", "attempt", "due_at", "look_at"])
    .where("instance_id", "=", snapshot.id)
    .execute();
  expect(rows).toEqual([{ kind: "delay", attempt: 2, due_at: later, look_at: later }]);
});

test("two streams of batches over the same instances do not deadlock, and all get through", async () => {
  const { db } = database;
  const workers = await startWorker();
  const instances = await Promise.all(Array.from({ length: 30 }, () => create(db)));
  await claimSteps(
    db,
    instances.map((snapshot) => claimRequest(snapshot, workers)),
  );
  const before = await deadlocks();
  let conflicts = 0;

  /** Each bumps every instance ten times, in an order of its own, with rows and waits of its own. */
  async function stream(name: string, order: readonly string[]): Promise<void> {
    const left = new Map(order.map((id) => [id, 10]));
    while (left.size > 0) {
      const loaded = await loadInstances(
        db,
        [...left.keys()].map((id) => ({ tenantId, instanceId: id })),
      );
      const commits = [...loaded.values()].map((snapshot) => bump(name, snapshot));
      const outcomes = await commitBatch(db, commits);
      for (const [index, outcome] of outcomes.entries()) {
        if (outcome instanceof Error) throw outcome;
        const id = commits[index]?.previous.id ?? "";
        if (outcome.kind === "conflict") conflicts += 1;
        const count = (left.get(id) ?? 0) - (outcome.kind === "committed" ? 1 : 0);
        if (count === 0) left.delete(id);
        else left.set(id, count);
      }
    }
  }
  function bump(name: string, snapshot: Snapshot): Commit {
    const path = `${name}${snapshot.version}`;
    return commit(
      snapshot,
      { priority: snapshot.priority + 1 },
      {
        inserts: [execution(path)],
        guards: [{ kind: "execution", path: "a", iteration: 1, status: "RUNNING", fence: 1 }],
        commands: [openWait(path, `${path}.happened`)],
      },
    );
  }
  async function locked(id: string): Promise<void> {
    for (let count = 0; count < 10; count++) {
      const outcome = await commitLocked(db, { tenantId, instanceId: id }, async ({ snapshot }) =>
        bump("l", snapshot),
      );
      expect(outcome?.kind).toBe("committed");
    }
  }
  const ids = instances.map(({ id }) => id);
  await Promise.all([
    stream("x", ids),
    stream("y", ids.toReversed()),
    ...ids.slice(0, 3).map(locked),
  ]);

  const priorities = await db
    .selectFrom("workflow_instances")
    .select(["id", "priority"])
    .where("id", "in", ids)
    .execute();
  const expected = new Map(ids.map((id, index) => [id, index < 3 ? 30 : 20]));
  for (const { id, priority } of priorities) expect(priority).toBe(expected.get(id));
  expect(conflicts).toBeGreaterThan(0);
  expect(await deadlocks()).toBe(before);
});

test("of a batch with one value that cannot be stored, the others are committed", async () => {
  const { db } = database;
  const worker = await startWorker();
  const instances = await Promise.all(Array.from({ length: 9 }, () => create(db)));
  await claimSteps(
    db,
    instances.map((snapshot) => claimRequest(snapshot, worker)),
  );
  const bad = ["a\u0000b", "half \ud800", "ok"];
  const commits = instances.map((snapshot, index) =>
    result(snapshot, { workerId: worker, output: (bad[index] ?? "ok") as never }),
  );

  const outcomes = await commitBatch(db, commits);

  expect(outcomes.slice(0, 2)).toEqual([
    expect.any(DataRefusedError),
    expect.any(DataRefusedError),
  ]);
  expect(
    outcomes.slice(2).every((outcome) => "kind" in outcome && outcome.kind === "committed"),
  ).toBe(true);
  const [row] = await stepsOf(instances[0] as Snapshot);
  expect(row).toMatchObject({ status: "RUNNING", worker_id: worker });
});

test("what only Postgres refuses stands alone after the batch was halved", async () => {
  const { db } = database;
  const instances = await Promise.all(Array.from({ length: 8 }, () => create(db)));
  // Longer than an index row may be.
  const tooLong = randomBytes(6_000).toString("base64");
  const commits = instances.map((snapshot, index) =>
    commit(snapshot, {}, { inserts: [execution(index === 5 ? tooLong : "b")] }),
  );

  const outcomes = await commitBatch(db, commits);

  expect(outcomes.map((outcome) => (outcome instanceof Error ? "refused" : outcome.kind))).toEqual(
    instances.map((_each, index) => (index === 5 ? "refused" : "committed")),
  );
});

test("a batch is one statement, whatever is in it", async () => {
  const { db } = database;
  const worker = await startWorker();
  const instances = await Promise.all(Array.from({ length: 20 }, () => create(db)));
  await claimSteps(
    db,
    instances.map((snapshot) => claimRequest(snapshot, worker)),
  );
  const commits = instances.map((snapshot, index) =>
    result(snapshot, { workerId: worker }, index % 2 === 0 ? "b" : undefined),
  );

  const statements = await statementsOf(() => commitBatch(db, commits));

  expect(statements).toBe(1);
  for (const snapshot of instances) expect(await historyOf(snapshot)).toHaveLength(2);
});

test("a start with a key that was used answers the instance of the first", async () => {
  const { db } = database;
  const start = (bodyHash: string, key = "k-1") =>
    firstCommit(
      blank(),
      {},
      { create: { metadata: { a: 1 }, deadline: null, idempotency: { key, bodyHash } } },
    );
  const starts = Array.from({ length: 20 }, (_each, index) => start(index < 10 ? "same" : "other"));

  const outcomes = (await Promise.all(starts.map((each) => createBatch(db, [each])))).flat();

  const kinds = outcomes.map((outcome) => (outcome instanceof Error ? outcome : outcome.kind));
  expect(kinds.filter((kind) => kind === "committed")).toHaveLength(1);
  const winner = starts[kinds.indexOf("committed")];
  expect(kinds.filter((kind) => kind === "idempotent")).toHaveLength(19);
  for (const outcome of outcomes) {
    if (outcome instanceof Error || outcome.kind !== "idempotent") continue;
    expect(outcome.instanceId).toBe(winner?.previous.id);
    expect(outcome.bodyHash).toBe(winner?.create?.idempotency?.bodyHash);
  }
  const inOneBatch = await createBatch(db, [
    start("x", "k-2"),
    start("y", "k-2"),
    start("z", "k-3"),
  ]);
  expect(inOneBatch.map((outcome) => ("kind" in outcome ? outcome.kind : outcome))).toEqual([
    "committed",
    "idempotent",
    "committed",
  ]);
});

test("under the row lock commits go through one after the other", async () => {
  const { db } = database;
  const { id } = await create(db);
  const key = { tenantId, instanceId: id };

  const outcomes = await Promise.all(
    Array.from({ length: 20 }, () =>
      commitLocked(db, key, async ({ snapshot }) =>
        commit(snapshot, { priority: snapshot.priority + 1 }),
      ),
    ),
  );

  expect(outcomes.every((outcome) => outcome?.kind === "committed")).toBe(true);
  expect(await loadInstance(db, key)).toMatchObject({ priority: 20, version: 21 });
});

test("the history builds every version of the snapshot again", async () => {
  const { db } = database;
  const worker = await startWorker();
  const first = firstCommit(blank({ variables: { a: 1, gone: null } }));
  const snapshots = [await create(db, first)];
  await claimSteps(db, [claimRequest(snapshots[0] as Snapshot, worker)]);
  const second = result(snapshots[0] as Snapshot, { workerId: worker }, "b", {
    carry: [carry("b", worker)],
  });
  await commitOne(db, second);
  snapshots.push(second.decision.snapshot);
  const third = commit(second.decision.snapshot, { variables: { a: null, n: { x: [] } } });
  await commitOne(db, third);
  snapshots.push(third.decision.snapshot);

  const rows = await historyOf(first.previous);
  let built = blankSnapshot(first.previous);
  const states = rows.map(({ changes }) => (built = applyChanges(built, changes)));

  expect(states).toEqual(snapshots);
  expect(rows[1]?.signals).toEqual([
    { kind: "stepSucceeded", path: "a", iteration: 1, attempt: 1 },
  ]);
});

// Helpers

async function stepsOf(snapshot: Snapshot) {
  return database.db
    .selectFrom("step_executions")
    .selectAll()
    .where("instance_id", "=", snapshot.id)
    .orderBy("path")
    .execute();
}

async function historyOf(snapshot: Snapshot) {
  return readHistory(database.db, { tenantId, instanceId: snapshot.id }, 0, 100);
}

async function startWorker(): Promise<string> {
  const id = workerId();
  await registerWorker(database.db, {
    id,
    host: "test",
    pid: 1,
    tasks: ["noop"],
    queues: ["default"],
  });
  return id;
}

async function silence(id: string): Promise<void> {
  await sql`update workers set beat_at = now() - interval '1 minute' where id = ${id}`.execute(
    database.db,
  );
}

function carry(path: string, worker: string): Commit["carry"][number] {
  return {
    path,
    iteration: 1,
    workerId: worker,
    carrier: "job-1",
    timeoutMs: null,
    heartbeatTimeoutMs: null,
    retry: null,
  };
}

async function createWaiting(commands: readonly Command[] = []): Promise<Snapshot> {
  return create(
    database.db,
    firstCommit(blank(), {
      inserts: [
        execution("w", { type: "EVENT_WAIT", status: "WAITING", taskId: null, queue: null }),
      ],
      commands: [openWait("w", "thing.happened"), ...commands],
    }),
  );
}

async function deadlocks(): Promise<number> {
  const { rows } = await sql<{ deadlocks: number }>`
    select deadlocks from pg_stat_database where datname = current_database()`.execute(database.db);
  return rows[0]?.deadlocks ?? 0;
}
