import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { parseSettings, type Program, SETTINGS, SettingsError } from "../src/settings.ts";
import { expect, test } from "vitest";

const DATABASE_URL = "postgres://millrace:secret@localhost:5432/millrace";

test("with a database alone everything else has its default", () => {
  expect(parseSettings({ DATABASE_URL }, "api")).toEqual({
    databaseUrl: DATABASE_URL,
    queueBackend: "postgres",
    keyPrefix: "millrace",
    poolSize: 10,
    host: "127.0.0.1",
    port: 8080,
    logLevel: "info",
    concurrency: 50,
    tasks: [],
    queues: ["default"],
    httpAllow: [],
    graceMs: 10_000,
    checksPerMinute: 6,
    unknown: [],
  });
});

test("values are read from their texts, and an empty variable counts as absent", () => {
  const env = {
    DATABASE_URL,
    REDIS_URL: "redis://localhost:6379/1",
    MILLRACE_CONCURRENCY: "8",
    MILLRACE_TASKS: "./tasks, ./more/tasks.mjs,",
    MILLRACE_QUEUES: "default,slow",
    MILLRACE_GRACE: "PT0.5S",
    MILLRACE_METRICS_PORT: "0",
    LOG_LEVEL: "",
  };

  expect(parseSettings(env, "worker")).toMatchObject({
    redisUrl: "redis://localhost:6379/1",
    queueBackend: "redis",
    concurrency: 8,
    tasks: ["./tasks", "./more/tasks.mjs"],
    queues: ["default", "slow"],
    graceMs: 500,
    metricsPort: 0,
    logLevel: "info",
  });
});

test("every problem is named at once, and no password with it", () => {
  const env = {
    DATABASE_URL: "mysql://millrace:hunter2@localhost/x",
    MILLRACE_QUEUE_BACKEND: "redis",
    PORT: "80a",
    LOG_LEVEL: "loud",
    MILLRACE_GRACE: "10s",
    MILLRACE_AUTH: "oidc",
  };

  const { problems, message } = refusal(env);

  expect(problems).toEqual([
    'MILLRACE_AUTH: "oidc" is not none',
    "DATABASE_URL: its value is not a postgres:// URL",
    'PORT: "80a" is not a port; 0 takes a free one',
    'LOG_LEVEL: "loud" is not fatal, error, warn, info, debug, trace or silent',
    'MILLRACE_GRACE: "10s" is not an ISO 8601 duration of at most an hour',
    "REDIS_URL is missing, and MILLRACE_QUEUE_BACKEND says redis",
  ]);
  expect(message).not.toContain("hunter2");
});

test("a worker has at least one process for steps that run alone, and says so beside whatever else is wrong", () => {
  for (const MILLRACE_CELLS of ["0", "-1", "101", "2.5", "two"]) {
    const env = { DATABASE_URL, MILLRACE_CELLS, MILLRACE_CONCURRENCY: "0" };
    expect(() => parseSettings(env, "api")).not.toThrow();
    expect(refusal(env, "worker").problems).toEqual([
      `MILLRACE_CELLS: "${MILLRACE_CELLS}" is not a whole number from 1 to 100`,
      'MILLRACE_CONCURRENCY: "0" is not a whole number from 1 to 1000',
    ]);
  }
  expect(parseSettings({ DATABASE_URL, MILLRACE_CELLS: " 7 " }, "worker").cells).toBe(7);
});

test("MILLRACE_HTTP_ALLOW takes hosts, addresses and ranges, and nothing that would let nobody through", () => {
  const allow = (MILLRACE_HTTP_ALLOW: string) => ({ DATABASE_URL, MILLRACE_HTTP_ALLOW });
  const good = "billing.internal, *.svc.local,localhost,10.0.0.0/8,127.0.0.1,::1,fd00::/8";

  expect(parseSettings(allow(good), "worker").httpAllow).toHaveLength(7);
  for (const bad of ["http://a", "a:80", "10.0.0.0/33", "10.0.0", "a/8", "*", "a..b", "::/129"]) {
    expect(refusal(allow(`localhost,${bad}`), "worker").problems).toHaveLength(1);
  }
});

test("without a database a program does not start", () => {
  expect(refusal({}).problems).toEqual(["DATABASE_URL is missing; it must be a postgres:// URL"]);
});

test("what only another program reads is not looked at", () => {
  expect(parseSettings({ DATABASE_URL, PORT: "none" }, "worker").port).toBe(8080);
});

test("a variable that only looks like ours is noticed", () => {
  const env = { DATABASE_URL, MILLRACE_CONCURENCY: "5", MILLRACE_TASKS: "x", MILLRACE_API: "y" };

  expect(parseSettings(env, "worker").unknown).toEqual(["MILLRACE_CONCURENCY"]);
});

test("docs/settings.md and .env.example are what the table says", async () => {
  const root = resolve(import.meta.dirname, "../../..");
  const { settingsDocuments } = await import("../../../scripts/settings-docs.mjs");

  for (const [path, content] of Object.entries(settingsDocuments(SETTINGS))) {
    expect(
      await readFile(resolve(root, path), "utf8"),
      `${path}: run scripts/settings-docs.mjs`,
    ).toBe(content);
  }
});

function refusal(env: Readonly<Record<string, string>>, program: Program = "api"): SettingsError {
  try {
    parseSettings(env, program);
  } catch (error) {
    if (error instanceof SettingsError) return error;
    throw error;
  }
  throw new Error("these settings were not refused");
}

test("what is deleted is said in days or less, and nothing is where nothing is said", () => {
  const read = (MILLRACE_RETENTION: string) =>
    parseSettings({ DATABASE_URL, MILLRACE_RETENTION }, "scheduler");

  expect(read("P30D").retentionMs).toBe(30 * 86_400_000);
  expect(read("")).not.toHaveProperty("retentionMs");
  for (const MILLRACE_RETENTION of ["P1M", "PT59S", "-P1D", "30", "P200Y"]) {
    expect(refusal({ DATABASE_URL, MILLRACE_RETENTION }, "scheduler").problems).toEqual([
      `MILLRACE_RETENTION: "${MILLRACE_RETENTION}" is not an ISO 8601 duration of at least a minute, in days or less`,
    ]);
  }
});

test("files that the database's URL names for TLS are looked for, and no password is told with them", () => {
  const tls = "sslrootcert=/nowhere/ca.pem&sslcert=/dev/null&sslkey=/";

  const { problems, message } = refusal({ DATABASE_URL: `${DATABASE_URL}?${tls}` });

  expect(problems).toEqual([
    expect.stringMatching(/^DATABASE_URL: its sslrootcert must .*\/nowhere\/ca\.pem/),
    expect.stringMatching(/^DATABASE_URL: its sslcert must .*-----BEGIN/),
    expect.stringMatching(/^DATABASE_URL: its sslkey must .*EISDIR/),
  ]);
  expect(message).not.toContain("secret");
});

test.each([
  ["sslmode=verify_full", /its sslmode must be disable, .*, verify-full or no-verify$/],
  ["ssl=false", /its ssl must be .*; sslmode says more$/],
  ["uselibpqcompat=true&sslmode=verify-ca", /its sslmode verify-ca needs an sslrootcert/],
])("%s in the database's URL, by which the driver breaks or guesses, is refused", (tls, said) => {
  const { problems } = refusal({ DATABASE_URL: `${DATABASE_URL}?${tls}` });

  expect(problems).toEqual([expect.stringMatching(said)]);
});

test.each([
  "",
  "sslmode=",
  "sslmode=disable",
  "sslmode=prefer",
  "sslmode=require",
  "sslmode=verify-ca",
  "sslmode=verify-full",
  "sslmode=no-verify",
  "uselibpqcompat=true&sslmode=require",
  "ssl=true",
  "ssl=0",
  "sslmode=nonsense&sslmode=disable&ssl=false",
])("the database's URL may say %j of TLS", (tls) => {
  const url = `${DATABASE_URL}?${tls}`;

  expect(parseSettings({ DATABASE_URL: url }, "scheduler").databaseUrl).toBe(url);
});
