import { randomUUID } from "node:crypto";
import {
  claimSteps,
  deleteStraySlots,
  dueSchedules,
  forgetEvents,
  forgetKeys,
  forgetSettled,
  knownQueues,
  makeMissedDue,
  releasesLeft,
  nextTimerDue,
  oldestUnreadMs,
  openDatabase,
  orphansAmong,
  overdueAttempts,
  readLifecycleCursor,
  scheduleOutlook,
  takeDueSteps,
  takeChildSignals,
  takeDueTimers,
  takeLapsedSteps,
  takeUnstarted,
  takeUntoldGrants,
  unappliedMatches,
  unmatchedEvents,
  waitingSchedules,
  waitsNotLookedBack,
  workersLost,
  type DatabaseHandle,
  type Db,
} from "@millrace/store";
import { createDatabase, type TestDatabase } from "@millrace/testkit";
import { sql } from "kysely";
import { afterAll, beforeAll, expect, test } from "vitest";

// What the scheduler asks once a second costs next to nothing when there is nothing to do, however much
// is stored: each question has an index that holds only rows of its kind.

const settled = 30_000;
let database: TestDatabase;
/** One connection: its prepared statements are the ones that are explained. */
let handle: DatabaseHandle;
let db: Db;

beforeAll(async () => {
  database = await createDatabase();
  handle = await openDatabase({ url: database.url, poolSize: 1 });
  ({ db } = handle);
  await fill();
  await askAll();
}, 120_000);
afterAll(async () => {
  await handle?.close();
  await database?.drop();
});

interface Question {
  /** Of the prepared statement. */
  readonly name: string;
  readonly values: readonly (string | number | null)[];
  /** Which find the rows. What they are joined to is found by primary keys. */
  readonly indexes: readonly string[];
}

/** Before whatever is stored, as of the keys of waits and steps. */
const never = "-infinity";
const noId = "00000000-0000-0000-0000-000000000000";
const firstKey = ["", noId, "", 0];

const questions: readonly Question[] = [
  { name: "due_steps", values: [500], indexes: ["step_executions_look"] },
  {
    name: "silent_holders",
    values: [4_000, 500, noId, ...firstKey, 0],
    indexes: ["step_executions_unheld", "step_executions_held"],
  },
  {
    name: "overdue_attempts",
    values: [500, never, ...firstKey],
    indexes: ["step_executions_held"],
  },
  { name: "unmatched_events", values: [2_000, 500, never, "", ""], indexes: ["events_unmatched"] },
  {
    name: "waits_not_looked_back",
    values: [2_000, 500, never, ...firstKey],
    indexes: ["waits_not_looked_back"],
  },
  {
    name: "unapplied_matches",
    values: [2_000, 500, never, ...firstKey],
    indexes: ["waits_unapplied"],
  },
  {
    name: "releases_left",
    values: [2_000, 500, never, ...firstKey.slice(0, 3), never],
    indexes: ["event_releases_left"],
  },
  { name: "left_unstarted_children", values: [500], indexes: ["children_look"] },
  { name: "left_child_signals", values: [500], indexes: ["child_signals_look"] },
  { name: "untold_grants", values: [500], indexes: ["limit_slots_granted"] },
  { name: "stray_slots", values: [500], indexes: ["limit_slots_taken"] },
  { name: "take_timers", values: [200, 5_000, null, 0], indexes: ["timers_look"] },
  { name: "take_timers", values: [100, 5_000, null, 30_000], indexes: ["timers_look"] },
  { name: "next_timer", values: [], indexes: ["timers_look"] },
  { name: "due_schedules", values: [50], indexes: ["schedules_due"] },
  // Both hold but what is to be done: runs that wait, and those that are live.
  {
    name: "waiting_schedules",
    values: [50],
    indexes: ["schedule_runs_waiting", "schedule_runs_live"],
  },
  {
    name: "schedule_outlook",
    values: [],
    indexes: ["schedules_due", "schedule_runs_waiting"],
  },
  {
    name: "make_due",
    values: ["2026-01-01", 5_000, 0, 2_000, "2026-01-01", "2026-01-02"],
    indexes: ["step_executions_look"],
  },
  // What has settled is younger than a day.
  {
    name: "take_settled",
    values: [86_400_000, "-infinity", noId, 500, 2_000],
    indexes: ["workflow_instances_settled", "dead_letters_of_instance"],
  },
  {
    name: "take_events",
    values: [86_400_000, "-infinity", "", 1_000],
    indexes: ["events_matched"],
  },
  { name: "forget_keys", values: [86_400_000, 1_000], indexes: ["idempotency_keys_by_time"] },
];

test.for(questions)(
  "$name reads its index, and nothing of $indexes that has settled",
  async ({ name, values, indexes }) => {
    const plan = await planOf(name, values);

    const nodes = nodesOf(plan);
    const first = nodes
      .flatMap((node) => node["Index Name"] ?? [])
      .filter((index) => !index.endsWith("_pkey"));
    expect([...new Set(first)]).toEqual(indexes);
    expect(nodes.filter((node) => node["Node Type"] === "Seq Scan")).toEqual([]);
    expect(Math.max(...nodes.map((node) => node["Actual Rows"]))).toBeLessThanOrEqual(1);
    expect(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]).toBeLessThan(20);
  },
);

test.for([
  { name: "workers_lost", values: [5_000, 500] },
  { name: "known_queues", values: [] },
])(
  "$name reads the workers, of which there are few, and nothing else",
  async ({ name, values }) => {
    const nodes = nodesOf(await planOf(name, values));

    const read = nodes.flatMap((node) => node["Relation Name"] ?? []);
    expect([...new Set(read)]).toEqual(["workers"]);
  },
);

test.for(["lifecycle_cursor", "lifecycle_unread"])(
  "%s reads its one row, and nothing of those who listen to other events",
  async (name) => {
    const plan = await planOf(name, []);

    const nodes = nodesOf(plan);
    const scans = nodes.filter((node) => node["Node Type"] === "Seq Scan");
    expect(scans.map((node) => node["Relation Name"])).toEqual(["lifecycle_cursor"]);
    const listeners = nodes.flatMap((node) => node["Index Name"] ?? []);
    expect(listeners).toEqual(
      expect.arrayContaining(["waits_lifecycle", "start_triggers_lifecycle", "webhooks_enabled"]),
    );
    expect(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]).toBeLessThan(20);
  },
);

test("jobs are looked up by the primary key, one row each", async () => {
  const { rows } = await sql<{ instance_id: string }>`
    select instance_id from step_executions limit 100`.execute(db);
  const jobs = rows.map(({ instance_id: instanceId }) => jobOf(instanceId));
  await orphansAmong(db, jobs);

  const before = await tuplesRead();
  const orphans = await orphansAmong(db, jobs);
  const after = await tuplesRead();

  expect(orphans).toHaveLength(100);
  expect(after.scanned - before.scanned).toBe(0);
  expect(after.fetched - before.fetched).toBe(100);
});

test("a claim reads the rows that it is for, however many others wait", async () => {
  await sql`
    insert into step_executions (tenant_id, instance_id, path, iteration, step_id, type, status,
      attempt, task_id, queue, created_at, look_at)
    select tenant_id, id, 'b', 1, 'b', 'TASK', 'PENDING', 1, 'noop', 'default', now(), 'infinity'
    from workflow_instances limit 1000`.execute(db);
  const { rows } = await sql<{ instance_id: string }>`
    select instance_id from step_executions where status = 'PENDING' limit 100`.execute(db);
  const requests = rows.map(({ instance_id: instanceId }) => claimOf(instanceId));

  const before = await tuplesRead();
  const claimed = await claimSteps(db, requests);
  const after = await tuplesRead();

  expect(claimed.filter((claim) => claim !== undefined)).toHaveLength(100);
  expect(after.scanned - before.scanned).toBe(0);
  // Each is found to be locked, and found again to be changed.
  expect(after.fetched - before.fetched).toBeLessThanOrEqual(200);
});

/** What an installation has that has done much and has nothing to do. */
async function fill(): Promise<void> {
  await sql`
    insert into workflow_instances (tenant_id, id, workflow_id, workflow_version, version, status,
      status_at, priority, variables, snapshot, created_at, updated_at, completed_at)
    select 'default', gen_random_uuid(), 'wf', 1, 4, 'COMPLETED', now(), 0, '{}', '{"format":1}',
      now(), now(), now()
    from generate_series(1, ${settled}::integer)`.execute(db);
  await sql`
    insert into step_executions (tenant_id, instance_id, path, iteration, step_id, type, status,
      attempt, task_id, queue, created_at, completed_at, worker_id)
    select 'default', id, 'a', 1, 'a', 'TASK', 'COMPLETED', 1, 'noop', 'default', now(), now(),
      gen_random_uuid()
    from workflow_instances`.execute(db);
  await sql`
    insert into waits (tenant_id, instance_id, path, iteration, purpose, pattern, event_paths, deliver,
      opened_at, looked_back)
    select 'default', id, 'w', 1, 'STEP', 'p', '', 'ALL', now() - interval '1 h', true
    from workflow_instances limit 1000`.execute(db);
  await sql`
    insert into start_triggers (tenant_id, workflow_id, trigger, version, pattern, event_paths, key_hash)
    select 'default', 'wf' || n, 0, 1, 'p', '', 0 from generate_series(1, 1000) n`.execute(db);
  await sql`
    insert into events (tenant_id, id, pattern, payload, occurred_at, received_at, actor, matched_at)
    select 'default', 'e' || n, 'p', '{}', now(), now() - interval '1 h', 'a', now()
    from generate_series(1, ${settled}::integer) n`.execute(db);
  await sql`
    insert into children (tenant_id, instance_id, path, iteration, attempt, child_id, workflow_id,
      detached, requested_at, look_at, started_at)
    select 'default', id, 'a', 1, 1, gen_random_uuid(), 'wf', false, now(), now(), now()
    from workflow_instances`.execute(db);
  await sql`
    insert into schedules (tenant_id, id, version, document, target_type, target_id, status,
      created_at, created_by, updated_at, updated_by)
    select 'default', 's' || n, 1, '{}', 'workflow', 'wf', 'COMPLETED', now(), 'a', now(), 'a'
    from generate_series(1, 1000) n`.execute(db);
  await sql`
    insert into schedule_runs (tenant_id, schedule_id, kind, tick_at, status, instance_id, created_at,
      started_at, ended_at)
    select 'default', 's' || n % 1000, 'TICK', now() + n * interval '1 s', 'STARTED',
      gen_random_uuid(), now(), now(), now()
    from generate_series(1, ${settled}::integer) n`.execute(db);
  await sql`
    insert into idempotency_keys (tenant_id, key, body_hash, instance_id)
    select 'default', 'k' || n, 'h', gen_random_uuid()
    from generate_series(1, ${settled}::integer) n`.execute(db);
  await sql`vacuum analyze`.execute(db);
}

async function askAll(): Promise<void> {
  await claimSteps(db, [claimOf(randomUUID())]);
  await workersLost(db, 5_000, 500);
  await knownQueues(db);
  await takeDueSteps(db, 500);
  await takeLapsedSteps(db, { lapseMs: 4_000, mostDeliveries: 5, limit: 500 });
  await overdueAttempts(db, 500);
  await unmatchedEvents(db, 2_000, 500);
  await waitsNotLookedBack(db, 2_000, 500);
  await unappliedMatches(db, 2_000, 500);
  await releasesLeft(db, 2_000, 500);
  await takeUnstarted(db, 500);
  await takeChildSignals(db, 500);
  await takeUntoldGrants(db, 500);
  await deleteStraySlots(db, 500);
  await takeDueTimers(db, 200, 5_000);
  await nextTimerDue(db);
  await makeMissedDue(db, new Date(0), new Date(1));
  await dueSchedules(db, 50);
  await waitingSchedules(db, 50);
  await scheduleOutlook(db);
  const look = { olderMs: 86_400_000, limit: 500 };
  await forgetSettled(db, look);
  await forgetEvents(db, look);
  await forgetKeys(db, look);
  await readLifecycleCursor(db);
  await oldestUnreadMs(db);
}

interface PlanNode {
  readonly "Node Type": string;
  readonly "Index Name"?: string;
  readonly "Relation Name"?: string;
  readonly "Actual Rows": number;
  readonly "Shared Hit Blocks": number;
  readonly "Shared Read Blocks": number;
  readonly Plans?: readonly PlanNode[];
}

async function planOf(name: string, values: Question["values"]): Promise<PlanNode> {
  const list = values.map((value) => (value === null ? "null" : `'${value}'`)).join(", ");
  const execute = `execute "${name}"${list === "" ? "" : `(${list})`}`;
  const { rows } = await sql<{ "QUERY PLAN": readonly { readonly Plan: PlanNode }[] }>`
    explain (analyze, buffers, format json) ${sql.raw(execute)}`.execute(db);
  const answer = rows[0]?.["QUERY PLAN"];
  const [plan] = typeof answer === "string" ? JSON.parse(answer) : (answer ?? []);
  return plan.Plan;
}

function nodesOf(plan: PlanNode): readonly PlanNode[] {
  return [plan, ...(plan.Plans ?? []).flatMap(nodesOf)];
}

function jobOf(instanceId: string) {
  const place = { path: "a", iteration: 1, attempt: 1, fence: 0, jobId: randomUUID() };
  return { tenantId: "default", instanceId, ...place };
}

function claimOf(instanceId: string) {
  const limits = { timeoutMs: null, heartbeatTimeoutMs: null, retry: null };
  return { ...jobOf(instanceId), path: "b", workerId: randomUUID(), carrier: "job", ...limits };
}

async function tuplesRead() {
  await sql`select pg_stat_force_next_flush()`.execute(db);
  const { rows } = await sql<{ scanned: number; fetched: number }>`
    select seq_tup_read as scanned, idx_tup_fetch as fetched from pg_stat_user_tables
    where relname = 'step_executions'`.execute(db);
  return rows[0] ?? { scanned: 0, fetched: 0 };
}
