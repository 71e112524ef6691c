import { eventually } from "@millrace/testkit";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openTestApi, type TestApi, waiting } from "./support.ts";

// One verb on many instances.

let api: TestApi;
beforeAll(async () => {
  api = await openTestApi({ isWorking: true });
});
afterAll(() => api.close());

/** Instances of a definition of their own, that all wait, in the order of their ids. */
async function waitingOnes(workflowId: string, count: number): Promise<readonly string[]> {
  await api.call("PUT", `/v1/definitions/${workflowId}`, { ...waiting, id: workflowId });
  const items = Array.from({ length: count }, (_, order) => ({ workflowId, input: { order } }));
  const { body } = await api.call("POST", "/v1/instances:batch", { items });
  const ids = sorted(body.results.map(({ instance }: { instance: { id: string } }) => instance.id));
  await eventually("all wait", async () => (await statusesOf(ids)).every(isWaiting));
  return ids;
}

const sorted = (ids: readonly string[]) => ids.toSorted((a, b) => a.localeCompare(b));

const isWaiting = (status: string) => status === "WAITING_FOR_EVENT";

async function statusesOf(ids: readonly string[]): Promise<readonly string[]> {
  const { body } = await api.call("GET", `/v1/instances?ids=${ids.join(",")}&order=createdAt`);
  return body.items.map(({ status }: { status: string }) => status);
}

const bulk = async (body: object, headers?: Record<string, string>) =>
  api.call("POST", "/v1/instances:bulk", body, headers);

test("what matches is paused, resumed and cancelled, the oldest first, page by page", async () => {
  const ids = await waitingOnes("many", 7);
  const filter = { workflowId: "many" };

  const dry = await bulk({ action: "pause", filter, dryRun: true });
  const untouched = await statusesOf(ids);
  const first = await bulk({ action: "pause", filter, limit: 5, reason: "a look" });
  const second = await bulk({ action: "pause", filter, cursor: first.body.nextCursor });
  const paused = await statusesOf(ids);
  const resumed = await bulk({ action: "resume", filter: { ids: ids.slice(0, 3) } });
  const some = await bulk({ action: "cancel", filter: { ...filter, status: ["PAUSED"] } });
  const rest = await bulk({ action: "cancel", filter, requestedBy: "ann", reason: "no more" });
  const again = await bulk({ action: "cancel", filter });

  expect(dry).toMatchObject({ status: 200, body: { dryRun: true, matched: 7, ids } });
  expect(untouched.every(isWaiting)).toBe(true);
  expect(first.body).toMatchObject({
    action: "pause",
    dryRun: false,
    matched: 5,
    succeeded: 5,
    refused: 0,
    ids: ids.slice(0, 5),
    refusals: [],
  });
  expect(second.body).toMatchObject({ succeeded: 2, ids: ids.slice(5), nextCursor: null });
  expect(new Set(paused)).toEqual(new Set(["PAUSED"]));
  expect(resumed.body.ids).toEqual(ids.slice(0, 3));
  expect(some.body.ids).toEqual(ids.slice(3));
  expect(rest.body.ids).toEqual(ids.slice(0, 3));
  expect(again.body).toMatchObject({ matched: 0, ids: [], nextCursor: null });
  const { body } = await api.call("GET", `/v1/instances/${ids[0]}`);
  expect(body).toMatchObject({
    status: "CANCELLED",
    cancellation: { reason: "no more", requestedBy: "ann", source: "API" },
  });
});

test("FAILED ones are retried, and given up only where they are named", async () => {
  await api.call("PUT", "/v1/definitions/broken", {
    id: "broken",
    steps: [{ stepId: "fall", type: "TASK", taskId: "fail", retry: { maxAttempts: 1 } }],
  });
  const started = await Promise.all(
    [1, 2].map(() => api.call("POST", "/v1/instances", { workflowId: "broken" })),
  );
  const ids = sorted(started.map(({ body }) => body.id));
  const haveFailed = (version: number) => async () => {
    const { body } = await api.call("GET", "/v1/instances?workflowId=broken&status=FAILED");
    return body.items.filter((each: { version: number }) => each.version > version).length === 2;
  };
  await eventually("both failed", haveFailed(1));
  const filter = { workflowId: "broken" };
  const { body: before } = await api.call("GET", "/v1/instances?workflowId=broken");

  const cancelled = await bulk({ action: "cancel", filter });
  const retried = await bulk({ action: "retry", filter });
  const latest = Math.max(...before.items.map((each: { version: number }) => each.version));
  await eventually("both failed again", haveFailed(latest + 1));
  const abandoned = await bulk({ action: "cancel", filter: { ...filter, status: "FAILED" } });

  expect(cancelled.body.matched).toBe(0);
  expect(retried.body.ids).toEqual(ids);
  expect(abandoned.body.ids).toEqual(ids);
  expect(await statusesOf(ids)).toEqual(["CANCELLED", "CANCELLED"]);
});

test("one that is refused is told, and holds up no other", async () => {
  const ids = await waitingOnes("lost", 3);
  const { db } = api.services.database;
  // Its definition is not stored any more, so that nothing can be decided about it.
  await db
    .updateTable("workflow_instances")
    .set({ workflow_version: 9 })
    .where("id", "=", ids[1] ?? "")
    .execute();

  const answer = await bulk({ action: "pause", filter: { workflowId: "lost" } });

  expect(answer.body).toMatchObject({ matched: 3, succeeded: 2, refused: 1 });
  expect(answer.body.ids).toEqual([ids[0], ids[2]]);
  const { body: alone } = await api.call("POST", `/v1/instances/${ids[1]}/pause`);
  const { code, detail, status } = alone;
  expect(answer.body.refusals).toMatchObject([{ id: ids[1], problem: { code, detail, status } }]);
  expect(status).toBe(409);
});

test("filters are those of a list, variables as JSON; other tenants are out of reach", async () => {
  const ids = await waitingOnes("filtered", 3);
  const { body } = await api.call("GET", `/v1/instances/${ids[1]}`);
  const patch = { state: { variables: { total: 7, a: { b: "x" } } } };
  await api.call("PATCH", `/v1/instances/${ids[1]}`, patch, { "if-match": `"${body.version}"` });
  const found = async (filter: object, headers?: Record<string, string>) =>
    (await bulk({ action: "cancel", filter, dryRun: true }, headers)).body.ids;
  const workflowId = "filtered";

  expect(await found({ workflowId, variables: { total: 7 } })).toEqual([ids[1]]);
  expect(await found({ workflowId, variables: { "a.b": "x" } })).toEqual([ids[1]]);
  expect(await found({ workflowId, variables: { total: "7" } })).toEqual([]);
  expect(await found({ workflowId, currentStep: "pay", waitingFor: "paid" })).toEqual(ids);
  expect(await found({ workflowId, status: "COMPLETED" })).toEqual([]);
  expect(await found({ workflowId }, { "millrace-tenant": "acme" })).toEqual([]);
  expect(await found({ ids }, { "millrace-tenant": "acme" })).toEqual([]);
});

test("a bad request is refused whole, with all that is wrong", async () => {
  const bad = await bulk({
    action: "delete",
    filter: { workflow: "x", status: ["GONE"] },
    limit: 0,
  });
  const noFilter = await bulk({ action: "cancel" });
  const cursor = await bulk({ action: "cancel", filter: {}, cursor: "nonsense" });
  const names = Array.from({ length: 30_000 }, (_, index) => [`v${index}`, index]);
  const many = await bulk({ action: "cancel", filter: { variables: Object.fromEntries(names) } });
  const acme = { "millrace-tenant": "acme" };
  const tenants = await bulk({ action: "cancel", filter: { tenantId: "other" } }, acme);

  expect(bad.status).toBe(400);
  expect(sorted(bad.body.errors.map(({ path }: { path: string }) => path))).toEqual([
    "/action",
    "/filter/status/0",
    "/filter/workflow",
    "/limit",
  ]);
  expect(noFilter.body.errors).toMatchObject([{ path: "/filter" }]);
  expect(cursor.body.code).toBe("INVALID_CURSOR");
  expect(many).toMatchObject({ status: 400, body: { errors: [{ path: "/filter/variables" }] } });
  expect(tenants.body.errors).toMatchObject([{ path: "/filter/tenantId" }]);
});
