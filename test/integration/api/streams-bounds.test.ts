import { followAll, followInstance } from "@millrace/runtime";
import type { Batch, Services } from "@millrace/runtime";
import { lastPlace, readChanges, readChangesOf } from "@millrace/store";
import type { ChangePlace } from "@millrace/store";
import { CompiledQuery } from "kysely";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openTestApi, type TestApi, waiting } from "./support.ts";

// What streams may cost, however many there are and whatever they follow.

let api: TestApi;
beforeAll(async () => {
  api = await openTestApi();
  await api.call("PUT", "/v1/definitions/waiting", waiting);
  await api.call("PUT", "/v1/definitions/wide", wide);
});
afterAll(() => api.close());

/** Its first commit has an entry for each item. */
const wide = {
  id: "wide",
  steps: [
    {
      stepId: "each",
      type: "MAP",
      items: "${ input.items }",
      steps: [{ stepId: "wait", type: "EVENT_WAIT", eventPattern: "never" }],
    },
  ],
};

const caller = { tenantId: "default", actor: "test" };

const start = async (workflowId: string, input: object): Promise<string> =>
  (await api.call("POST", "/v1/instances", { workflowId, input })).body.id;

const cursor = (text: string) => Buffer.from(text).toString("base64url");

async function firstBatches<Place>(
  batches: AsyncGenerator<Batch<Place>> | undefined,
  events: number,
): Promise<readonly Batch<Place>[]> {
  const read: Batch<Place>[] = [];
  let count = 0;
  for await (const batch of batches ?? []) {
    read.push(batch);
    count += batch.told.length;
    if (count >= events) break;
  }
  return read;
}

test("a commit with very many entries is handed on in parts, each of which can be gone on from", async () => {
  const place = await lastPlace(api.services.database.db);
  const id = await start("wide", { items: Array.from({ length: 450 }, (_, item) => item) });
  const history = await api.call("GET", `/v1/instances/${id}/history?limit=500`);
  const events = history.body.items.length;
  const { signal } = new AbortController();

  const ofOne = await followInstance(api.services, caller, id, { signal });
  const one = await firstBatches(ofOne, events);
  const all = await firstBatches(
    await followAll(api.services, caller, { after: place, signal }),
    events,
  );
  const [part] = one;
  const after = part?.place;
  const again = await followInstance(api.services, caller, id, { after, signal });
  const rest = await firstBatches(again, events - 100);

  expect(events).toBeGreaterThan(400);
  for (const batches of [one, all]) {
    expect(Math.max(...batches.map(({ told }) => told.length))).toBeLessThanOrEqual(100);
    expect(batches.flatMap(({ told }) => told.map(({ event }) => event.path))).toEqual(
      history.body.items.map((item: { path?: string }) => item.path),
    );
  }
  const placesOf = (batches: typeof one) =>
    batches.flatMap(({ told }) => told.map((each) => each.place));
  expect(placesOf(rest)).toEqual(placesOf(one).slice(100));
});

test("many who follow one instance from the same place have what was read once", async () => {
  const { db } = api.services.database;
  const id = await start("waiting", { order: 1 });
  const other = await start("waiting", { order: 2 });
  const asked = (instanceId: string, afterVersion = 0) => ({
    tenantId: "default",
    instanceId,
    afterVersion,
  });

  const [first, apart, second, ahead] = await readChangesOf(
    db,
    [asked(id), asked(other), asked(id), asked(id, 99)],
    10,
  );

  expect(second).toBe(first);
  expect(first?.map(({ instanceId }) => instanceId)).toContain(id);
  expect(new Set(apart?.map(({ instanceId }) => instanceId))).toEqual(new Set([other]));
  expect(ahead).toEqual([]);
});

test("a stream reads the history of an instance, and nothing of its state", async () => {
  const { db } = api.services.database;
  const id = await start("waiting", { order: 3 });
  await db.updateTable("workflow_instances").set({ snapshot: "{}" }).where("id", "=", id).execute();
  const gone = new AbortController();

  const response = await fetch(`${api.url}/v1/instances/${id}/stream`, { signal: gone.signal });
  let text = "";
  for await (const chunk of response.body ?? []) {
    text += Buffer.from(chunk).toString();
    if (text.includes("workflow.step.waiting")) break;
  }
  gone.abort();

  expect(response.status).toBe(200);
});

test("a part of a commit that is not there is no place to go on from", async () => {
  const id = await start("waiting", { order: 4 });
  const { body } = await api.call("POST", `/v1/instances/${id}/cancel`);

  const answer = await api.call(
    "GET",
    `/v1/instances/${id}/stream?lastEventId=${cursor(`h.${body.version}.5.99`)}`,
  );

  expect(answer.body.code).toBe("INVALID_CURSOR");
});

test("while a transaction stands still, what it holds up is looked for less and less", async () => {
  let looks = 0;
  const services: Services = {
    ...api.services,
    feed: async () => {
      looks += 1;
      return { changes: [], isHeldBack: true };
    },
  };
  const gone = new AbortController();
  const after: ChangePlace = { tx: "0", seq: 0 };

  const batches = await followAll(services, caller, { after, signal: gone.signal });
  const reading = firstBatches(batches, Infinity);
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  gone.abort();
  await reading;

  expect(looks).toBeGreaterThan(1);
  expect(looks).toBeLessThan(15);
});

test("what was restored from another server, whose transactions had higher numbers, is waited for by nobody", async () => {
  const { db } = api.services.database;
  const id = await start("waiting", { order: 5 });
  const place = await lastPlace(db);
  await db.executeQuery(
    CompiledQuery.raw("update history set tx = '99999999999' where instance_id = $1", [id]),
  );

  const page = await readChanges(db, place, 10);

  expect(page).toEqual({ changes: [], isHeldBack: false });
});
