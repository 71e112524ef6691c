import type { Snapshot } from "@millrace/engine";
import {
  beat,
  blockStep,
  claimSteps,
  forgetWorker,
  liveWorkers,
  loadReads,
  lostHolds,
  makeAllDue,
  makeMissedDue,
  noteDeath,
  noteWentOn,
  openBeat,
  openDatabase,
  overdueAttempts,
  recordProgress,
  registerWorker,
  releaseSteps,
  setAside,
  takeDueSteps,
  takeLapsedSteps,
  unblockSteps,
} from "@millrace/store";
import type { Db } from "@millrace/store";
import { sql } from "kysely";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import {
  blank,
  claimRequest,
  commit,
  commitOne,
  create,
  execution,
  firstCommit,
  openTestDatabase,
  openTransaction,
  result,
  stepUpdate,
  tenantId,
  workerId,
} from "./support.ts";
import type { OpenedDatabase } from "./support.ts";

let database: OpenedDatabase;
beforeAll(async () => {
  database = await openTestDatabase();
});
afterAll(() => database.drop());
beforeEach(async () => {
  await sql`truncate step_executions, workflow_instances, workers, history`.execute(database.db);
});

test("a claim takes the step and brings its instance along", async () => {
  const { db } = database;
  const worker = await startWorker();
  const first = firstCommit(blank({ variables: { a: 1 } }), {
    inserts: [execution("a", { input: null, timeoutMs: 5_000 })],
  });
  const snapshot = await create(db, first);

  const [claimed] = await claimSteps(db, [
    claimRequest(snapshot, worker, { carrier: "job-9", timeoutMs: 1, heartbeatTimeoutMs: 2_000 }),
  ]);

  expect(claimed?.snapshot).toEqual(snapshot);
  expect(claimed?.step).toEqual({
    stepId: "a",
    path: "a",
    iteration: 1,
    taskId: "noop",
    attempt: 1,
    fence: 1,
    deliveries: 1,
    input: null,
    timeoutMs: 5_000,
    heartbeatTimeoutMs: null,
    compensates: null,
    carrier: "job-9",
  });
  const row = await rowOf(snapshot);
  expect(row).toMatchObject({ status: "RUNNING", worker_id: worker, due_clock: "heartbeat" });
  expect((row?.timeout_at?.getTime() ?? 0) - (row?.started_at?.getTime() ?? 0)).toBe(5_000);
  expect((row?.due_at?.getTime() ?? 0) - (row?.started_at?.getTime() ?? 0)).toBe(2_000);
});

test("of many who claim one step one gets it", async () => {
  const { db } = database;
  const snapshot = await create(db);

  const claims = await Promise.all(
    Array.from({ length: 20 }, () => claimSteps(db, [claimRequest(snapshot, workerId())])),
  );
  const inOneBatch = await claimSteps(db, [
    claimRequest(await create(db), workerId()),
    claimRequest(snapshot, workerId(), { fence: 1 }),
  ]);

  expect(claims.flat().filter((claim) => claim !== undefined)).toHaveLength(1);
  expect(inOneBatch.map((claim) => claim !== undefined)).toEqual([true, false]);
  expect(await rowOf(snapshot)).toMatchObject({ fence: 1, deliveries: 1 });
});

test("two jobs for one step in one batch are one claim", async () => {
  const { db } = database;
  const snapshot = await create(db);

  const claims = await claimSteps(db, [
    claimRequest(snapshot, workerId(), { carrier: "one" }),
    claimRequest(snapshot, workerId(), { carrier: "two" }),
  ]);

  expect(claims.filter((claim) => claim !== undefined)).toHaveLength(1);
});

test("a job of another attempt or fence claims nothing", async () => {
  const { db } = database;
  const snapshot = await create(db);

  const claims = await claimSteps(db, [
    claimRequest(snapshot, workerId(), { attempt: 2 }),
    claimRequest(snapshot, workerId(), { fence: 1 }),
    claimRequest(snapshot, workerId(), { path: "b" }),
    claimRequest(snapshot, workerId(), { tenantId: "other" }),
  ]);

  expect(claims).toEqual([undefined, undefined, undefined, undefined]);
  expect(await rowOf(snapshot)).toMatchObject({ status: "PENDING", fence: 0 });
});

test("a retry is not claimed before its time, and is due when it has come", async () => {
  const { db } = database;
  const worker = await startWorker();
  const snapshot = await create(db);
  await claimSteps(db, [claimRequest(snapshot, worker)]);
  const retryAt = new Date(Date.now() + 300);
  await commitOne(
    db,
    commit(
      snapshot,
      {},
      { updates: [stepUpdate("a", { status: "RETRYING", attempt: 2, retryAt })] },
    ),
  );
  const request = claimRequest(snapshot, worker, { attempt: 2, fence: 1 });

  expect(await claimSteps(db, [request])).toEqual([undefined]);
  expect(await takeDueSteps(db, 10)).toEqual([]);
  await new Promise((resolve) => setTimeout(resolve, retryAt.getTime() - Date.now() + 20));

  expect(await takeDueSteps(db, 10)).toMatchObject([{ path: "a", attempt: 2, fence: 1 }]);
  const [claimed] = await claimSteps(db, [request]);
  expect(claimed?.step).toMatchObject({ attempt: 2, fence: 2, deliveries: 1 });
});

test("rows that somebody has locked are not waited for", async () => {
  const { db } = database;
  const [locked, free] = [await create(db), await create(db)];
  const other = openTransaction(database.url);
  await other.run(`select from step_executions where instance_id = '${locked.id}' for update`);

  const claims = await claimSteps(db, [
    claimRequest(locked, workerId()),
    claimRequest(free, workerId()),
  ]);
  await other.commit();

  expect(claims.map((claim) => claim !== undefined)).toEqual([false, true]);
});

test("a step whose job did not come is due, later each time", async () => {
  const { db } = database;
  const snapshot = await create(db);
  expect(await takeDueSteps(db, 10)).toEqual([]);

  const waits: number[] = [];
  for (let look = 0; look < 7; look++) {
    await sql`update step_executions set look_at = now() - interval '1 s'`.execute(db);
    expect(await takeDueSteps(db, 10)).toEqual([
      {
        tenantId,
        instanceId: snapshot.id,
        path: "a",
        iteration: 1,
        attempt: 1,
        fence: 0,
        taskId: "noop",
        queue: "default",
        priority: 0,
        lapses: 0,
        handOvers: 0,
        dueAt: expect.any(Date),
        isRetry: false,
      },
    ]);
    expect(await takeDueSteps(db, 10)).toEqual([]);
    const row = await rowOf(snapshot);
    waits.push(Math.round(((row?.look_at?.getTime() ?? 0) - Date.now()) / 1_000));
  }

  expect(waits).toEqual([30, 60, 120, 240, 480, 600, 600]);
});

test("what a silent worker holds is freed once, what an awaited step does is left alone", async () => {
  const { db } = database;
  const [silent, alive] = [await startWorker(), await startWorker()];
  const [lost, awaited, held, orphan] = await Promise.all([
    claimedBy(silent),
    claimedBy(silent),
    claimedBy(alive),
    claimedBy(workerId()),
  ]);
  await sql`update step_executions set awaited = true where instance_id = ${awaited.id}`.execute(
    db,
  );
  await sql`update workers set beat_at = now() - interval '5 s' where id = ${silent}`.execute(db);
  const options = { lapseMs: 4_000, mostDeliveries: 5, limit: 10 };

  const lapsed = await takeLapsedSteps(db, options);
  const again = await takeLapsedSteps(db, options);

  expect(lapsed.map(({ instanceId }) => instanceId).toSorted()).toEqual(
    [lost.id, orphan.id].toSorted(),
  );
  expect(lapsed[0]).toMatchObject({ isFree: true, fence: 2, attempt: 1, taskId: "noop" });
  expect(again).toEqual([]);
  expect(await rowOf(lost)).toMatchObject({ status: "PENDING", worker_id: null, deliveries: 1 });
  expect(await rowOf(awaited)).toMatchObject({ status: "RUNNING" });
  expect(await rowOf(held)).toMatchObject({ status: "RUNNING" });
});

test("a step that runs, and that no worker holds, lapses as one whose worker is silent", async () => {
  const { db } = database;
  const [unheld, fresh] = await Promise.all([claimedBy(workerId()), claimedBy(workerId())]);
  await sql`update workers set beat_at = now()`.execute(db);
  await sql`update step_executions set worker_id = null where instance_id in (${unheld.id}, ${fresh.id})`.execute(
    db,
  );
  await sql`update step_executions set started_at = now() - interval '5 s' where instance_id = ${unheld.id}`.execute(
    db,
  );
  const options = { lapseMs: 4_000, mostDeliveries: 5, limit: 10 };

  const lapsed = [...(await takeLapsedSteps(db, options)), ...(await takeLapsedSteps(db, options))];

  expect(lapsed.map(({ instanceId }) => instanceId)).toEqual([unheld.id]);
  expect(await rowOf(fresh)).toMatchObject({ status: "RUNNING", worker_id: null });
});

test("a step that has killed too many workers is shown and not handed on", async () => {
  const { db } = database;
  const snapshot = await claimedBy(workerId());
  await sql`update step_executions set lapses = 4`.execute(db);

  const lapsed = await takeLapsedSteps(db, { lapseMs: 4_000, mostDeliveries: 5, limit: 10 });

  expect(lapsed).toMatchObject([{ isFree: false, instanceId: snapshot.id, lapses: 5 }]);
  expect(await rowOf(snapshot)).toMatchObject({ status: "RUNNING", fence: 1 });
});

test("a worker whose process is known to have ended is dead at once, whatever its last beat, and may be known to have had more memory than at that", async () => {
  const { db } = database;
  const [dead, alive] = [await startWorker(), await startWorker()];
  const snapshot = await claimedBy(dead);
  await claimedBy(alive);

  await sql`update workers set rss_bytes = 50 where id = ${dead}`.execute(db);
  await sql`insert into dead_letters (tenant_id, instance_id, workflow_id, workflow_version, path,
      iteration, step_id, attempt, error, deliveries, status, created_at)
    values ('default', ${snapshot.id}, 'w', 1, 'a', 1, 'a', 1, '{}', json_build_array(
      json_build_object('workerId', ${alive}::text, 'exit', null),
      json_build_object('workerId', ${dead}::text, 'exit', null)), 'OPEN', now())`.execute(db);
  await noteDeath(db, dead, { exit: "SIGSEGV", peakBytes: 5_000_000_000 });
  const lapsed = await takeLapsedSteps(db, { lapseMs: 4_000, mostDeliveries: 5, limit: 10 });

  expect(lapsed).toMatchObject([{ isFree: true, instanceId: snapshot.id, lapses: 1 }]);
  const log = await sql`
    select lapse_log -> 0 -> 'exit' as exit, lapse_log -> 0 -> 'rssBytes' as bytes
    from step_executions where instance_id = ${snapshot.id}`.execute(db);
  expect(log.rows).toEqual([{ exit: "SIGSEGV", bytes: 5_000_000_000 }]);
  const letters = await sql`select jsonb_path_query_array(deliveries, '$[*].exit') as exits
    from dead_letters where instance_id = ${snapshot.id}`.execute(db);
  expect(letters.rows).toEqual([{ exits: [null, "SIGSEGV"] }]);
});

test("workers that were only silent, and have gone on, are no deaths", async () => {
  const { db } = database;
  const take = () => takeLapsedSteps(db, { lapseMs: 4_000, mostDeliveries: 3, limit: 10 });
  const fall = async (snapshot: Snapshot, goesOn: boolean) => {
    const worker = await startWorker();
    await sql`update step_executions set status = 'RUNNING', worker_id = ${worker}
      where instance_id = ${snapshot.id}`.execute(db);
    await sql`update workers set beat_at = now() - interval '5 s' where id = ${worker}`.execute(db);
    const [lapsed] = await take();
    if (goesOn) await noteWentOn(db, worker);
    return lapsed?.isFree;
  };
  const snapshot = await create(db);

  const frees: unknown[] = [];
  for (const goesOn of [true, false, true, false, false]) frees.push(await fall(snapshot, goesOn));

  expect(frees).toEqual([true, true, true, true, false]);
});

test("a worker hears which of its steps are no longer its own", async () => {
  const { db } = database;
  const worker = await startWorker();
  const [kept, taken, awaited] = await Promise.all([
    claimedBy(worker),
    claimedBy(worker),
    claimedBy(worker),
  ]);
  await sql`update step_executions set fence = 2 where instance_id = ${taken.id}`.execute(db);
  await sql`update step_executions set awaited = true where instance_id = ${awaited.id}`.execute(
    db,
  );
  const holds = [kept, taken, awaited].map(({ id }) => ({
    tenantId,
    instanceId: id,
    path: "a",
    iteration: 1,
    fence: 1,
  }));

  const lost = await lostHolds(db, worker, holds);

  expect(lost.map(({ instanceId }) => instanceId)).toEqual([taken.id, awaited.id]);
});

test("a worker that shuts down hands back what it holds, for others at once", async () => {
  const { db } = database;
  const worker = await startWorker();
  const snapshot = await claimedBy(worker);

  const released = await releaseSteps(db, worker);

  expect(released).toMatchObject([{ instanceId: snapshot.id, fence: 2 }]);
  expect(await takeDueSteps(db, 10)).toMatchObject([{ instanceId: snapshot.id, fence: 2 }]);
  const [claimed] = await claimSteps(db, [claimRequest(snapshot, workerId(), { fence: 2 })]);
  expect(claimed?.step).toMatchObject({ fence: 3, deliveries: 2 });
});

test("hand-overs are counted where they come soon after the beginning, and anew where one does not", async () => {
  const { db } = database;
  const worker = await startWorker();
  const snapshot = await claimedBy(worker);
  const place = { tenantId, instanceId: snapshot.id, path: "a", iteration: 1 };
  const handOver = async (fence: number, soon: boolean) => {
    const [step] = await releaseSteps(db, worker, soon ? [place] : []);
    await claimSteps(db, [claimRequest(snapshot, worker, { fence })]);
    return step?.handOvers;
  };

  const counts = [await handOver(2, true), await handOver(4, true)];
  counts.push(await handOver(6, false), await handOver(8, true));

  expect(counts).toEqual([1, 2, 0, 1]);
});

test("a step of an unknown task stays, says why, and is due when a worker knows it", async () => {
  const { db } = database;
  const snapshot = await create(db);
  const request = claimRequest(snapshot, workerId());

  await blockStep(db, request, "task:noop");
  const blocked = await rowOf(snapshot);
  const unblocked = await unblockSteps(db, ["echo", "noop"]);

  expect(blocked).toMatchObject({ status: "PENDING", blocked: "task:noop", looks: 1 });
  expect(unblocked).toBe(1);
  expect(await takeDueSteps(db, 10)).toHaveLength(1);
  const [claimed] = await claimSteps(db, [request]);
  expect(claimed).toBeDefined();
  expect(await rowOf(snapshot)).toMatchObject({ blocked: null });
});

test("a step is set aside as long as it waits, and goes on saying what its last run came to nothing of", async () => {
  const { db } = database;
  const snapshot = await create(db);
  const request = claimRequest(snapshot, workerId());

  await blockStep(db, request, "task:noop");
  const aside = await setAside(db, request);
  const marked = await rowOf(snapshot);
  await blockStep(db, request, "cell:no memory");
  await setAside(db, request);
  const failed = await rowOf(snapshot);
  const stale = await setAside(db, { ...request, fence: 7 });
  await claimSteps(db, [request]);

  expect(aside).toMatchObject({ taskId: "noop", queue: "default", lapses: 0, fence: 0 });
  expect(marked).toMatchObject({ status: "PENDING", blocked: "isolated" });
  expect(failed).toMatchObject({ blocked: "cell:no memory" });
  expect(stale).toBeUndefined();
  expect(await setAside(db, request)).toBeUndefined();
  expect(await rowOf(snapshot)).toMatchObject({ status: "RUNNING", blocked: null });
});

test("a step that is set aside on a guess is looked for after the patience for it, not later than otherwise", async () => {
  const { db } = database;
  const [guessed, asking, soon] = [await create(db), await create(db), await create(db)];
  await sql`update step_executions set look_at = now() - interval '1 s' where instance_id = ${soon.id}`.execute(
    db,
  );

  await setAside(db, claimRequest(guessed, workerId()), 0);
  await setAside(db, claimRequest(asking, workerId()));
  await setAside(db, claimRequest(soon, workerId()), 60_000);

  const due = (await takeDueSteps(db, 10)).map(({ instanceId }) => instanceId);
  expect(due.toSorted()).toEqual([guessed.id, soon.id].toSorted());
});

test("how often a step could not be taken is counted apart from how long it has waited", async () => {
  const { db } = database;
  const snapshot = await create(db);
  const request = claimRequest(snapshot, workerId());
  const waitLong = async () => {
    for (let look = 0; look < 7; look++) {
      await sql`update step_executions set look_at = now() - interval '1 s'`.execute(db);
      await takeDueSteps(db, 10);
    }
  };
  const pauses: number[] = [];
  const block = async (reason: "task:noop" | "cell:no memory") => {
    await waitLong();
    const times = await blockStep(db, request, reason);
    const row = await rowOf(snapshot);
    pauses.push(Math.ceil(((row?.look_at?.getTime() ?? 0) - Date.now()) / 1_000));
    return times;
  };

  const unknown = [await block("task:noop"), await block("task:noop")];
  await setAside(db, request);
  const failed: (number | undefined)[] = [];
  for (let times = 0; times < 4; times++) failed.push(await block("cell:no memory"));

  expect(unknown).toEqual([1, 2]);
  expect(failed).toEqual([1, 2, 3, 4]);
  expect(pauses).toEqual([1, 4, 1, 4, 16, 64]);
});

test("a step that others got who do not know its task is looked for within seconds while somebody does", async () => {
  const { db } = database;
  const [known, elsewhere] = [await create(db), await create(db)];
  await startWorker();
  await sql`update step_executions set queue = 'other' where instance_id = ${elsewhere.id}`.execute(
    db,
  );

  for (let times = 0; times < 7; times++) {
    for (const each of [known, elsewhere]) {
      await blockStep(db, claimRequest(each, workerId()), "task:noop");
    }
  }

  const { rows } = await sql<{ id: string }>`select instance_id as id from step_executions
    where look_at < now() + interval '10 s'`.execute(db);
  expect(rows.map(({ id }) => id)).toEqual([known.id]);
});

test("an attempt whose clock ran out is told after a grace, with its task's policy", async () => {
  const { db } = database;
  const worker = await startWorker();
  const snapshot = await create(db);
  const retry = { maxAttempts: 7 };
  await claimSteps(db, [claimRequest(snapshot, worker, { timeoutMs: 60_000, retry })]);
  expect(await overdueAttempts(db, 10)).toEqual([]);

  await sql`update step_executions set due_at = now() - interval '1 s'`.execute(db);
  const early = await overdueAttempts(db, 10);
  await sql`update step_executions set due_at = now() - interval '3 s'`.execute(db);
  const late = await overdueAttempts(db, 10);

  expect(early).toEqual([]);
  expect(late).toEqual([
    {
      tenantId,
      instanceId: snapshot.id,
      workflowId: "wf",
      workflowVersion: 1,
      stepId: "a",
      path: "a",
      iteration: 1,
      attempt: 1,
      fence: 1,
      clock: "timeout",
      dueAt: expect.any(Date),
      retry,
      place: expect.any(Array),
    },
  ]);
});

test("overdue attempts, and steps that have killed too many workers, are looked past", async () => {
  const { db } = database;
  const held = await Promise.all([1, 2, 3].map(() => claimedBy(workerId())));
  await sql`update step_executions set lapses = 4, due_at = now() - interval '3 s'`.execute(db);

  const lapse = { lapseMs: 4_000, mostDeliveries: 5, limit: 2 };
  const lapsed = await takeLapsedSteps(db, lapse);
  const others = await takeLapsedSteps(db, { ...lapse, after: lapsed.at(-1)?.place });
  const overdue = await overdueAttempts(db, 2);
  const later = await overdueAttempts(db, 2, overdue.at(-1)?.place);

  const ids = held.map(({ id }) => id).toSorted();
  const idsOf = (found: readonly { instanceId: string }[]) =>
    found.map(({ instanceId }) => instanceId);
  expect(idsOf([...lapsed, ...others]).toSorted()).toEqual(ids);
  expect(idsOf([...overdue, ...later])).toEqual(ids);
});

test("progress is kept and moves the heartbeat on, but not beyond the attempt's own time", async () => {
  const { db } = database;
  const worker = await startWorker();
  const snapshot = await create(db);
  await claimSteps(db, [
    claimRequest(snapshot, worker, { timeoutMs: 10_000, heartbeatTimeoutMs: 1_000 }),
  ]);
  const hold = { tenantId, instanceId: snapshot.id, path: "a", iteration: 1, fence: 1 };

  await recordProgress(db, { ...hold, workerId: worker }, { done: 3 }, 5_000);
  const moved = await rowOf(snapshot);
  await recordProgress(db, { ...hold, workerId: worker }, null, 60_000);
  const bounded = await rowOf(snapshot);
  await recordProgress(db, { ...hold, fence: 2, workerId: worker }, "stale", 60_000);

  expect(moved).toMatchObject({ progress: '{"done":3}', due_clock: "heartbeat" });
  expect(bounded).toMatchObject({ progress: "null", due_clock: "timeout" });
  expect(bounded?.due_at).toEqual(bounded?.timeout_at);
  expect(await rowOf(snapshot)).toEqual(bounded);
});

test("a beat that was silent too long is refused, and the worker counts as gone", async () => {
  const { db } = database;
  const worker = await startWorker();
  const connection = openBeat(database.url);

  expect(await beat(db, worker)).toBe(true);
  expect(await connection.pulse(worker)).toBe(true);
  expect((await liveWorkers(db)).map(({ id }) => id)).toEqual([worker]);
  await sql`update workers set beat_at = now() - interval '5 s'`.execute(db);
  expect(await beat(db, worker)).toBe(false);
  expect(await connection.pulse(worker)).toBe(false);
  expect(await liveWorkers(db)).toEqual([]);
  await forgetWorker(db, worker);
  expect(await beat(db, worker)).toBe(false);
  await connection.close();
});

test("a worker that registers again, since the answer was lost, is registered once", async () => {
  const { db } = database;
  const id = await startWorker();

  await startWorker(id);

  expect((await liveWorkers(db)).map((worker) => worker.id)).toEqual([id]);
});

test("after the queue lost everything each PENDING step is due, spread over time", async () => {
  const { db } = database;
  await sql`
    insert into step_executions (tenant_id, instance_id, path, iteration, step_id, type, status,
      attempt, task_id, queue, created_at, look_at)
    select ${tenantId}, gen_random_uuid(), 'a', 1, 'a', 'TASK',
      case when n <= 12000 then 'PENDING' else 'RUNNING' end, 1, 'noop', 'default', now(),
      now() + interval '1 hour'
    from generate_series(1, 12001) n`.execute(db);

  const now = async () => {
    const { rows } = await sql<{ at: number }>`
      select extract(epoch from clock_timestamp())::float8 as at`.execute(db);
    return rows[0]?.at ?? Number.NaN;
  };

  const before = await now();
  const due = await makeAllDue(db);
  const after = await now();

  expect(due).toBe(12_000);
  const { rows } = await sql<{ first: number; last: number; n: number }>`
    select extract(epoch from min(look_at))::float8 as first,
      extract(epoch from max(look_at))::float8 as last, count(distinct look_at)::int as n
    from step_executions where status = 'PENDING'`.execute(db);
  expect(rows[0]?.first).toBeLessThan(after + 0.1);
  expect(rows[0]?.last).toBeGreaterThan(before + 4);
  expect(rows[0]?.last).toBeLessThan(after + 6.1);
  expect(rows[0]?.n).toBe(12_000);
});

test("a retry whose time has come is due after the queue has lost everything, another one is not", async () => {
  const { db } = database;
  await sql`
    insert into step_executions (tenant_id, instance_id, path, iteration, step_id, type, status,
      attempt, task_id, queue, created_at, retry_at, looks, look_at)
    select ${tenantId}, gen_random_uuid(), 'a', 1, 'a', 'TASK', 'RETRYING', 2, 'noop', 'default', now(),
      now() + n * interval '1 minute', 6, now() + interval '10 minutes'
    from unnest(array[-5, 5]) n`.execute(db);

  expect(await makeAllDue(db)).toBe(1);

  expect(await takeDueSteps(db, 10)).toMatchObject([{ attempt: 2 }]);
});

test("after jobs could not be added for a while, what became PENDING in that time is due", async () => {
  const { db } = database;
  await sql`
    insert into step_executions (tenant_id, instance_id, path, iteration, step_id, type, status,
      attempt, task_id, queue, created_at, look_at)
    select ${tenantId}, gen_random_uuid(), 'a', 1, 'a', 'TASK',
      case when n % 10 = 0 then 'RETRYING' else 'PENDING' end, 1, 'noop', 'default', now(),
      now() - n * interval '1 s' + interval '30 s'
    from generate_series(1, 25) n`.execute(db);
  const ago = (seconds: number) => new Date(Date.now() - seconds * 1_000);

  const missed = await makeMissedDue(db, ago(12.5), ago(4.5));

  expect(missed).toBe(7);
  const { rows } = await sql<{ n: number }>`
    select count(*)::integer as n from step_executions where looks = -1
      and look_at < now() + interval '100 ms'`.execute(db);
  expect(rows).toEqual([{ n: 7 }]);
});

test("claims, commits and sweeps read what they touch, by plans made while tables were empty", async () => {
  const one = await openDatabase({ url: database.url, poolSize: 1 });
  const { db } = one;
  const worker = await startWorker();
  const use = async (snapshot: Snapshot) => {
    await claimSteps(db, [claimRequest(snapshot, worker)]);
    await takeDueSteps(db, 10);
    await takeLapsedSteps(db, { lapseMs: 60_000, mostDeliveries: 5, limit: 10 });
    await overdueAttempts(db, 10);
    const hold = { tenantId, instanceId: snapshot.id, path: "a", iteration: 1, fence: 1 };
    await lostHolds(db, worker, [hold]);
    await commitOne(db, result(snapshot, { workerId: worker }, "b"));
    await loadReads(db, { tenantId, instanceId: snapshot.id }, [{ kind: "latest", path: "a" }]);
  };
  // From the sixth execution on, a prepared statement keeps its plan.
  for (let count = 0; count < 8; count++) await use(await create(db));
  const snapshot = await create(db);
  await sql`
    insert into step_executions (tenant_id, instance_id, path, iteration, step_id, type, status,
      attempt, task_id, queue, created_at, completed_at)
    select ${tenantId}, case when n <= 1000 then ${snapshot.id}::uuid else gen_random_uuid() end,
      's' || n, 1, 's' || n, 'TASK', 'COMPLETED', 1, 'noop', 'default', now(), now()
    from generate_series(1, 50000) n`.execute(db);

  const before = await rowsRead(db);
  await use(snapshot);
  const after = await rowsRead(db);
  await one.close();

  expect(after.scanned - before.scanned).toBe(0);
  expect(after.fetched - before.fetched).toBeGreaterThan(5);
  expect(after.fetched - before.fetched).toBeLessThan(20);
});

async function startWorker(id = workerId()): Promise<string> {
  await registerWorker(database.db, {
    id,
    host: "test",
    pid: 1,
    tasks: ["noop"],
    queues: ["default"],
  });
  return id;
}

async function claimedBy(worker: string): Promise<Snapshot> {
  const snapshot = await create(database.db);
  await claimSteps(database.db, [claimRequest(snapshot, worker)]);
  return snapshot;
}

async function rowOf({ id }: Snapshot) {
  return database.db
    .selectFrom("step_executions")
    .selectAll()
    .where("instance_id", "=", id)
    .executeTakeFirst();
}

test("sweeps read what runs, and not all that is stored, where most ran when the table was last analyzed", async () => {
  const one = await openDatabase({ url: database.url, poolSize: 1 });
  const { db } = one;
  const worker = await startWorker();
  const sweep = async () => {
    await takeDueSteps(db, 10);
    await takeLapsedSteps(db, { lapseMs: 60_000, mostDeliveries: 5, limit: 10 });
    await overdueAttempts(db, 10);
  };
  const add = (status: "RUNNING" | "COMPLETED", count: number) =>
    sql`
    insert into step_executions (tenant_id, instance_id, path, iteration, step_id, type, status,
      attempt, task_id, queue, worker_id, created_at, started_at)
    select ${tenantId}, gen_random_uuid(), 'r', 1, 'r', 'TASK', ${status}, 1, 'noop', 'default', ${worker},
      now(), now()
    from generate_series(1, ${count}::integer)`.execute(db);
  await add("RUNNING", 300);
  await sql`analyze step_executions`.execute(db);
  await add("COMPLETED", 10_000);

  const before = await rowsRead(db);
  await sweep();
  const after = await rowsRead(db);
  await sql`delete from step_executions where path = 'r'`.execute(db);
  await one.close();

  expect(after.fetched + after.scanned - before.fetched - before.scanned).toBeLessThan(5_000);
});

/** Rows of `step_executions` read by scanning and by index, as the one connection of `db` counts. */
async function rowsRead(db: Db) {
  await sql`select pg_stat_force_next_flush()`.execute(db);
  const { rows } = await sql<{ scanned: number; fetched: number }>`
    select seq_tup_read as scanned, idx_tup_fetch as fetched from pg_stat_user_tables
    where relname = 'step_executions'`.execute(db);
  return rows[0] ?? { scanned: 0, fetched: 0 };
}
