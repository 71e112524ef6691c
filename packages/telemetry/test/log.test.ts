import { expect, test } from "vitest";
import { createLog, type LogLevel, withContext } from "../src/log.ts";

function capture(level: LogLevel = "info") {
  const lines: string[] = [];
  const log = createLog({
    level,
    name: "test",
    destination: { write: (line) => lines.push(line) },
  });
  const last = (): Record<string, unknown> => JSON.parse(lines.at(-1) ?? "{}");
  return { log, lines, last };
}

test("a line is one JSON object with level, ISO time, name, message and fields", () => {
  const { log, lines, last } = capture();

  log.info({ count: 3 }, "jobs added");

  expect(lines).toHaveLength(1);
  expect(last()).toMatchObject({ level: "info", name: "test", msg: "jobs added", count: 3 });
  expect(last()["time"]).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
});

test("lines below the level are not written", () => {
  const { log, lines } = capture("warn");
  log.info({}, "no");
  log.warn({}, "yes");
  expect(lines).toHaveLength(1);
});

test("a child carries its ids on every line", () => {
  const { log, last } = capture();
  const child = withContext(log, { instanceId: "i1", stepId: "ship", attempt: 2, requestId: "r1" });

  child.warn({ durationMs: 5 }, "attempt failed");

  expect(last()).toMatchObject({ instanceId: "i1", stepId: "ship", attempt: 2, requestId: "r1" });
});

test("secrets do not show, wherever they stand", () => {
  const { log, lines } = capture();
  const secret = "hunter2";
  const url = `postgres://millrace:${secret}@db:5432/millrace`;
  const cause = Object.assign(new Error(`refused by ${url}`), {
    command: { name: "auth", args: [secret] },
    password: secret,
  });
  log.info({ password: secret, databaseUrl: url, redisUrl: `redis://:${secret}@redis` }, "a");
  log.info({ settings: { deep: [{ api_key: secret, accessToken: secret }] } }, "b");
  log.info({ headers: { authorization: `Bearer ${secret}`, cookie: secret } }, "c");
  log.error({ err: new Error("no luck", { cause }) }, "d");
  log.error({ error: cause, errors: [cause] }, "e");
  log.error(cause);
  log.error({ err: new AggregateError([cause], "all failed") }, "f");
  log.info({}, `connecting to ${url}`);
  log.info(`connecting to ${url}`);
  log.info({ req: { method: "GET", url: `/x?u=${url}`, headers: { "x-api-key": secret } } }, "g");

  expect(lines).toHaveLength(10);
  expect(lines.join("\n")).not.toContain(secret);
  expect(lines[0]).toContain("postgres://millrace:***@db:5432/millrace");
});

test("what is no secret stays readable", () => {
  const { log, last } = capture();
  log.info(
    { idempotencyKey: "k1", limitKey: "tenant:a", url: "http://api:8080/v1", none: null },
    "a",
  );
  expect(last()).toMatchObject({
    idempotencyKey: "k1",
    limitKey: "tenant:a",
    url: "http://api:8080/v1",
    none: null,
  });
});

test("an error is written with type, message, stack, cause and its plain fields", () => {
  const { log, last } = capture();
  const cause = new TypeError("not a number");
  const error = Object.assign(new Error("charge failed", { cause }), {
    code: "CHARGE",
    retryable: true,
    connection: { huge: true },
  });

  log.error({ err: error }, "step failed");

  expect(last()["err"]).toMatchObject({
    type: "Error",
    message: "charge failed",
    code: "CHARGE",
    retryable: true,
    cause: { type: "TypeError", message: "not a number" },
  });
  expect(last()["err"]).not.toHaveProperty("connection");
});

const throwing = () => {
  throw new Error("not to be read");
};

test.each<[string, object]>([
  ["a member", Object.defineProperty({}, "x", { enumerable: true, get: throwing })],
  ["everything", new Proxy({}, { get: throwing, ownKeys: throwing, getPrototypeOf: throwing })],
  [
    "toJSON",
    {
      inner: new (class {
        toJSON = throwing;
      })(),
    },
  ],
  ["the message of an error", Object.defineProperty(new Error("x"), "message", { get: throwing })],
])("to log what throws where %s is read is a line, not an error", (_, hostile) => {
  const { log, lines, last } = capture();

  log.info(hostile, "before");
  log.error(hostile);
  log.error({ err: hostile, step: hostile }, "after");

  expect(lines).toHaveLength(3);
  expect(last()).toMatchObject({ level: "error", msg: "after" });
});

test("an error whose message is no text is written as any other", () => {
  const { log, last } = capture();
  const error = Object.assign(new Error("x"), { message: { code: 5 } });

  log.error(error);
  expect(last()).toMatchObject({ msg: '{"code":5}', err: { message: '{"code":5}' } });
});

test("fields that refer to themselves do not hang the logger", () => {
  const { log, lines } = capture();
  const loop: Record<string, unknown> = {};
  loop["self"] = loop;
  log.info({ loop }, "round and round");
  expect(lines[0]).toContain("too deep");
});
