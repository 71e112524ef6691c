import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { InstanceView } from "@millrace/contract";
import {
  MillraceApiError,
  MillraceClient,
  MillraceConnectionError,
  MillraceWaitTimeoutError,
} from "@millrace/client";

interface Received {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: unknown;
}

type Reply = (request: Received, response: ServerResponse, nth: number) => void;

let server: Server;
let client: MillraceClient;
let received: Received[];
let reply: Reply;

beforeEach(async () => {
  received = [];
  server = createServer((request, response) => {
    void serve(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  client = new MillraceClient({ baseUrl: `${address()}/`, retryDelayMs: 1, timeoutMs: 2_000 });
});

afterEach(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

const document = { id: "w", steps: [{ stepId: "a", type: "TASK" as const, taskId: "noop" }] };
const instance = { id: "i-1", status: "RUNNING", version: 4, compensation: null };
const settled = { ...instance, status: "COMPLETED" };

describe("calls", () => {
  test("calendars are created, put at a version, listed and deleted", async () => {
    const office = { id: "office", timeZone: "Europe/Berlin" };
    reply = (request, response, nth) => {
      if (request.method === "DELETE") response.writeHead(204).end();
      else json(200, office)(request, response, nth);
    };

    await client.calendars.create(office);
    await client.calendars.put(office, { ifMatch: 3 });
    await client.calendars.list({ limit: 2, cursor: "c" });
    await client.calendars.get("office");
    const gone = await client.calendars.delete("office", { ifMatch: 4 });

    expect(gone).toBeUndefined();
    expect(received).toMatchObject([
      { method: "POST", url: "/v1/calendars", body: office },
      { method: "PUT", url: "/v1/calendars/office", body: office, headers: { "if-match": '"3"' } },
      { method: "GET", url: "/v1/calendars?limit=2&cursor=c" },
      { method: "GET", url: "/v1/calendars/office" },
      { method: "DELETE", url: "/v1/calendars/office", headers: { "if-match": '"4"' } },
    ]);
  });

  test("limits are put at a version, listed, read and deleted by what they are called", async () => {
    reply = json(200, { id: "tenant" });

    await client.limits.put("type:w", { limit: 3, queue: "FIFO" }, { ifMatch: 2 });
    await client.limits.list({ limit: 2, cursor: "c" });
    await client.limits.get("user:ada b");
    await client.limits.delete("tenant", { ifMatch: 4 });

    expect(received).toMatchObject([
      {
        method: "PUT",
        url: "/v1/limits/type%3Aw",
        body: { limit: 3, queue: "FIFO" },
        headers: { "if-match": '"2"' },
      },
      { method: "GET", url: "/v1/limits?limit=2&cursor=c" },
      { method: "GET", url: "/v1/limits/user%3Aada%20b" },
      { method: "DELETE", url: "/v1/limits/tenant", headers: { "if-match": '"4"' } },
    ]);
  });

  test("webhooks are created, changed, listed and deleted", async () => {
    const hook = { url: "https://example.com/hook", types: ["workflow.failed"] };
    reply = (request, response, nth) => {
      if (request.method === "DELETE") response.writeHead(204).end();
      else json(200, { id: "h", secret: "whsec_" })(request, response, nth);
    };

    const { secret } = await client.webhooks.create(hook);
    await client.webhooks.put("h", { ...hook, status: "DISABLED" });
    await client.webhooks.list({ limit: 2, cursor: "c" });
    await client.webhooks.get("h");
    const gone = await client.webhooks.delete("h");

    expect({ secret, gone }).toEqual({ secret: "whsec_", gone: undefined });
    expect(received).toMatchObject([
      { method: "POST", url: "/v1/webhooks", body: hook },
      { method: "PUT", url: "/v1/webhooks/h", body: { ...hook, status: "DISABLED" } },
      { method: "GET", url: "/v1/webhooks?limit=2&cursor=c" },
      { method: "GET", url: "/v1/webhooks/h" },
      { method: "DELETE", url: "/v1/webhooks/h" },
    ]);
  });

  test("register posts the document and says whether it made a version", async () => {
    reply = json(201, { id: "w", version: 1, contentHash: "h", warnings: [] });

    const registered = await client.definitions.register(document);

    expect(registered).toEqual({
      id: "w",
      version: 1,
      contentHash: "h",
      warnings: [],
      created: true,
    });
    expect(received).toMatchObject([
      {
        method: "POST",
        url: "/v1/definitions",
        body: document,
        headers: { "content-type": "application/json" },
      },
    ]);
  });

  test("what becomes a document by toJSON can stand for it", async () => {
    reply = json(200, { id: "w", version: 1, contentHash: "h", warnings: [] });

    const registered = await client.definitions.register({ toJSON: () => document });

    expect(registered.created).toBe(false);
    expect(received[0]?.body).toEqual(document);
  });

  test("validate turns an invalid definition into a value", async () => {
    const errors = [{ path: "/id", code: "MISSING_FIELD", message: "m" }];
    reply = problem(422, "INVALID_DEFINITION", { errors });

    expect(await client.definitions.validate(document)).toEqual({ valid: false, problems: errors });
  });

  test("ids are escaped and versions have their own path", async () => {
    reply = json(200, {});

    await client.definitions.get("a/b", { version: 2 });
    await client.definitions.list({ limit: 5, cursor: "c" });

    expect(received.map(({ url }) => url)).toEqual([
      "/v1/definitions/a%2Fb/versions/2",
      "/v1/definitions?limit=5&cursor=c",
    ]);
  });

  test("start sends its idempotency key; changes send the version they rest on", async () => {
    reply = json(202, instance);

    await client.instances.start({ workflowId: "w", input: { a: 1 } }, { idempotencyKey: "k" });
    await client.instances.cancel("i-1", { reason: "no more" }, { ifMatch: 4 });
    await client.instances.resume("i-1");
    await client.instances.promote("i-1", { reason: "late" }, { ifMatch: 4 });
    await client.instances.patch("i-1", { state: { variables: { a: null } } }, { ifMatch: 4 });

    expect(received).toMatchObject([
      {
        url: "/v1/instances",
        headers: { "idempotency-key": "k" },
        body: { workflowId: "w", input: { a: 1 } },
      },
      {
        url: "/v1/instances/i-1/cancel",
        headers: { "if-match": '"4"' },
        body: { reason: "no more" },
      },
      { url: "/v1/instances/i-1/resume", body: {} },
      {
        url: "/v1/instances/i-1/promote",
        headers: { "if-match": '"4"' },
        body: { reason: "late" },
      },
      { method: "PATCH", url: "/v1/instances/i-1", body: { state: { variables: { a: null } } } },
    ]);
    expect(received[2]?.headers["if-match"]).toBeUndefined();
  });

  test("filters become query parameters, variables as JSON", async () => {
    reply = json(200, { items: [], nextCursor: null });

    await client.instances.list({
      status: ["RUNNING", "FAILED"],
      workflowId: "w",
      variables: { "order.id": "o-1", n: 1 },
    });

    const query = new URL(received[0]!.url, address()).searchParams;
    expect(Object.fromEntries(query)).toEqual({
      status: "RUNNING,FAILED",
      workflowId: "w",
      "variables.order.id": '"o-1"',
      "variables.n": "1",
    });
  });

  test("each reads all pages", async () => {
    reply = (_, response, nth) => {
      json(200, { items: [{ id: `i-${nth}` }], nextCursor: nth < 3 ? `c${nth}` : null })(
        _,
        response,
        nth,
      );
    };

    const ids: string[] = [];
    for await (const { id } of client.instances.each({ limit: 1 })) ids.push(id);

    expect(ids).toEqual(["i-1", "i-2", "i-3"]);
    expect(received.map(({ url }) => new URL(url, address()).searchParams.get("cursor"))).toEqual([
      null,
      "c1",
      "c2",
    ]);
  });

  test("events are published one by one and in batches", async () => {
    reply = json(202, { id: "e", duplicate: false, delivered: 1, cancelled: 0, started: 0 });

    const answer = await client.events.publish({ pattern: "a.b", payload: { x: 1 } });
    await client.events.publishBatch([{ pattern: "a.b", payload: null }]);

    expect(answer.delivered).toBe(1);
    expect(received).toMatchObject([
      { url: "/v1/events", body: { pattern: "a.b", payload: { x: 1 } } },
      { url: "/v1/events:batch", body: { items: [{ pattern: "a.b", payload: null }] } },
    ]);
  });

  test("readiness is answered also when the API is not ready", async () => {
    const view = { status: "unavailable", checks: { postgres: { status: "down" } } };
    reply = json(503, view);

    expect(await client.readiness()).toEqual(view);
    expect(received).toHaveLength(1);
  });
});

describe("waiting", () => {
  test("wait polls until the instance is settled, compensation included", async () => {
    const compensating = {
      ...instance,
      status: "CANCELLED",
      compensation: { status: "IN_PROGRESS" },
    };
    const answers = [instance, compensating, settled];
    reply = (request, response, nth) => {
      json(200, answers[nth - 1])(request, response, nth);
    };

    expect(await client.instances.wait("i-1")).toEqual(settled);
    expect(received.map(({ url }) => url)).toEqual(Array(3).fill("/v1/instances/i-1?wait=30"));
  });

  test("wait gives up in time, with the instance as last read", async () => {
    reply = json(200, instance);

    const error = await client.instances.wait("i-1", { timeoutMs: 50 }).catch(same);

    expect(error).toBeInstanceOf(MillraceWaitTimeoutError);
    expect((error as MillraceWaitTimeoutError).instance).toEqual(
      instance as unknown as InstanceView,
    );
  });

  test("an aborted signal ends a wait with its own reason", async () => {
    reply = json(200, instance);
    const controller = new AbortController();
    const waiting = client.instances.wait("i-1", { signal: controller.signal });

    setTimeout(() => controller.abort(new Error("enough")), 20);

    await expect(waiting).rejects.toThrow("enough");
  });

  test("an aborted signal ends a call that hangs", async () => {
    reply = () => undefined;

    await expect(client.health({ signal: AbortSignal.timeout(20) })).rejects.toMatchObject({
      name: "TimeoutError",
    });
  });
});

describe("errors", () => {
  test("a problem is an error with its code, its faults and what it asks for", async () => {
    const errors = [{ path: "/orderId", code: "BAD_VALUE", message: "is required" }];
    reply = problem(422, "INVALID_INPUT", { errors, requestId: "r-1" });

    const error = await client.instances.start({ workflowId: "w" }).catch(same);

    expect(error).toBeInstanceOf(MillraceApiError);
    expect(error).toMatchObject({
      status: 422,
      code: "INVALID_INPUT",
      problem: { errors, requestId: "r-1" },
      message: "Title: what happened (INVALID_INPUT)\n  /orderId: is required",
    });
  });

  test("what a proxy says is an error, too", async () => {
    reply = (_, response) => response.writeHead(413, "Too Big").end("<html>no</html>");

    await expect(client.instances.start({ workflowId: "w" })).rejects.toMatchObject({
      status: 413,
      code: "HTTP_413",
      problem: { title: "Too Big", detail: "<html>no</html>" },
    });
  });

  test("a GET that meets a busy API is tried again; a POST is not", async () => {
    reply = (request, response, nth) => {
      const busy = problem(503, "BUSY", {});
      (nth % 3 === 0 ? json(200, instance) : busy)(request, response, nth);
    };

    expect(await client.instances.get("i-1")).toEqual(instance);
    expect(received).toHaveLength(3);

    await expect(client.instances.cancel("i-1")).rejects.toMatchObject({ code: "BUSY" });
    expect(received).toHaveLength(4);
  });

  test("a GET that is refused is not tried again", async () => {
    reply = problem(404, "INSTANCE_NOT_FOUND", {});

    await expect(client.instances.get("i-1")).rejects.toMatchObject({ code: "INSTANCE_NOT_FOUND" });
    expect(received).toHaveLength(1);
  });

  test("Retry-After is followed and told", async () => {
    reply = (request, response, nth) => {
      response.setHeader("retry-after", "0.2");
      (nth === 1 ? problem(503, "BUSY", {}) : json(200, instance))(request, response, nth);
    };
    const before = performance.now();

    await client.instances.get("i-1");

    expect(performance.now() - before).toBeGreaterThanOrEqual(190);
  });

  test("a connection that breaks is tried again for a GET, and is an error of its own", async () => {
    reply = (request, response, nth) => {
      if (nth === 1 || request.method !== "GET") response.destroy();
      else json(200, instance)(request, response, nth);
    };

    expect(await client.instances.get("i-1")).toEqual(instance);

    const error = await client.instances.cancel("i-1").catch(same);
    expect(error).toBeInstanceOf(MillraceConnectionError);
    expect(error).toMatchObject({ method: "POST", url: `${address()}/v1/instances/i-1/cancel` });
  });

  test("a body that has no JSON form is no trouble of the connection", async () => {
    const input: Record<string, unknown> = { n: 10n };

    const start = client.instances.start({ workflowId: "w", input: input as never });

    await expect(start).rejects.toThrow(/^Do not know how to serialize a BigInt$/);
    expect(received).toEqual([]);
  });

  test("an API that is not there is a connection error that names it", async () => {
    const away = new MillraceClient({ baseUrl: "http://127.0.0.1:1", retryDelayMs: 1 });

    await expect(away.health()).rejects.toThrow(
      /^GET http:\/\/127\.0\.0\.1:1\/healthz: .*(ECONNREFUSED|bad port)/,
    );
  });

  test("an API that does not answer is a connection error after the time given", async () => {
    reply = () => undefined;
    const hasty = new MillraceClient({ baseUrl: address(), timeoutMs: 30, attempts: 1 });

    await expect(hasty.health()).rejects.toThrow("no answer within 30 ms");
  });
});

describe("following", () => {
  const typesOf = async (
    events: AsyncIterable<{ readonly id: string; readonly type: string }>,
  ): Promise<readonly string[]> => {
    const types: string[] = [];
    for await (const { id, type } of events) types.push(`${id} ${type}`);
    return types;
  };
  const lastIds = () => received.map(({ headers }) => headers["last-event-id"]);

  test("whoever is cut off goes on behind the last event, until there is no more", async () => {
    reply = (_, response, nth) => {
      if (nth === 4) response.writeHead(204).end();
      else if (nth === 3) problem(503, "SHUTTING_DOWN", {})(_, response, nth);
      else {
        response.writeHead(200, { "content-type": "text/event-stream" });
        // In pieces that end anywhere, with an id that is no event.
        response.write(`retry: 1000\n\nid: ${nth}a\nevent: t\nda`);
        setTimeout(() => {
          response.write(`ta: {"type":"t${nth}"}\n\nid: ${nth}b\n\nid: ${nth}c\nevent: cut`);
          setTimeout(() => (nth === 1 ? response.destroy() : response.end()), 5);
        }, 5);
      }
    };

    const types = await typesOf(client.instances.follow("i-1", { types: ["t.*", "u"] }));

    expect(types).toEqual(["1a t1", "2a t2"]);
    expect(lastIds()).toEqual([undefined, "1b", "2b", "2b"]);
    expect(received[0]?.url).toBe("/v1/instances/i-1/stream?types=t.*%2Cu");
  });

  test("what is refused is an error at once, and nobody there is one after the usual tries", async () => {
    reply = problem(404, "INSTANCE_NOT_FOUND", {});
    const refused = await typesOf(client.instances.follow("i-1")).catch(same);
    reply = (_, response) => response.destroy();
    const nobody = await typesOf(client.instances.followAll({ lastEventId: "x" })).catch(same);

    expect(refused).toMatchObject({ code: "INSTANCE_NOT_FOUND" });
    expect(nobody).toBeInstanceOf(MillraceConnectionError);
    expect(lastIds()).toEqual([undefined, "x", "x", "x"]);
  });

  test("who stops reading hangs up, and so does an aborted signal", async () => {
    let open = 0;
    reply = (_, response) => {
      open += 1;
      response.once("close", () => (open -= 1));
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write('id: 1\nevent: t\ndata: {"type":"t"}\n\n');
    };

    for await (const event of client.instances.followAll()) {
      expect(event).toEqual({ id: "1", type: "t" });
      break;
    }
    const signal = AbortSignal.timeout(50);
    const aborted = await typesOf(client.instances.followAll({ signal })).catch(same);

    expect(aborted).toBe(signal.reason);
    await expect.poll(() => open).toBe(0);
  });
});

async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const text = Buffer.concat(chunks).toString();
  const { method = "", url = "", headers } = request;
  const one = {
    method,
    url,
    headers,
    body: text === "" ? undefined : (JSON.parse(text) as unknown),
  };
  received.push(one);
  reply(one, response, received.length);
}

function json(status: number, body: unknown): Reply {
  return (_, response) => {
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
  };
}

function problem(status: number, code: string, more: object): Reply {
  const body = {
    type: "about:blank",
    title: "Title",
    status,
    detail: "what happened",
    code,
    ...more,
  };
  return (_, response) => {
    response
      .writeHead(status, { "content-type": "application/problem+json" })
      .end(JSON.stringify(body));
  };
}

function address(): string {
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function same(error: unknown): unknown {
  return error;
}
