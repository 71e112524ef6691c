import type { LimitView } from "@millrace/contract";
import { afterEach, expect, test } from "vitest";
import { type FakeApi, openFakeApi } from "./fake-api.ts";
import { millrace } from "./streams.ts";

let api: FakeApi | undefined;
afterEach(async () => {
  await api?.close();
  api = undefined;
});

async function against(args: readonly string[], body: unknown) {
  api = await openFakeApi(() => ({ body }));
  return millrace(["limits", ...args], { environment: { MILLRACE_API: api.url } });
}

const limit: LimitView = {
  id: "type:order",
  kind: "TYPE",
  workflowId: "order",
  userId: null,
  source: "SET",
  limit: 10,
  queue: "FIFO",
  maxQueued: null,
  usage: { held: 9, queued: 3 },
  version: 1,
  createdAt: "2026-01-31T12:00:00.000Z",
  updatedAt: "2026-01-31T12:00:00.000Z",
};

test("limits lists them with what is held and queued", async () => {
  const ran = await against([], { items: [limit], nextCursor: null });

  expect(ran.exitCode).toBe(0);
  expect(ran.stdout).toMatch(/type:order +10 +9 +3 +– +FIFO +SET/);
  expect(api?.exchanges.map(({ path }) => path)).toEqual(["/v1/limits?limit=50"]);
});

test("limits set and rm name the limit, and set says how far it goes", async () => {
  const set = await against(["set", "user:ada b", "5", "--max-queued", "7"], limit);
  expect(set.exitCode).toBe(0);
  expect(api?.exchanges).toMatchObject([
    { method: "PUT", path: "/v1/limits/user%3Aada%20b", body: { limit: 5, maxQueued: 7 } },
  ]);
  await api?.close();

  const deleted = await against(["rm", "tenant"], {});
  expect(deleted.stdout).toContain("limit tenant is deleted");
  expect(api?.exchanges).toMatchObject([{ method: "DELETE", path: "/v1/limits/tenant" }]);
});

test("limits names the verbs that it knows, and asks for what is missing", async () => {
  const runs = [
    await against(["sett", "tenant", "5"], {}),
    await against(["set"], {}),
    await against(["set", "tenant"], {}),
    await against(["set", "tenant", "many"], {}),
  ];

  expect(runs.map(({ exitCode }) => exitCode)).toEqual([2, 2, 2, 2]);
  expect(runs[0]?.stderr).toContain("did you mean set?");
  expect(runs[1]?.stderr).toContain("needs the id");
});
