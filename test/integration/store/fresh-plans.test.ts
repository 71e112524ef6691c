import {
  claimSteps,
  commitBatch,
  createBatch,
  forgetDeliveries,
  heardAmong,
  loadInstances,
  oldestUnreadMs,
  readLifecycleCursor,
} from "@millrace/store";
import type { Db } from "@millrace/store";
import { sql } from "kysely";
import { expect, test } from "vitest";
import { blank, claimRequest, firstCommit, openTestDatabase, result, workerId } from "./support.ts";

// A prepared statement keeps its plan, and a new installation makes its plans while the tables are nearly
// empty and all ways to a row look alike: what is chosen then must be good later, too.

test.for([1, 20, 300])(
  "plans made while there are %d instances find instances by their keys",
  async (count) => {
    // One connection: the plans are those of its first statements.
    const { db, drop } = await openTestDatabase(1);

    await takeAndCommit(db, count);

    // Nobody has listed anything.
    expect(await indexesReadOf(db)).toEqual(["workflow_instances_pkey"]);
    await drop();
  },
);

test("whether anybody waits for lifecycle events is asked of those alone who do", async () => {
  const { db, drop } = await openTestDatabase(1);
  const askAll = async () => {
    const probe = { pattern: "workflow.failed", eventPaths: "", keyHash: "0" };
    const told = { tenantId: "default", workflowId: "wf", receivedAt: "infinity" };
    await heardAmong(db, [{ ix: 0, ...told, probe }]);
    await oldestUnreadMs(db);
    return readLifecycleCursor(db);
  };
  await askAll();
  await sql`
    insert into waits (tenant_id, instance_id, path, iteration, purpose, pattern, event_paths, key_hash,
      deliver, opened_at, looked_back)
    select 'default', gen_random_uuid(), 'w', 1, 'STEP', 'p', '', 0, 'ALL', now(), true
    from generate_series(1, 3000)`.execute(db);

  const { isListened } = await askAll();

  expect(isListened).toBe(false);
  await sql`select pg_stat_force_next_flush()`.execute(db);
  const { rows } = await sql<{ read: string }>`
    select seq_tup_read + idx_tup_fetch as read from pg_stat_user_tables
    where relname = 'waits'`.execute(db);
  expect(Number(rows[0]?.read)).toBe(0);
  await drop();
});

/** All that one step does to instances, of as many at once. */
async function takeAndCommit(db: Db, count: number): Promise<void> {
  const commits = Array.from({ length: count }, () => firstCommit(blank()));
  await createBatch(db, commits);
  const snapshots = commits.map(({ decision }) => decision.snapshot);
  const worker = workerId();
  await claimSteps(
    db,
    snapshots.map((snapshot) => claimRequest(snapshot, worker)),
  );
  await loadInstances(
    db,
    snapshots.map(({ tenantId, id: instanceId }) => ({ tenantId, instanceId })),
  );
  const outcomes = await commitBatch(
    db,
    snapshots.map((snapshot) => result(snapshot, { workerId: worker })),
  );
  const [first] = snapshots;
  if (first) await forgetDeliveries(db, { tenantId: first.tenantId, instanceId: first.id });
  expect(outcomes).toEqual(snapshots.map(() => ({ kind: "committed", version: 2 })));
}

async function indexesReadOf(db: Db): Promise<readonly string[]> {
  await sql`select pg_stat_force_next_flush()`.execute(db);
  const { rows } = await sql<{ name: string }>`
    select indexrelname as name from pg_stat_user_indexes
    where relname = 'workflow_instances' and idx_scan > 0
    order by 1`.execute(db);
  return rows.map(({ name }) => name);
}
