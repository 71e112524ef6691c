import { setTimeout as sleep } from "node:timers/promises";
import { runWorker } from "@millrace/runtime";
import { eventually } from "@millrace/testkit";
import { CompiledQuery } from "kysely";
import { expect, test } from "vitest";
import { openTestApi } from "./api/support.ts";

test("a worker that was silent takes one new id, however long the row of the former one is locked", async () => {
  const api = await openTestApi();
  const settings = { tasks: [], queues: ["default"], concurrency: 1, graceMs: 0 };
  const worker = await runWorker(api.services, settings);
  const query = async (text: string) =>
    (await api.services.database.db.executeQuery(CompiledQuery.raw(text))).rows;
  // As a lock does that lasts for so long.
  await query(`create function wait() returns trigger language plpgsql as
    $$ begin perform pg_sleep(5.5); return new; end $$`);
  await query(`create trigger waits before update on workers for each row
    when (new.exit is not null and old.exit is null) execute function wait()`);

  const first = worker.id;
  await query("update workers set beat_at = now() - interval '1 min'");
  await eventually("a new id", () => worker.id !== first);
  const second = worker.id;
  await sleep(6_000);
  const ids = await query("select id from workers where exit is null");

  expect(ids).toEqual([{ id: second }]);
  expect(worker.id).toBe(second);
  await worker.close();
  await api.close();
}, 30_000);
