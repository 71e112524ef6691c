import type { Command, ParentLink, Snapshot } from "@millrace/engine";
import {
  childrenOf,
  commitLocked,
  createBatch,
  deleteChildSignals,
  loadChildSignals,
  loadInstance,
  placeName,
  readHistory,
  refuseChild,
  takeChildSignals,
  takeUnstarted,
  unstartedChildren,
  versionAt,
} from "@millrace/store";
import type { Commit, UnstartedChild } from "@millrace/store";
import { sql } from "kysely";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  blank,
  commit,
  commitOne,
  create,
  execution,
  firstCommit,
  instanceId,
  openTestDatabase,
  tenantId,
} from "./support.ts";
import type { OpenedDatabase } from "./support.ts";

// What one instance has for another is a row of the sender's commit, and goes with the receiver's.

let database: OpenedDatabase;
beforeAll(async () => {
  database = await openTestDatabase();
});
afterAll(() => database.drop());

const place = { path: "sub", iteration: 1, attempt: 1 };

function startOf(childId: string, more: object = {}): Command {
  const named = { workflowId: "wf", workflowVersion: null, detached: false };
  return { kind: "startChild", ...place, childId, ...named, ...more };
}

/** A parent that has asked for a child. */
async function parentOf(childId: string, more: object = {}): Promise<Snapshot> {
  const inserts = [
    execution("sub", {
      type: "SUB_WORKFLOW",
      status: "WAITING",
      taskId: null,
      queue: null,
      input: { of: 1 },
    }),
  ];
  const commands = [startOf(childId, more)];
  return create(database.db, firstCommit(blank(), { inserts, commands }));
}

function linkTo(parent: Snapshot): ParentLink {
  return { instanceId: parent.id, ...place, awaited: true, depth: 1 };
}

function childCommit(childId: string, parent: ParentLink): Commit {
  return firstCommit(blank({ id: childId, parent }));
}

async function unstarted(parent: Snapshot): Promise<readonly UnstartedChild[]> {
  return unstartedChildren(database.db, { tenantId, instanceId: parent.id }, [place]);
}

test("a start is there until the child's first commit, with all that the child needs", async () => {
  const childId = instanceId();
  const parent = await parentOf(childId);

  expect(await unstarted(parent)).toMatchObject([
    { childId, workflowId: "wf", workflowVersion: null, input: { of: 1 }, cancel: null },
  ]);
  expect((await unstarted(parent))[0]?.parent).toEqual(linkTo(parent));
  await create(database.db, childCommit(childId, linkTo(parent)));

  expect(await unstarted(parent)).toEqual([]);
  const child = await loadInstance(database.db, { tenantId, instanceId: childId });
  expect(child?.parent).toEqual(linkTo(parent));
  const at = { tenantId, instanceId: parent.id, ...place };
  expect((await childrenOf(database.db, [at])).get(placeName(at))).toMatchObject({
    childId,
    status: "RUNNING",
  });
});

test("of several who create a child one does; handed in again it is the same", async () => {
  const { db } = database;
  const childId = instanceId();
  const link = linkTo(await parentOf(childId));
  const tries = Array.from({ length: 8 }, () => childCommit(childId, link));

  const outcomes = await Promise.all(tries.map((each) => createBatch(db, [each])));

  const kinds = outcomes.flat().map((each) => ("kind" in each ? each.kind : "error"));
  expect(kinds.filter((kind) => kind === "committed")).toHaveLength(1);
  expect(new Set(kinds)).toEqual(new Set(["committed", "conflict"]));
  const winner = tries[kinds.indexOf("committed")];
  expect(await createBatch(db, winner ? [winner] : [])).toMatchObject([{ kind: "committed" }]);
  expect(await readHistory(db, { tenantId, instanceId: childId }, 0, 10)).toHaveLength(1);
});

test("an instance that nobody has asked for as a child is not created as one; others in its batch are", async () => {
  const { db } = database;
  const asked = instanceId();
  const link = linkTo(await parentOf(asked));

  const outcomes = await createBatch(db, [
    childCommit(instanceId(), link),
    firstCommit(),
    childCommit(asked, link),
  ]);

  expect(outcomes).toMatchObject([
    { kind: "conflict" },
    { kind: "committed" },
    { kind: "committed" },
  ]);
});

test("a child is refused or created, never both", async () => {
  const { db } = database;
  const error = {
    kind: "DEFINITION",
    type: "WORKFLOW_NOT_FOUND",
    message: "no",
    details: null,
  } as const;
  const ids = Array.from({ length: 20 }, () => instanceId());

  for (const childId of ids) {
    const parent = await parentOf(childId);
    const [child] = await unstarted(parent);
    if (child === undefined) throw new Error("nothing to start");
    const [[created]] = await Promise.all([
      createBatch(db, [childCommit(childId, linkTo(parent))]),
      refuseChild(db, child, error),
    ]);
    const told = await loadChildSignals(db, { tenantId, instanceId: parent.id }, 10);
    const isCreated = created !== undefined && "kind" in created && created.kind === "committed";
    expect(told).toHaveLength(isCreated ? 0 : 1);
    expect(await unstarted(parent)).toEqual([]);
    await deleteChildSignals(db, { tenantId, instanceId: parent.id }, told);
  }
});

test("an end is there until the commit that takes note of it, and stays where that is not written", async () => {
  const { db } = database;
  const childId = instanceId();
  const parent = await parentOf(childId);
  const key = { tenantId, instanceId: parent.id };
  const child = await create(db, childCommit(childId, linkTo(parent)));
  const ended = { kind: "reportEnd", parent: linkTo(parent), error: null, reason: null } as const;
  await commitOne(
    db,
    commit(
      child,
      { status: "COMPLETED", output: { done: 1 }, completedAt: new Date(), live: {} },
      { commands: [{ kind: "settle" }, { ...ended, status: "COMPLETED" }] },
    ),
  );

  const told = await loadChildSignals(db, key, 10);
  expect(told).toMatchObject([
    { kind: "END", childId, ...place, output: { done: 1 }, body: { status: "COMPLETED" } },
  ]);
  const stale = commit({ ...parent, version: 7 }, {}, {}, { received: told });
  expect(await commitOne(db, stale)).toEqual({ kind: "conflict" });
  expect(await loadChildSignals(db, key, 10)).toHaveLength(1);
  await commitLocked(db, key, async ({ snapshot }) => commit(snapshot, {}, {}, { received: told }));
  expect(await loadChildSignals(db, key, 10)).toEqual([]);
});

test("a cancel of a child that was never started comes along with its start", async () => {
  const { db } = database;
  const childId = instanceId();
  const parent = await parentOf(childId);
  const cancel = { kind: "cancelChild", ...place, childId } as const;
  await commitOne(
    db,
    commit(parent, {}, { commands: [{ ...cancel, reason: "why", shouldCompensate: false }] }),
  );

  const [child] = await unstarted(parent);

  expect(child?.cancel).toMatchObject({ kind: "CANCEL", reason: "why", shouldCompensate: false });
  const received = child?.cancel ? [child.cancel] : [];
  await create(db, { ...childCommit(childId, linkTo(parent)), received });
  expect(await loadChildSignals(db, { tenantId, instanceId: childId }, 10)).toEqual([]);
});

test("fresh rows are left alone; what is taken comes again after a while", async () => {
  const { db } = database;
  await sql`update children set started_at = now()`.execute(db);
  await sql`delete from child_signals`.execute(db);
  const childId = instanceId();
  const parent = await parentOf(childId);
  const cancel = { kind: "cancelChild", ...place, childId, reason: null } as const;
  await commitOne(db, commit(parent, {}, { commands: [{ ...cancel, shouldCompensate: true }] }));

  expect([await takeUnstarted(db, 10), await takeChildSignals(db, 10)]).toEqual([[], []]);
  await sql`update children set look_at = now()`.execute(db);
  await sql`update child_signals set look_at = now()`.execute(db);
  expect(await takeUnstarted(db, 10)).toMatchObject([{ childId }]);
  expect(await takeChildSignals(db, 10)).toMatchObject([{ kind: "CANCEL", instanceId: childId }]);
  expect([await takeUnstarted(db, 10), await takeChildSignals(db, 10)]).toEqual([[], []]);
});

test("two streams of batches, of parents and of their children, do not deadlock", async () => {
  const { db } = database;
  const family = await Promise.all(
    Array.from({ length: 40 }, async () => {
      const childId = instanceId();
      const parent = await parentOf(childId);
      const child = await create(db, childCommit(childId, linkTo(parent)));
      return { parent, child };
    }),
  );
  const before = await deadlocks();

  for (let round = 0; round < 5; round++) {
    const ends = family.map(({ parent, child }) => {
      const told = {
        kind: "reportEnd",
        parent: linkTo(parent),
        error: null,
        reason: null,
      } as const;
      return commit(child, {}, { commands: [{ ...told, status: "FAILED" }] });
    });
    const notes = family.map(({ parent, child }, index) => {
      const received = [
        { kind: "END" as const, childId: child.id, sentVersion: child.version + 1 },
      ];
      const commands: Command[] = [
        { kind: "cancelChild", ...place, childId: child.id, reason: null, shouldCompensate: true },
      ];
      return commit(parent, { priority: index }, { commands }, { received });
    });
    await Promise.all([
      ...ends.map((each) => commitOne(db, each)),
      ...notes.toReversed().map((each) => commitOne(db, each)),
    ]);
    for (const each of family) {
      each.child =
        ends.find(({ previous }) => previous === each.child)?.decision.snapshot ?? each.child;
      each.parent =
        notes.find(({ previous }) => previous === each.parent)?.decision.snapshot ?? each.parent;
    }
  }

  expect(await deadlocks()).toBe(before);
});

async function deadlocks(): Promise<number> {
  const { rows } = await sql<{ n: number }>`
    select deadlocks::integer as n from pg_stat_database where datname = current_database()`.execute(
    database.db,
  );
  return rows[0]?.n ?? 0;
}

test("a version is that of its time, and the latest where there was none", async () => {
  const { db } = database;
  const register = (tenant: string, version: number, at: string) =>
    sql`insert into workflow_definitions
      (tenant_id, id, version, content_hash, document, created_at, created_by)
      values (${tenant}, 'pinned', ${version}, 'h', '{}', ${at}, 'test')`.execute(db);
  await register("default", 1, "2026-01-01T00:00:00Z");
  await register("default", 2, "2026-02-01T00:00:00Z");
  await register("own", 3, "2026-03-01T00:00:00Z");
  const at = (tenant: string, time: string) => versionAt(db, tenant, "pinned", new Date(time));

  expect(await at("default", "2026-01-15T00:00:00Z")).toBe(1);
  expect(await at("default", "2026-02-01T00:00:00Z")).toBe(2);
  expect(await at("default", "2025-01-01T00:00:00Z")).toBe(2);
  expect(await at("own", "2026-02-15T00:00:00Z")).toBe(2);
  expect(await at("own", "2026-03-15T00:00:00Z")).toBe(3);
  expect(await versionAt(db, "own", "nowhere", new Date())).toBeUndefined();
});
