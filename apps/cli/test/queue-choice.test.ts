import { afterEach, expect, test, vi } from "vitest";
import { queueChoice } from "../src/queue-choice.ts";

afterEach(() => vi.unstubAllEnvs());

test("where there is no Redis the queue is in Postgres, and the reason says how to get one", () => {
  vi.stubEnv("PATH", "/nowhere");

  const { backend, reason } = queueChoice({ queueBackend: undefined, redisUrl: undefined });

  expect(backend).toBe("postgres");
  expect(reason).toMatch(/no redis-server or valkey-server .* on the PATH; install Redis/);
});

test("a Redis that is named is used", () => {
  const choice = queueChoice({ queueBackend: undefined, redisUrl: "redis://elsewhere:6379" });

  expect(choice).toEqual({
    backend: "redis",
    redisUrl: "redis://elsewhere:6379",
    reason: "REDIS_URL",
  });
});

test("Postgres alone can be asked for, whatever else there is", () => {
  const choice = queueChoice({ queueBackend: "postgres", redisUrl: "redis://elsewhere:6379" });

  expect(choice).toEqual({ backend: "postgres", redisUrl: undefined, reason: "asked for" });
});
