import type { Snapshot } from "@millrace/engine";
import {
  deliverTogether,
  findPastEvents,
  insertEvents,
  listenerShapes,
  loadInbox,
  markLookedBack,
  markMatched,
  openLookbacks,
  releasesLeft,
  settleEvents,
  takeOne,
  unappliedMatches,
  unmatchedEvents,
  takeBack,
  waitsNotLookedBack,
} from "@millrace/store";
import type { Json, NewEvent, Placed, RowPlace, StoredEvent } from "@millrace/store";
import { eventually } from "@millrace/testkit";
import { sql } from "kysely";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import {
  blank,
  commit,
  commitOne,
  create,
  execution,
  firstCommit,
  isWaiting,
  newEvent,
  openTestDatabase,
  openTransaction,
  openWait,
  tenantId,
  waitsOf,
} from "./support.ts";
import type { OpenedDatabase } from "./support.ts";

let database: OpenedDatabase;
beforeAll(async () => {
  database = await openTestDatabase();
});
afterAll(() => database.drop());
beforeEach(async () => {
  await sql`truncate events, waits, event_deliveries`.execute(database.db);
});

test("an event is stored once; its id again is a duplicate", async () => {
  const { db } = database;
  const event = newEvent({ payload: { n: 1 } });
  const other = newEvent();

  const stored = await insertEvents(db, [event, event, other]);
  const again = await insertEvents(db, [{ ...event, payload: { n: 2 } }]);

  expect(stored).toMatchObject([
    { id: event.id, payload: { n: 1 } },
    "duplicate",
    { id: other.id },
  ]);
  expect(again).toEqual(["duplicate"]);
  expect(await insertEvents(db, [{ ...event, tenantId: "other" }])).toMatchObject([
    { id: event.id },
  ]);
});

test("an event finds the waits that were open when it was received, longest first", async () => {
  const { db } = database;
  const waiting = [await createWaiting(), await createWaiting()];
  const event = await publish();
  await createWaiting();

  const found = await waitsOf(db, event);

  expect(found.map(({ instanceId }) => instanceId)).toEqual(waiting.map(({ id }) => id));
  expect(found[0]?.snapshot).toEqual(waiting[0]);
});

test("a wait is found by its key: typed, and never where a side is missing", async () => {
  const { db } = database;
  const keyed = (key: readonly Json[] | "NEVER") =>
    createWaiting({ eventPaths: ["payload.orderId"], key });
  const [number, text] = [await keyed([42]), await keyed(["42"])];
  await keyed("NEVER");
  await keyed([null]);
  const event = await publish();
  const probe = (value: Json) =>
    waitsOf(db, event, { eventPaths: "payload.orderId", values: [value] });

  expect(await listenerShapes(db, tenantId, [event.pattern, "other"])).toEqual({
    waits: [
      { pattern: event.pattern, eventPaths: "" },
      { pattern: event.pattern, eventPaths: "payload.orderId" },
    ],
    starts: [],
  });
  expect((await probe(42)).map(({ instanceId }) => instanceId)).toEqual([number.id]);
  expect((await probe("42")).map(({ instanceId }) => instanceId)).toEqual([text.id]);
  expect(await probe(43)).toEqual([]);
});

test("pages of waits lose none and repeat none, with waits that opened at one time", async () => {
  const { db } = database;
  const waiting = await Promise.all(Array.from({ length: 25 }, () => createWaiting()));
  await sql`update waits set opened_at = '2026-01-01'`.execute(db);
  const event = await publish();

  const found: string[] = [];
  let after: Awaited<ReturnType<typeof waitsOf>>[number] | undefined;
  for (;;) {
    const page = await waitsOf(db, event, undefined, { after, limit: 7 });
    found.push(...page.map(({ instanceId }) => instanceId));
    after = page.at(-1);
    if (page.length < 7) break;
  }

  expect(found.toSorted()).toEqual(waiting.map(({ id }) => id).toSorted());
});

test("a wait goes to one event, whoever is first", async () => {
  const { db } = database;
  const instances = await Promise.all(Array.from({ length: 20 }, () => createWaiting()));
  const events = await Promise.all(Array.from({ length: 6 }, () => publish()));

  const won = await Promise.all(
    events.map(async (event, index) => {
      const found = await waitsOf(db, event);
      return markMatched(db, event, index % 2 === 0 ? found : found.toReversed());
    }),
  );

  expect(won.flat()).toHaveLength(20);
  for (const { id } of instances) {
    expect(await loadInbox(db, { tenantId, instanceId: id })).toHaveLength(1);
  }
});

test("a match waits for whoever has the wait, and then decides for good", async () => {
  const { db } = database;
  const [kept, closed] = [await createWaiting(), await createWaiting()];
  const event = await publish();
  const found = await waitsOf(db, event);
  const other = openTransaction(database.url);
  await other.run(`update waits set deliver = 'ALL' where instance_id = '${kept.id}'`);
  await other.run(`delete from waits where instance_id = '${closed.id}'`);

  const matching = markMatched(db, event, found);
  await eventually("the match to wait", () => isWaiting(db));
  await other.commit();

  expect((await matching).map(({ instanceId }) => instanceId)).toEqual([kept.id]);
});

test("events that have one wait each to go to are given and noted at once", async () => {
  const { db } = database;
  const instances = await Promise.all(Array.from({ length: 5 }, () => createWaiting()));
  const events = await Promise.all(instances.map(() => publish()));
  const [first] = events as [StoredEvent];
  const waits = await waitsOf(db, first);
  const pairs = events.map((event, index) => ({ event, wait: waits[index] as never, started: 0 }));

  const rounds = await Promise.all([
    deliverTogether(db, pairs),
    deliverTogether(db, pairs.toReversed()),
  ]);
  const [late] = await deliverTogether(db, [{ ...pairs[0], event: await publish() } as never]);

  // Whoever is second of two takes nothing, and counts nothing.
  const taken = rounds.flat().filter(({ isTaken }) => isTaken);
  expect(taken).toHaveLength(5);
  expect(late).toEqual({ isTaken: false, counts: { delivered: 0, cancelled: 0, started: 0 } });
  expect(taken.map(({ counts }) => counts?.delivered)).toEqual([1, 1, 1, 1, 1]);
  for (const { id } of instances) {
    expect(await loadInbox(db, { tenantId, instanceId: id })).toHaveLength(1);
  }
  expect(await unmatchedEvents(db, 0, 10)).toEqual([]);
  const { rows } = await sql<{ delivered: number; rows: number }>`
    select sum(delivered)::int as delivered, (select count(*)::int from event_deliveries) as rows
    from events`.execute(db);
  expect(rows).toEqual([{ delivered: 5, rows: 5 }]);
});

test("a delivery waits for whoever has the wait or the event, and the others do not", async () => {
  const { db } = database;
  const instances = await Promise.all(Array.from({ length: 3 }, () => createWaiting()));
  const events = await Promise.all(instances.map(() => publish()));
  const waits = await waitsOf(db, events[0] as StoredEvent);
  const waitOf = (index: number) =>
    waits.find(({ instanceId }) => instanceId === instances[index]?.id) as never;
  const pairs = events.map((event, index) => ({ event, wait: waitOf(index), started: 2 }));
  const other = openTransaction(database.url);
  await other.run(`delete from waits where instance_id = '${instances[0]?.id}'`);
  await other.run(`update events set delivered = 1 where id = '${events[1]?.id}'`);

  const delivering = deliverTogether(db, pairs);
  await eventually("the delivery to wait", () => isWaiting(db));
  expect(await loadInbox(db, { tenantId, instanceId: instances[2]?.id ?? "" })).toHaveLength(1);
  await other.commit();

  expect(await delivering).toEqual([
    { isTaken: false, counts: { delivered: 0, cancelled: 0, started: 2 } },
    { isTaken: true, counts: { delivered: 2, cancelled: 0, started: 2 } },
    { isTaken: true, counts: { delivered: 1, cancelled: 0, started: 2 } },
  ]);
});

test("of an event that is delivered twice in one call each wait is taken, and counted", async () => {
  const { db } = database;
  await createWaiting();
  await createWaiting();
  const event = await publish();

  const pairs = (await waitsOf(db, event)).map((wait) => ({ event, wait, started: 0 }));
  const delivered = await deliverTogether(db, pairs);

  expect(delivered.map(({ isTaken }) => isTaken)).toEqual([true, true]);
  expect(new Set(delivered.map(({ counts }) => counts?.delivered))).toEqual(new Set([1, 2]));
});

test("a wait whose key was written anew is not given to what its old key found", async () => {
  const { db } = database;
  const snapshot = await createWaiting({ eventPaths: ["payload.n"], key: [1] });
  const event = await publish({ payload: { n: 1 } });
  const found = await waitsOf(db, event, { eventPaths: "payload.n", values: [1] });
  await commitOne(
    db,
    commit(
      snapshot,
      {},
      {
        commands: [{ kind: "rekeyWait", path: "w", iteration: 1, key: [2] }],
      },
    ),
  );

  expect(found).toHaveLength(1);
  expect(await markMatched(db, event, found)).toEqual([]);
  const later = await publish({ payload: { n: 2 } });
  expect(await waitsOf(db, later, { eventPaths: "payload.n", values: [2] })).toHaveLength(1);
});

test("one event satisfies every wait of an instance open at the time, and none that opens later", async () => {
  const { db } = database;
  const lookbackFrom = new Date(Date.now() - 60_000);
  const event = await publish();
  const snapshot = await create(
    db,
    firstCommit(blank(), {
      inserts: [],
      commands: [
        openWait("w", event.pattern, { lookbackFrom }),
        openWait("v", event.pattern, { lookbackFrom }),
      ],
    }),
  );
  const key = { tenantId, instanceId: snapshot.id };

  for (const wait of await openLookbacks(db, key)) {
    const past = await findPastEvents(db, wait, { limit: 10 });
    expect(past.map(({ id }) => id)).toEqual([event.id]);
    expect(await markMatched(db, past[0] as StoredEvent, [wait])).toHaveLength(1);
  }
  const inbox = await loadInbox(db, key);
  await commitOne(
    db,
    commit(
      snapshot,
      {},
      {
        commands: [
          { kind: "closeWait", path: "w", iteration: 1 },
          { kind: "closeWait", path: "v", iteration: 1 },
          openWait("w", event.pattern, { iteration: 2, lookbackFrom }),
        ],
      },
    ),
  );
  const [again] = await openLookbacks(db, key);

  expect(inbox.map(({ path }) => path).toSorted()).toEqual(["v", "w"]);
  expect(again).toMatchObject({ path: "w", iteration: 2 });
  if (again === undefined) return;
  expect(await findPastEvents(db, again, { limit: 10 })).toEqual([]);
  expect(await waitsOf(db, event)).toEqual([]);
  expect(await markMatched(db, event, [again])).toEqual([]);
});

test("a lookback finds what came within it, the oldest first, page by page", async () => {
  const { db } = database;
  const early = await publish();
  await publish({ pattern: "thing" });
  const [first, second, third] = [
    await publish({ payload: { n: 1 } }),
    await publish({ payload: { n: 2, deep: { a: "x" } } }),
    await publish({ payload: { n: 1 }, pattern: "thing.else" }),
  ];
  await sql`update events set received_at = now() - interval '1 hour' where id = ${early.id}`.execute(
    db,
  );
  await createWaiting({ lookbackFrom: new Date(Date.now() - 60_000) });
  await createWaiting({ pattern: "thing.*", lookbackFrom: new Date(Date.now() - 60_000) });
  await createWaiting({ pattern: "**", lookbackFrom: new Date(Date.now() - 60_000) });
  const [literal, wild, all] = await waitsNotLookedBack(db, 0, 10);
  if (literal === undefined || wild === undefined || all === undefined) throw new Error("no waits");
  const ids = (events: readonly StoredEvent[]) => events.map(({ id }) => id);

  const page = await findPastEvents(db, literal, { limit: 1 });
  const next = await findPastEvents(db, literal, { after: page[0], limit: 10 });

  expect([...ids(page), ...ids(next)]).toEqual([first.id, second.id]);
  expect(ids(await findPastEvents(db, wild, { limit: 10 }))).toEqual([
    first.id,
    second.id,
    third.id,
  ]);
  expect(await findPastEvents(db, all, { limit: 10 })).toHaveLength(4);
  const equal = (path: string[], value: Json) =>
    findPastEvents(db, wild, { limit: 10, equalities: [{ path, value }] });
  expect(ids(await equal(["n"], 1))).toEqual([first.id, third.id]);
  expect(ids(await equal(["deep", "a"], "x"))).toEqual([second.id]);

  await markLookedBack(db, literal);
  expect(await waitsNotLookedBack(db, 0, 10)).toHaveLength(2);
});

test("patterns of a lookback match as patterns of waits do", async () => {
  const { db } = database;
  const names = ["a", "a.b", "a.b.c", "ab.c", "a_b.c", "axb.c", "a+b.c"];
  for (const pattern of names) await publish({ pattern });
  const heard = async (pattern: string) => {
    await sql`truncate waits`.execute(db);
    await createWaiting({ pattern, lookbackFrom: new Date(0) });
    const [wait] = await waitsNotLookedBack(db, 0, 1);
    if (wait === undefined) throw new Error("no wait");
    return (await findPastEvents(db, wait, { limit: 20 })).map((event) => event.pattern);
  };

  expect(await heard("a.**")).toEqual(["a", "a.b", "a.b.c"]);
  expect(await heard("a.*")).toEqual(["a.b"]);
  expect(await heard("*.c")).toEqual(["ab.c", "a_b.c", "axb.c", "a+b.c"]);
  expect(await heard("a_b.*")).toEqual(["a_b.c"]);
  expect(await heard("a+b.*")).toEqual(["a+b.c"]);
  expect(await heard("*.b.**")).toEqual(["a.b", "a.b.c"]);
});

test("the event that started an instance is never delivered to it", async () => {
  const { db } = database;
  const event = await publish();
  const snapshot = await createWaiting({ lookbackFrom: new Date(0) }, { startEventId: event.id });
  const [wait] = await openLookbacks(db, { tenantId, instanceId: snapshot.id });

  expect(wait && (await findPastEvents(db, wait, { limit: 10 }))).toEqual([]);
  expect(await waitsOf(db, event)).toEqual([]);
});

test("an event that goes to one wait goes to one, though all ask at once", async () => {
  const { db } = database;
  await Promise.all(Array.from({ length: 10 }, () => createWaiting({ deliver: "ONE" })));
  const event = await publish();
  const found = await waitsOf(db, event);

  const taken = await Promise.all(found.map((wait) => takeOne(db, event, wait)));

  expect(taken.filter(Boolean)).toHaveLength(1);
  const winner = found[taken.indexOf(true)];
  expect(await waitsOf(db, event)).toHaveLength(9);
  const { rows } = await sql<{ taken_at: string }>`
    select taken_at::text from events where id = ${event.id}`.execute(db);
  const release = {
    tenantId,
    instanceId: winner?.instanceId ?? "",
    eventId: event.id,
    takenAt: rows[0]?.taken_at ?? "",
  };
  expect(await takeBack(db, release)).toMatchObject({ id: event.id, takenBy: null });
  const next = found.find((wait) => wait !== winner);
  expect(next && (await takeOne(db, event, next))).toBe(true);
  // What is handed on is not taken away from whoever has it then.
  expect(await takeBack(db, release)).toBeUndefined();
  expect(await takeBack(db, { ...release, instanceId: next?.instanceId ?? "" })).toBeUndefined();
});

test("of two who match an event the waits add up, and the instances that it starts are the same", async () => {
  const { db } = database;
  const { id } = await publish();
  const found = { tenantId, id, delivered: 1, cancelled: 1, started: 1 };

  await settleEvents(db, [found]);
  const [counts] = await settleEvents(db, [found]);

  expect(counts).toEqual({ delivered: 2, cancelled: 2, started: 1 });
});

test("the inbox has cancels first, then the order of the matches", async () => {
  const { db } = database;
  const snapshot = await create(
    db,
    firstCommit(blank(), {
      inserts: [],
      commands: [
        openWait("b", "one"),
        openWait("a", "two"),
        openWait("$cancel", "stop", { purpose: "CANCEL", stepId: null }),
      ],
    }),
  );
  for (const pattern of ["one", "two"]) {
    const event = await publish({ pattern });
    await markMatched(db, event, await waitsOf(db, event));
  }
  const stop = await publish({ pattern: "stop" });
  await markMatched(db, stop, await waitsOf(db, stop, undefined, { purpose: "CANCEL" }));

  const inbox = await loadInbox(db, { tenantId, instanceId: snapshot.id });

  expect(inbox.map(({ path }) => path)).toEqual(["$cancel", "b", "a"]);
  expect(inbox[0]).toMatchObject({ purpose: "CANCEL", event: { id: stop.id, pattern: "stop" } });
});

test("what a crash left between two halves is found after a moment", async () => {
  const { db } = database;
  const snapshot = await createWaiting({ lookbackFrom: new Date() });
  const event = await publish();

  expect(await unmatchedEvents(db, 60_000, 10)).toEqual([]);
  expect(await unmatchedEvents(db, 0, 10)).toMatchObject([{ id: event.id }]);
  expect(await waitsNotLookedBack(db, 0, 10)).toMatchObject([{ instanceId: snapshot.id }]);
  await markMatched(db, event, await waitsOf(db, event));
  await settleEvents(db, [{ tenantId, id: event.id, delivered: 1, cancelled: 0, started: 0 }]);
  expect(await unmatchedEvents(db, 0, 10)).toEqual([]);
  expect(await waitsNotLookedBack(db, 0, 10)).toEqual([]);
  expect(await unappliedMatches(db, 60_000, 10)).toEqual([]);
  expect(await unappliedMatches(db, 0, 10)).toEqual([
    {
      tenantId,
      instanceId: snapshot.id,
      eventId: event.id,
      matchedAt: expect.any(Date),
      place: expect.any(Array),
    },
  ]);
});

test("what is asked for in parts comes once each, whatever stays where it is, also of one moment", async () => {
  const { db } = database;
  const snapshots: Snapshot[] = [];
  for (let n = 0; n < 3; n++) {
    snapshots.push(await createWaiting({ lookbackFrom: new Date() }));
    await publish();
  }
  const waits = await inParts((after) => waitsNotLookedBack(db, 0, 1, after));
  await sql`update waits set matched_event_id = 'e', matched_at = now()`.execute(db);
  await sql`update events set received_at = now() - interval '1 minute'`.execute(db);
  await sql`insert into event_releases (tenant_id, instance_id, event_id, taken_at, released_at)
    select tenant_id, instance_id, 'e', now(), now() from waits`.execute(db);

  const events = await inParts((after) => unmatchedEvents(db, 0, 1, after));
  const matches = await inParts((after) => unappliedMatches(db, 0, 1, after));
  const releases = await inParts((after) => releasesLeft(db, 0, 1, after));

  const ids = snapshots.map(({ id }) => id).toSorted();
  const idsOf = (found: readonly { instanceId: string }[]) =>
    found.map(({ instanceId }) => instanceId).toSorted();
  expect([idsOf(waits), idsOf(matches), idsOf(releases)]).toEqual([ids, ids, ids]);
  expect(new Set(events.map(({ id }) => id)).size).toBe(3);
  expect(events).toHaveLength(3);
});

async function inParts<Item extends Placed>(
  find: (after: RowPlace | undefined) => Promise<readonly Item[]>,
): Promise<readonly Item[]> {
  const items: Item[] = [];
  for (let part = 0; part < 10; part++) {
    const found = await find(items.at(-1)?.place);
    if (found.length === 0) return items;
    items.push(...found);
  }
  throw new Error("the parts come to no end");
}

test("a wait and an event that are committed at the same time meet: none is lost", async () => {
  const { db } = database;
  const pairs = 300;
  const found: number[] = [];

  for (let round = 0; round < pairs; round += 10) {
    await Promise.all(
      Array.from({ length: 10 }, async (_each, index) => {
        const pattern = `pair.${round + index}`;
        const lookbackFrom = new Date(Date.now() - 60_000);
        const first = firstCommit(blank(), {
          inserts: [],
          commands: [openWait("w", pattern, { lookbackFrom })],
        });
        const key = { tenantId, instanceId: first.previous.id };
        const opener = async () => {
          await create(db, first);
          for (const wait of await openLookbacks(db, key)) {
            for (const event of await findPastEvents(db, wait, { limit: 10 })) {
              await markMatched(db, event, [wait]);
            }
          }
        };
        const publisher = async () => {
          const event = await publish({ pattern });
          await markMatched(db, event, await waitsOf(db, event));
        };
        await Promise.all([opener(), publisher()]);
        found.push((await loadInbox(db, key)).length);
      }),
    );
  }

  expect(found).toEqual(Array.from({ length: pairs }, () => 1));
});

async function createWaiting(
  wait: Parameters<typeof openWait>[2] = {},
  fields: Partial<Snapshot> = {},
): Promise<Snapshot> {
  const { pattern = "thing.happened" } = wait ?? {};
  return create(
    database.db,
    firstCommit(blank(fields), {
      inserts: [
        execution("w", { type: "EVENT_WAIT", status: "WAITING", taskId: null, queue: null }),
      ],
      commands: [openWait("w", pattern, wait)],
    }),
  );
}

async function publish(fields: Partial<NewEvent> = {}): Promise<StoredEvent> {
  const [stored] = await insertEvents(database.db, [newEvent(fields)]);
  if (stored === undefined || stored === "duplicate") throw new Error("the event was not stored");
  return stored;
}

test("an event that two have looked for counts what both have found", async () => {
  const { db } = database;
  const event = await publish();

  const counts = [];
  for (const delivered of [2, 3]) {
    const found = { delivered, cancelled: 1, started: 0 };
    counts.push(...(await settleEvents(db, [{ tenantId, id: event.id, ...found }])));
  }

  expect(counts).toEqual([
    { delivered: 2, cancelled: 1, started: 0 },
    { delivered: 5, cancelled: 2, started: 0 },
  ]);
});
