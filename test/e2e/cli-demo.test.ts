import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { eventually, stopProcesses } from "@millrace/testkit";
import { afterEach, beforeEach, expect, test } from "vitest";
import { runMillrace, startMillrace } from "./millrace.ts";

/** Where the demo makes its data folder, so that what it leaves behind is seen. */
let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "millrace-e2e-"));
});

afterEach(async () => {
  await stopProcesses();
  await rm(folder, { recursive: true, force: true });
});

test(
  "the demo on Postgres alone ends with every order as it should be",
  { timeout: 120_000 },
  async () => {
    const { exitCode, output } = await runMillrace(["demo", "--orders", "30", "--no-redis"], {
      TMPDIR: folder,
    });

    expect(output).toContain("BullMQ's Postgres backend (asked for)");
    expectOrders(output);
    expect(exitCode).toBe(0);
    expect(await readdir(folder)).toEqual([]);
  },
);

test(
  "so does the demo on Redis; with --keep it stays up until it is told to stop",
  { timeout: 120_000 },
  async () => {
    const demo = await startMillrace(["demo", "--keep", "--orders", "30"], { TMPDIR: folder });
    await demo.waitForOutput(/To stop and remove it all: Ctrl-C/, 60_000);
    const [, api = ""] = /Ready after .*: (http\S+)/.exec(demo.output()) ?? [];

    const listed = await runMillrace(["ls", "--api", api]);
    demo.signal("SIGINT");
    const { code } = await demo.exited;

    expect(demo.output()).toContain("Redis, redis://");
    expectOrders(demo.output());
    expect(listed.output).toContain("order_processing");
    expect(code).toBe(0);
    await eventually("an empty folder", async () => (await readdir(folder)).length === 0);
  },
);

function expectOrders(output: string): void {
  expect(output).toContain("30 of 30 orders ended as they should");
  expect(output).toMatch(/Worker \S+ ran \d+ steps\.\nWorker \S+ ran \d+ steps\./);
  expect(output).toMatch(/API docs: http:\/\/127\.0\.0\.1:\d+\/docs/);
  expect(output).toMatch(/^refund_payment|, refund_payment \(failed\)|refund_payment \(failed\)/m);
}

test("Ctrl-C ends the demo, its processes and its data", async () => {
  const demo = await startMillrace(["demo"], { TMPDIR: folder });
  await demo.waitForOutput(/[1-9]\d* of 50 orders started/, 60_000);

  demo.signal("SIGINT");
  // As from a terminal and `npm run`, which both pass it on.
  demo.signal("SIGINT");
  const { code } = await demo.exited;

  expect(code).toBe(130);
  expect(demo.output()).toContain("Stopping");
  expect(await readdir(folder)).toEqual([]);
});
