import type { Snapshot } from "@millrace/engine";
import {
  claimSteps,
  commitBatch,
  commitLocked,
  createBatch,
  deliverTogether,
  insertEvents,
  loadInstances,
  makeAllDue,
  markMatched,
  matchPast,
  openLookbacks,
  findPastEvents,
  recordProgress,
  registerWorker,
  releaseSteps,
  settleEvents,
  takeDueSteps,
  takeDueTimers,
  takeLapsedSteps,
  takeOne,
  TransactionConflictError,
  unblockSteps,
} from "@millrace/store";
import type { Commit, Json, StoredEvent } from "@millrace/store";
import { sql } from "kysely";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  blank,
  claimRequest,
  commit,
  create,
  execution,
  firstCommit,
  newEvent,
  openTestDatabase,
  openWait,
  stepUpdate,
  tenantId,
  waitsOf,
  workerId,
} from "./support.ts";
import type { OpenedDatabase } from "./support.ts";

let database: OpenedDatabase;
beforeAll(async () => {
  database = await openTestDatabase(16);
});
afterAll(() => database.drop());

test("everything that locks rows runs over the same rows at once, and nothing deadlocks", async () => {
  const { db } = database;
  const worker = workerId();
  await registerWorker(db, { id: worker, host: "test", pid: 1, tasks: [], queues: [] });
  const patterns = ["p.0", "p.1", "p.2"];
  const lookbackFrom = new Date(0);
  const instances = await Promise.all(
    Array.from({ length: 24 }, (_each, index) =>
      create(
        db,
        firstCommit(blank(), {
          inserts: [execution("a"), execution("b"), execution("c")],
          commands: patterns.map((pattern, at) =>
            openWait(`w${at}`, pattern, {
              deliver: (index + at) % 3 === 0 ? "ONE" : "ALL",
              lookbackFrom,
            }),
          ),
        }),
      ),
    ),
  );
  const keys = instances.map(({ id }) => ({ tenantId, instanceId: id }));
  const end = Date.now() + 4_000;
  const leastRounds = 5;
  const rounds: Record<string, number> = {};
  const conflicts: unknown[] = [];
  let turn = 0;

  /** Repeats until the time is up, on a slow machine longer; each name runs twice at a time. */
  async function repeat(name: string, act: (turn: number) => Promise<unknown>): Promise<void> {
    const loop = async () => {
      while (Date.now() < end || (rounds[name] ?? 0) <= leastRounds) {
        try {
          await act(turn++);
        } catch (error) {
          if (!(error instanceof TransactionConflictError)) throw error;
          conflicts.push(`${name}: ${error.message}`);
        }
        rounds[name] = (rounds[name] ?? 0) + 1;
      }
    };
    await Promise.all([loop(), loop()]);
  }
  const rotated = <T>(list: readonly T[], by: number): readonly T[] => {
    const shifted = [...list.slice(by % list.length), ...list.slice(0, by % list.length)];
    return by % 2 === 0 ? shifted : shifted.toReversed();
  };
  const loaded = async (by: number) => rotated([...(await loadInstances(db, keys)).values()], by);
  const publish = async (by: number): Promise<StoredEvent> => {
    const pattern = patterns[by % 3] ?? "p.0";
    const [stored] = await insertEvents(db, [newEvent({ pattern, payload: { n: by } as Json })]);
    if (stored === undefined || stored === "duplicate") throw new Error("not stored");
    return stored;
  };

  await Promise.all([
    repeat("commit", async (by) => {
      await commitBatch(
        db,
        (await loaded(by)).map((snapshot) => change(snapshot, by)),
      );
    }),
    repeat("locked", async (by) => {
      const key = keys[by % keys.length];
      if (key === undefined) return;
      await commitLocked(db, key, async ({ snapshot }) => change(snapshot, by));
    }),
    repeat("create", async (by) => {
      const first = (key: string) =>
        firstCommit(
          blank(),
          { inserts: [execution("a")], commands: [openWait("w", `new.${by % 50}`)] },
          {
            create: {
              metadata: null,
              deadline: null,
              idempotency: { key, bodyHash: "x" },
            },
          },
        );
      await createBatch(db, rotated(["k0", "k1", "k2", `k${by}`], by).map(first));
    }),
    repeat("claim", async (by) => {
      const { rows } = await sql<{ instance_id: string; path: string; fence: number }>`
        select instance_id, path, fence from step_executions
        where status = 'PENDING' limit 30`.execute(db);
      await claimSteps(
        db,
        rotated(rows, by).map((row) =>
          claimRequest({ tenantId, id: row.instance_id } as Snapshot, worker, {
            path: row.path,
            fence: row.fence,
          }),
        ),
      );
    }),
    repeat("publish", async (by) => {
      const event = await publish(by);
      const found = await waitsOf(db, event);
      await markMatched(
        db,
        event,
        rotated(
          found.filter(({ deliver }) => deliver === "ALL"),
          by,
        ),
      );
      for (const wait of found) if (wait.deliver === "ONE") await takeOne(db, event, wait);
      await settleEvents(db, [{ tenantId, id: event.id, delivered: 0, cancelled: 0, started: 0 }]);
    }),
    repeat("deliver", async (by) => {
      const events = [await publish(by), await publish(by), await publish(by)];
      const found = rotated(await waitsOf(db, events[0] as StoredEvent), by);
      await deliverTogether(
        db,
        events.flatMap((event, index) => {
          const wait = found[index];
          return wait?.deliver === "ALL" ? [{ event, wait, started: 0 }] : [];
        }),
      );
    }),
    repeat("look back", async (by) => {
      const key = keys[by % keys.length];
      if (key === undefined) return;
      for (const wait of await openLookbacks(db, key)) {
        for (const event of await findPastEvents(db, wait, { limit: 3 })) {
          await (wait.deliver === "ONE" ? takeOne(db, event, wait) : matchPast(db, event, wait));
        }
      }
    }),
    repeat("sweep", async () => {
      await takeDueSteps(db, 50);
      await takeDueTimers(db, 50, 10);
      await takeLapsedSteps(db, { lapseMs: 0, mostDeliveries: 1_000_000, limit: 50 });
      await unblockSteps(db, ["noop"]);
      await makeAllDue(db);
    }),
    repeat("release", async (by) => {
      const instanceId = keys[by % keys.length]?.instanceId ?? "";
      const hold = { tenantId, instanceId, path: "a", iteration: 1, fence: by % 5 };
      await recordProgress(db, { ...hold, workerId: worker }, by, 1_000);
      if (by % 10 === 0) await releaseSteps(db, worker);
    }),
  ]);

  expect(conflicts).toEqual([]);
  const { rows } = await sql<{ deadlocks: number }>`
    select deadlocks from pg_stat_database where datname = current_database()`.execute(db);
  expect(rows).toEqual([{ deadlocks: 0 }]);
  expect(Object.values(rounds).every((count) => count > leastRounds)).toBe(true);

  /** Touches step rows, waits, timers and shapes of an instance, and closes what was matched. */
  function change(snapshot: Snapshot, by: number): Commit {
    const path = `w${by % 3}`;
    return commit(
      snapshot,
      { priority: by, variables: { by } },
      {
        updates: ["c", "b"].map((step) => stepUpdate(step, { status: "PENDING" })),
        inserts: [execution(`s${snapshot.version}`, { status: "COMPLETED" })],
        guards: by % 4 === 0 ? [{ kind: "waitUnmatched", path, iteration: 1 }] : [],
        commands: [
          { kind: "closeWait", path: `x${snapshot.version - 1}`, iteration: 1 },
          openWait(`x${snapshot.version}`, `p.${by % 3}`, {
            eventPaths: [`payload.${by % 40}`],
            key: [by],
          }),
          { kind: "rekeyWait", path, iteration: 1, key: [] },
          {
            kind: "setTimer",
            timer: "delay",
            path: "a",
            iteration: 1,
            attempt: 1,
            dueAt: new Date(),
          },
        ],
      },
    );
  }
});
