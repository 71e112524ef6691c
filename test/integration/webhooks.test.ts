import { createHmac } from "node:crypto";
import { createServer } from "node:http";
import type { IncomingHttpHeaders, Server } from "node:http";
import type { AddressInfo } from "node:net";
import { runScheduler } from "@millrace/runtime";
import type { RunningScheduler } from "@millrace/runtime";
import { eventually as asking } from "@millrace/testkit";
import { sql } from "kysely";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { openTestApi, type TestApi } from "./api/support.ts";

// Lifecycle events that are sent to webhooks, by two schedulers that may reach this machine alone.

let api: TestApi;
let schedulers: RunningScheduler[];
let receiver: Server;
let url: string;

interface Received {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  // What a body holds is what the test is about.
  // oxlint-disable-next-line typescript/no-explicit-any
  readonly body: any;
}

/** What any other test has under way on this server holds the history up. */
const eventually: typeof asking = (what, check) => asking(what, check, { timeoutMs: 30_000 });

const received: Received[] = [];
/** By path: what is answered, instead of 204. */
const answers = new Map<string, number | "nothing">();

beforeAll(async () => {
  receiver = createServer((request, response) => {
    let text = "";
    request.on("data", (chunk: Buffer) => (text += chunk.toString()));
    request.on("end", () => {
      const { url: path = "", headers } = request;
      received.push({ path, headers, text, body: JSON.parse(text) });
      const answer = answers.get(path) ?? 204;
      if (answer !== "nothing") response.writeHead(answer, { location: "/elsewhere" }).end();
    });
  });
  await new Promise<void>((resolve) => receiver.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}`;
  api = await openTestApi();
  const options = { httpAllow: ["127.0.0.1"] };
  schedulers = [
    await runScheduler(api.services, options),
    await runScheduler(api.services, options),
  ];
  for (const [id, outcome] of [
    ["good", "COMPLETED"],
    ["bad", "FAILED"],
  ]) {
    const steps = [{ stepId: "end", type: "END", outcome }];
    await api.call("PUT", `/v1/definitions/${id}`, { id, steps });
  }
});
beforeEach(() => {
  received.length = 0;
  answers.clear();
});
afterAll(async () => {
  for (const scheduler of schedulers ?? []) await scheduler.close();
  receiver?.closeAllConnections();
  receiver?.close();
  await api?.close();
});

async function create(path: string, more: object = {}, headers: Record<string, string> = {}) {
  const { status, body } = await api.call(
    "POST",
    "/v1/webhooks",
    { url: `${url}${path}`, ...more },
    headers,
  );
  expect({ status, body }).toMatchObject({ status: 201 });
  return body;
}

const start = async (workflowId: string): Promise<string> =>
  (await api.call("POST", "/v1/instances", { workflowId })).body.id;
const read = async (id: string) => (await api.call("GET", `/v1/webhooks/${id}`)).body;
const remove = (id: string) => api.call("DELETE", `/v1/webhooks/${id}`);
const at = (path: string) => received.filter((each) => each.path === path);
/** As if the time until the next try were over. */
const hurry = (id: string) =>
  sql`update webhook_deliveries set look_at = now() where webhook_id = ${id}`.execute(
    api.services.database.db,
  );

test("what happens is sent once, as the stream has it, signed, and only what was asked for", async () => {
  const secret = `whsec_${Buffer.from("0123456789abcdef0123456789abcdef").toString("base64")}`;
  const early = await start("bad");
  const all = await create("/all", { secret });
  const some = await create("/some", { types: ["workflow.failed"], workflowIds: ["bad"] });
  const other = await create("/other", {}, { "millrace-tenant": "another" });

  const [good, bad] = [await start("good"), await start("bad")];

  await eventually("the events", () => at("/all").length === 6 && at("/some").length === 1);
  await eventually("the notes", async () => (await read(all.id)).pending === 0);
  const told = at("/all").map(({ body }) => [body.instanceId, body.type]);
  expect(told).toEqual(
    expect.arrayContaining([
      [good, "workflow.started"],
      [good, "workflow.step.completed"],
      [good, "workflow.completed"],
      [bad, "workflow.failed"],
    ]),
  );
  expect(told.map(([id]) => id)).not.toContain(early);
  expect(at("/some")[0]?.body).toMatchObject({
    type: "workflow.failed",
    workflowId: "bad",
    instanceId: bad,
    status: "FAILED",
    oldStatus: "RUNNING",
    at: expect.any(String),
  });
  const [{ headers, text }] = at("/all") as [Received];
  const content = [headers["webhook-id"], headers["webhook-timestamp"], text].join(".");
  const key = Buffer.from(secret.slice(6), "base64");
  const signature = createHmac("sha256", key).update(content).digest("base64");
  expect(headers["webhook-signature"]).toBe(`v1,${signature}`);
  expect(new Set(at("/all").map((each) => each.headers["webhook-id"])).size).toBe(6);
  expect(at("/other")).toEqual([]);
  expect((await api.call("GET", `/v1/webhooks/${other.id}`)).status).toBe(404);
  for (const { id } of [all, some]) await remove(id);
});

test("what is not taken is sent again under its id, and a redirect is not followed", async () => {
  const { id } = await create("/again", { types: ["workflow.completed"] });
  answers.set("/again", 307);

  await start("good");

  await eventually("the first try", async () => (await read(id)).failingSince !== null);
  expect(await read(id)).toMatchObject({ pending: 1, lastFailure: "it answered 307" });
  answers.delete("/again");
  await hurry(id);
  await eventually("the second try", async () => (await read(id)).pending === 0);
  expect(await read(id)).toMatchObject({ status: "ENABLED", failingSince: null });
  const [first, second, ...more] = at("/again");
  expect(more).toEqual([]);
  expect(second?.headers["webhook-id"]).toBe(first?.headers["webhook-id"]);
  expect(second?.text).toBe(first?.text);
  expect(at("/elsewhere")).toEqual([]);
  await remove(id);
});

test("one that is gone, or has long taken nothing, is disabled, and enabled again hears what is new", async () => {
  const gone = await create("/gone", { types: ["workflow.completed"] });
  const silent = await create("/failing", { types: ["workflow.completed"] });
  answers.set("/gone", 410).set("/failing", 500);
  await start("good");
  await eventually("a failure", async () => (await read(silent.id)).failingSince !== null);
  await sql`update webhooks set failing_since = now() - interval '6 d'
    where id = ${silent.id}`.execute(api.services.database.db);

  await hurry(silent.id);

  await eventually("both to be disabled", async () => {
    const [one, two] = [await read(gone.id), await read(silent.id)];
    return one.status === "DISABLED" && two.status === "DISABLED";
  });
  expect(await read(gone.id)).toMatchObject({ disabledReason: "it answered 410", pending: 0 });
  await start("good");
  answers.clear();
  const change = { url: `${url}/new`, types: ["workflow.completed"] };
  const changed = await api.call("PUT", `/v1/webhooks/${gone.id}`, change);
  expect(changed.body).toMatchObject({
    status: "ENABLED",
    disabledReason: null,
    lastFailure: "it answered 410",
  });
  const later = await start("good");
  await eventually("the new event", () => at("/new").length > 0);
  expect(at("/new").map(({ body }) => body.instanceId)).toEqual([later]);
  for (const { id } of [gone, silent]) await remove(id);
});

test("an address that is not public is not connected to, and nobody is told what is there", async () => {
  // This machine by a name that MILLRACE_HTTP_ALLOW does not say.
  const inner = url.replace("127.0.0.1", "[::ffff:127.0.0.2]");
  const webhook = { url: `${inner}/inner`, types: ["workflow.completed"] };
  const { body } = await api.call("POST", "/v1/webhooks", webhook);

  await start("good");

  await eventually("the refusal", async () => (await read(body.id)).lastFailure !== null);
  expect((await read(body.id)).lastFailure).toMatch(/^its address is not one of the public/);
  expect(at("/inner")).toEqual([]);
  await remove(body.id);
});

test("one that does not answer holds up no other", async () => {
  answers.set("/silent", "nothing");
  const silent = await create("/silent", { types: ["workflow.completed"] });
  const quick = await create("/quick", { types: ["workflow.completed"] });

  for (let n = 0; n < 12; n++) await start("good");

  await eventually("all of the other's", () => at("/quick").length === 12);
  expect(at("/silent").length).toBeLessThanOrEqual(10);
  for (const { id } of [silent, quick]) await remove(id);
});

test("the secret is in the answer that makes it, and in no other", async () => {
  const { id, secret } = await create("/secret");

  expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
  const put = await api.call("PUT", `/v1/webhooks/${id}`, { url, secret, status: "DISABLED" });
  const shown = [put.body, await read(id), (await api.call("GET", "/v1/webhooks")).body];
  expect(shown[0]).toMatchObject({ status: "DISABLED", types: ["workflow.**"] });
  expect(JSON.stringify(shown)).not.toContain(secret);
  await remove(id);
  expect((await remove(id)).status).toBe(404);
});

test.each([
  ["no URL", { url: "example.com" }],
  ["a scheme that is none", { url: "ftp://example.com" }],
  ["a password in it", { url: "https://a:b@example.com" }],
  ["a type that nothing has", { url: "https://example.com", types: ["workflow.complete"] }],
  ["a short secret", { url: "https://example.com", secret: "whsec_abc" }],
])("%s is refused", async (_, webhook) => {
  expect((await api.call("POST", "/v1/webhooks", webhook)).status).toBe(400);
});
