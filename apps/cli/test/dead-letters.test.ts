import type { DeadLetterView } from "@millrace/contract";
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
  return millrace(["dead-letters", ...args], { environment: { MILLRACE_API: api.url } });
}

const letter: DeadLetterView = {
  id: "5f0c2a4e-0000-4000-8000-000000000001",
  instanceId: "01890a5d-ac96-774b-bcce-b302099a8057",
  workflowId: "order",
  workflowVersion: 1,
  stepId: "ship",
  executionId: "ship#1",
  taskId: "ship_task",
  attempt: 1,
  status: "OPEN",
  error: {
    kind: "POISONED",
    type: "POISONED",
    message: "each died while running it",
    stepId: "ship",
    attempt: 1,
    details: null,
  },
  deliveries: [
    {
      attempt: 1,
      workerId: "w",
      host: "box",
      pid: 42,
      lastBeatAt: "2026-01-31T12:00:00.000Z",
      foundAt: "2026-01-31T12:00:04.000Z",
      rssBytes: 104_857_600,
      exit: "SIGKILL",
      log: 'the last lines with "pid":42',
    },
  ],
  createdAt: "2026-01-31T12:00:05.000Z",
  resolvedAt: null,
  resolvedBy: null,
  reason: null,
};

test("dead-letters lists the open ones, or all", async () => {
  const ran = await against([], { items: [letter], nextCursor: null });

  expect(ran.exitCode).toBe(0);
  expect(ran.stdout).toMatch(/5f0c2a4e-\S+ +OPEN +order +ship +01890a5d-/);
  expect(api?.exchanges.map(({ path }) => path)).toEqual(["/v1/dead-letters?limit=50"]);
});

test("dead-letters show tells what is known of each worker that died", async () => {
  const ran = await against(["show", letter.id], letter);

  expect(ran.exitCode).toBe(0);
  expect(ran.stdout).toContain("worker box, pid 42");
  expect(ran.stdout).toContain('100 MiB, "SIGKILL"');
  expect(ran.stdout).toContain('its log  the last lines with "pid":42');
});

test("dead-letters discard sends the reason", async () => {
  const ran = await against(["discard", letter.id, "--reason", "no"], {
    ...letter,
    status: "DISCARDED",
  });

  expect(ran.stdout).toContain("is DISCARDED");
  expect(api?.exchanges).toMatchObject([
    { method: "POST", path: `/v1/dead-letters/${letter.id}/discard`, body: { reason: "no" } },
  ]);
});

test("dead-letters names the verbs that it knows, and asks for the id", async () => {
  const unknown = await against(["discrad", letter.id], {});
  const nameless = await against(["discard"], {});

  expect([unknown.exitCode, nameless.exitCode]).toEqual([2, 2]);
  expect(unknown.stderr).toContain("discard");
  expect(nameless.stderr).toContain("needs the id");
});
