import { createServer } from "node:http";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { gzipSync } from "node:zlib";
import type { TaskContext } from "@millrace/sdk";
import type { ZodType } from "zod";
import { afterAll, beforeAll, beforeEach, expect, test, vi } from "vitest";
import { openHttpCaller } from "../src/worker/tasks/http/open-http-caller.ts";
import { httpRequest } from "../src/worker/tasks/http-request.ts";

interface Seen {
  readonly method: string | undefined;
  readonly url: string | undefined;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

const seen: Seen[] = [];
let connections = 0;
let answer: (response: ServerResponse, request: Seen) => void;
const server = createServer((request, response) => {
  void answerTo(request, response);
});
server.on("connection", () => connections++);
let port: number;
let base: string;

async function answerTo(request: IncomingMessage, response: ServerResponse) {
  const { method, url, headers } = request;
  const each = { method, url, headers, body: await text(request) };
  seen.push(each);
  answer(response, each);
}

beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, resolve));
  ({ port } = server.address() as AddressInfo);
  base = `http://127.0.0.1:${port}`;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});
beforeEach(() => {
  seen.length = 0;
  connections = 0;
  answer = (response) => json(response, 200, { ok: true });
});

test("sends JSON as JSON with the key of the execution, and answers status, headers and what it has read", async () => {
  answer = (response) => {
    response.setHeader("x-request-id", "r-1");
    json(response, 201, { id: 7 });
  };

  const result = await run({
    method: "post",
    url: `${base}/orders?q=1`,
    headers: { Authorization: "Bearer s3cret", "X-Tries": 2 },
    body: { item: "book" },
  });

  expect(result).toMatchObject({
    status: 201,
    body: { id: 7 },
    headers: { "x-request-id": "r-1" },
  });
  expect(seen).toMatchObject([
    {
      method: "POST",
      url: "/orders?q=1",
      body: '{"item":"book"}',
      headers: {
        authorization: "Bearer s3cret",
        "content-type": "application/json",
        "idempotency-key": "i-1.step#1",
        "x-tries": "2",
      },
    },
  ]);
});

test("a text is sent as it is, a form where the header says so, and what the headers say holds", async () => {
  const form = "application/x-www-form-urlencoded";
  const own = { "Idempotency-Key": "mine", Accept: "text/csv" };

  await run({ method: "PUT", url: base, body: "a,b" });
  await run({
    method: "POST",
    url: base,
    headers: { "Content-Type": form },
    body: { a: "b c", n: 1 },
  });
  await run({ url: base, headers: own });

  expect(seen[0]).toMatchObject({ body: "a,b", headers: { "content-type": /^text\/plain/ } });
  expect(seen[1]).toMatchObject({ body: "a=b+c&n=1", headers: { "content-type": form } });
  expect(seen[2]?.headers).toMatchObject({ "idempotency-key": "mine", accept: "text/csv" });
});

test.each<[string, (response: ServerResponse) => void, object]>([
  ["a text is text", (r) => plain(r, "text/plain", "hé"), { body: "hé" }],
  ["its charset is heeded", (r) => plain(r, "text/plain; charset=latin1", latin1), { body: "hé" }],
  ["a problem is JSON", (r) => plain(r, "application/problem+json", '{"a":1}'), { body: { a: 1 } }],
  [
    "what is no text is base64",
    (r) => plain(r, "image/png", Buffer.from([137, 0, 255])),
    { body: "iQD/", bodyEncoding: "base64" },
  ],
  ["nothing is null", (r) => r.writeHead(204).end(), { status: 204, body: null }],
  [
    "what is compressed is told plain",
    (r) =>
      r
        .writeHead(200, { "content-type": "application/json", "content-encoding": "gzip" })
        .end(gzipSync('{"a":1}')),
    { body: { a: 1 } },
  ],
])("of an answer, %s", async (_, how, expected) => {
  answer = how;

  expect(await run({ url: base })).toMatchObject(expected);
});

test.each([400, 401, 404, 409, 422])("%i is an error that is not tried again", async (status) => {
  answer = (response) => json(response, status, { reason: "no" });

  expect(await failure({ url: `${base}/orders?token=s3cret`, method: "POST" })).toMatchObject({
    type: "HttpError",
    retryable: false,
    message: expect.stringMatching(`^POST ${base}/orders: ${status} `),
    details: { status, body: { reason: "no" } },
  });
});

test.each([408, 425, 429, 500, 502, 503])("%i is an error that is tried again", async (status) => {
  answer = (response) => {
    response.setHeader("retry-after", "7");
    json(response, status, { reason: "later" });
  };

  expect(await failure({ url: base, circuitBreaker: false })).toMatchObject({
    type: "HttpError",
    retryable: true,
    details: { status, retryAfter: 7 },
  });
});

test("of an error no more than 10,000 bytes are kept", async () => {
  answer = (response) => plain(response, "text/html", "é".repeat(1_000_000), 500);

  const { details } = await failure({ url: base, circuitBreaker: false });

  expect(details).toMatchObject({ status: 500, isBodyCut: true, body: "é".repeat(5_000) });
});

test("an answer that is larger than an output may be fails, also where it is compressed", async () => {
  answer = (response) =>
    response.writeHead(200, { "content-encoding": "gzip" }).end(gzipSync("x".repeat(5_000_000)));

  expect(await failure({ url: base })).toMatchObject({
    type: "PAYLOAD_TOO_LARGE",
    retryable: false,
  });
});

test("one that is larger as JSON than it came is not asked for again either", async () => {
  answer = (response) => plain(response, "text/plain", "\x01".repeat(300_000));

  expect(await failure({ url: base })).toMatchObject({
    type: "PAYLOAD_TOO_LARGE",
    retryable: false,
  });
});

test("what cannot be decoded is an error, and leaves no connection behind", async () => {
  let closed: Promise<void> | undefined;
  answer = (response) => {
    closed = new Promise((resolve) => response.once("close", resolve));
    response.writeHead(200, { "content-encoding": "gzip" }).write("no gzip, and no end of it");
  };

  expect(await failure({ url: base })).toMatchObject({ type: "HttpNetworkError" });
  await closed;
});

test("of a HEAD there are the headers, also of what would be compressed", async () => {
  answer = (response) => response.writeHead(200, { "content-encoding": "gzip", "x-a": "1" }).end();

  expect(await run({ url: base, method: "HEAD" })).toMatchObject({
    status: 200,
    headers: { "x-a": "1" },
    body: null,
  });
});

test("JSON that is none is an error", async () => {
  answer = (response) => plain(response, "application/json", "{");

  expect(await failure({ url: base })).toMatchObject({
    type: "HttpBadResponse",
    retryable: true,
    details: { status: 200, body: "{" },
  });
});

test("nobody at a port is an error that is tried again", async () => {
  const url = `http://127.0.0.1:${await freePort()}`;

  expect(await failure({ url })).toMatchObject({
    type: "HttpNetworkError",
    retryable: true,
    details: { code: "ECONNREFUSED" },
  });
});

test("a host that does not answer in time is an error, also in the midst of its answer", async () => {
  answer = () => {};
  const silent = failure({ url: base, timeout: "PT0.2S" });
  expect(await silent).toMatchObject({ type: "HttpTimeout", retryable: true });

  answer = (response) => void response.writeHead(200).write("begun");
  const begun = failure({ url: base, timeout: "PT0.2S" });
  expect(await begun).toMatchObject({ type: "HttpTimeout", retryable: true });
});

test("the task's signal ends the request", async () => {
  const abort = new AbortController();
  const reason = new Error("cancelled");
  answer = () => abort.abort(reason);

  await expect(run({ url: base }, { signal: abort.signal })).rejects.toBe(reason);
});

test("after five failures in a row a host is left alone, and then tried by one request", async () => {
  vi.useFakeTimers({ toFake: ["Date"] });
  try {
    const { call } = openHttpCaller({ allow: ["127.0.0.1"], maxBytes: 1_000 });
    const ask = () => call(parsed({ url: base }), context());
    const typeOf = async () =>
      (
        await ask().then(
          () => ({ type: "none" }),
          (e) => e,
        )
      ).type;
    const types = async (count: number) => {
      const found: string[] = [];
      for (let i = 0; i < count; i++) found.push(await typeOf());
      return found;
    };
    answer = (response) => json(response, 404, {});
    await types(4);
    answer = (response) => json(response, 500, {});

    expect(await types(7)).toEqual([...Array(5).fill("HttpError"), "CircuitOpen", "CircuitOpen"]);
    expect(await ask().catch((error: unknown) => error)).toMatchObject({ retryable: true });
    expect(seen.length).toBe(9);
    await call(parsed({ url: base, circuitBreaker: false }), context()).catch(() => {});
    expect(seen.length).toBe(10);

    vi.setSystemTime(Date.now() + 11_000);
    expect(await types(2)).toEqual(["HttpError", "CircuitOpen"]);

    vi.setSystemTime(Date.now() + 11_000);
    answer = (response) => json(response, 200, {});
    const together = await Promise.all([typeOf(), typeOf()]);
    expect(together).toEqual(["none", "CircuitOpen"]);
    expect(await types(2)).toEqual(["none", "none"]);
  } finally {
    vi.useRealTimers();
  }
});

test("a tenant whose requests fail keeps no other tenant from the host", async () => {
  const { call } = openHttpCaller({ allow: ["127.0.0.1"], maxBytes: 1_000 });
  answer = (response) => setTimeout(() => json(response, 200, {}), 50);
  const impatient = parsed({ url: base, timeout: "PT0.001S" });
  for (let i = 0; i < 5; i++) await call(impatient, context()).catch(() => {});

  await expect(call(parsed({ url: base }), context())).rejects.toMatchObject({
    type: "CircuitOpen",
  });
  const other = await call(parsed({ url: base }), context(undefined, "other"));
  expect(other.status).toBe(200);
});

test("every fault of an input is named, and no value of a header", () => {
  const { error } = input().safeParse({
    method: "CONNECT",
    url: "ftp://example.com",
    headers: { Host: "other", "bad name": "x", Authorization: "s3cret\n" },
    timeout: "P1D",
    hedaers: {},
  });

  const paths = error?.issues.map(({ path }) => path.join("."));
  expect(paths?.toSorted()).toEqual([
    "",
    "headers.Authorization",
    "headers.Host",
    "headers.bad name",
    "method",
    "timeout",
    "url",
  ]);
  expect(JSON.stringify(error)).not.toContain("s3cret");
  expect(input().safeParse({ url: "https://user:s3cret@example.com" }).error?.issues).toMatchObject(
    [{ path: ["url"], message: "must hold no credentials: they belong into a header" }],
  );
});

test("C85: what leads to a private address is refused before anything connects, in words, and not tried again", async () => {
  const hosts = [
    "127.0.0.1",
    "127.1",
    "0x7f000001",
    "2130706433",
    "0",
    "[::1]",
    "[::]",
    "[::ffff:127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "localhost",
    "localhost.",
    "LOCALHOST",
    "x.localhost",
    "169.254.169.254",
    "10.0.0.1",
  ];

  const urls = [...hosts.map((host) => `http://${host}:${port}/`), "https://127.0.0.1/"];

  const refused = await Promise.all(urls.map((url) => failure({ url }, { allow: [] })));
  expect(refused).toMatchObject(
    urls.map(() => ({
      type: "HttpAddressRefused",
      retryable: false,
      message: expect.stringContaining("MILLRACE_HTTP_ALLOW"),
    })),
  );
  expect(connections).toBe(0);
});

test("C85: a host that is named is let through, and another name of its address is not", async () => {
  const allow = ["localhost"];

  expect(await run({ url: `http://localhost:${port}` }, { allow })).toMatchObject({ status: 200 });
  expect(await failure({ url: base }, { allow })).toMatchObject({ type: "HttpAddressRefused" });
});

test("C85: a name that comes to lead elsewhere is refused when it does", async () => {
  const addresses = ["127.0.0.2", "127.0.0.1"];
  const { call } = openHttpCaller({
    allow: ["127.0.0.2"],
    maxBytes: 1_000,
    resolve: (_host, _options, callback) =>
      callback(null, [{ address: addresses.shift() ?? "", family: 4 }]),
  });
  answer = (response) => json(response.setHeader("connection", "close"), 200, {});
  const ask = async () => call(parsed({ url: `http://shop.example.com:${port}` }), context());

  expect(await ask()).toMatchObject({ status: 200 });
  await expect(ask()).rejects.toMatchObject({ type: "HttpAddressRefused" });
  expect(connections).toBe(1);
});

test("C85: a redirect to what is not allowed is refused", async () => {
  answer = (response) =>
    response.writeHead(302, { location: `http://127.0.0.2:${port}/secret` }).end();

  expect(await failure({ url: base })).toMatchObject({ type: "HttpAddressRefused" });
  expect(seen.length).toBe(1);
});

test("a GET follows redirects, and takes no header to another host; what changes something follows none", async () => {
  const allow = ["127.0.0.1", "localhost"];
  const headers = { authorization: "s3cret", "x-api-key": "s3cret" };
  answer = (response, { url }) => {
    if (url === "/there") return json(response, 200, { arrived: true });
    const location = url === "/" ? "/on" : `http://localhost:${port}/there`;
    return response.writeHead(307, { location }).end();
  };

  expect(await run({ url: base, headers }, { allow })).toMatchObject({ body: { arrived: true } });
  expect(seen[1]?.headers).toMatchObject(headers);
  expect(JSON.stringify(seen[2]?.headers)).not.toContain("s3cret");
  expect(await failure({ url: base, method: "POST" }, { allow })).toMatchObject({
    type: "HttpError",
    retryable: false,
    details: { status: 307, location: "/on" },
  });
});

test("redirects in a circle come to an end", async () => {
  answer = (response) => response.writeHead(302, { location: "/" }).end();

  expect(await failure({ url: base })).toMatchObject({
    type: "HttpError",
    details: { status: 302, location: "/" },
  });
  expect(seen.length).toBe(6);
});

const latin1 = Buffer.from("hé", "latin1");

function json(response: ServerResponse, status: number, body: unknown) {
  plain(response, "application/json", JSON.stringify(body), status);
}

function plain(response: ServerResponse, type: string, body: string | Buffer, status = 200) {
  response.writeHead(status, { "content-type": type }).end(body);
}

interface RunOptions {
  readonly allow?: readonly string[];
  readonly signal?: AbortSignal;
}

/** As a worker does: the input is checked, and then handed to the task. */
async function run(given: unknown, { allow = ["127.0.0.1"], signal }: RunOptions = {}) {
  const task = httpRequest(allow);
  return task.run(context(signal) as TaskContext, parsed(given));
}

async function failure(given: unknown, options?: RunOptions) {
  const error: unknown = await run(given, options).then(
    (result) => expect.fail(`it answered ${JSON.stringify(result)}`),
    (thrown: unknown) => thrown,
  );
  return error as Error & { type: string; details: unknown };
}

function input() {
  const { input: schema } = httpRequest([]);
  return schema as unknown as ZodType<Parameters<Call>[0]>;
}

type Call = ReturnType<typeof openHttpCaller>["call"];

function parsed(given: unknown) {
  return input().parse(given);
}

function context(signal = new AbortController().signal, tenantId = "default") {
  const instance = {
    id: "i-1",
    workflowId: "w",
    workflowVersion: 1,
    correlationId: null,
    tenantId,
  };
  return { idempotencyKey: "i-1.step#1", instance, signal };
}

async function freePort(): Promise<number> {
  const other = createServer();
  await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
  const { port: free } = other.address() as AddressInfo;
  await new Promise((resolve) => other.close(resolve));
  return free;
}
