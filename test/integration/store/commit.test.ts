import { afterAll, beforeAll, expect, test } from "vitest";
import { sql } from "kysely";
import { claimSteps, commitBatch, commitLocked, createBatch, loadInstance, readHistory, registerWorker } from "@millrace/store";
import type { CommitOutcome } from "@millrace/store";
import {
  blank,
  claimRequest,
  commit,
  commitOne,
  create,
  execution,
  firstCommit,
  live,
  openTestDatabase,
  result,
  tenantId,
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
    commit(snapshot, { live: { ...snapshot.live, [`${path}#1`]: live(path) } }, { inserts: [execution(path)] }),
  );

  const outcomes = await Promise.all(racing.map((each) => commitOne(db, each)));

  expect(outcomes.map(({ kind }) => kind).toSorted()).toEqual(["committed", "conflict"]);
  const rows = await db.selectFrom("step_executions").select("path").where("instance_id", "=", snapshot.id).execute();
  expect(rows).toHaveLength(2);
  expect(await readHistory(db, { tenantId, instanceId: snapshot.id }, 0, 10)).toHaveLength(2);
});
