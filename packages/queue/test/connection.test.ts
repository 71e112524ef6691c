import { expect, test } from "vitest";
import { redactUrl } from "../src/connection.ts";
import { QueueUnavailableError } from "../src/errors.ts";
import { TroubleLog } from "../src/log.ts";

test("the password of a URL does not show", () => {
  expect(redactUrl("redis://user:hunter2@redis:6379/1")).toBe("redis://user:***@redis:6379/1");
  expect(redactUrl("redis://:hunter2@redis")).toBe("redis://:***@redis");
  expect(redactUrl("redis://redis?password=hunter2&db=1")).toBe("redis://redis?password=***&db=1");
  expect(redactUrl("redis://redis:6379")).toBe("redis://redis:6379");
  expect(redactUrl("redis:hunter2@nowhere:port")).not.toContain("hunter2");
  expect(redactUrl("hunter2")).toBe("(not a URL)");
});

test("an error keeps its cause without the command, which may be an AUTH", () => {
  const cause = Object.assign(new Error("WRONGPASS"), {
    command: { name: "auth", args: ["hunter2"] },
  });

  const error = new QueueUnavailableError("the job queue failed", { cause });

  expect(error).toMatchObject({ code: "QUEUE_UNAVAILABLE", retryable: true });
  expect(error.cause).toBeInstanceOf(Error);
  expect(JSON.stringify(error.cause)).not.toContain("hunter2");
});

test("a trouble that recurs is logged once", () => {
  const lines: string[] = [];
  const log = {
    debug() {},
    info() {},
    warn: (_: object, text: string) => lines.push(text),
    error() {},
  };
  const trouble = new TroubleLog(log);

  for (let time = 0; time < 1_000; time += 1) trouble.warn({}, "no", "OOM");
  trouble.warn({}, "no", "READONLY");

  expect(lines).toHaveLength(2);
});
