import { execFile } from "node:child_process";
import { totalmem } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Count } from "@millrace/telemetry";
import { createTemporaryFolder, eventually, type TemporaryFolder } from "@millrace/testkit";
import { rolldown } from "rolldown";
import { afterAll, beforeAll, expect, test, type TestContext } from "vitest";
import { openCell } from "../src/worker/cell-process.ts";
import type { CellProcess } from "../src/worker/cell-process.ts";
import { availableBytes, cellsFor } from "../src/worker/cells.ts";

// Each in one file, as workers are: to find and read all the files of the runtime takes five times as long.
let folder: TemporaryFolder;
const bundled = (name: string) => join(folder.path, `${name}.mjs`);
beforeAll(async () => {
  folder = await createTemporaryFolder();
  const names = ["cell", "no-files-left"];
  const input = names.map((name) => join(import.meta.dirname, `support/${name}.mjs`));
  const bundle = await rolldown({
    input,
    external: ["msgpackr-extract", "pg-native"],
    platform: "node",
  });
  const fileNames = "[name].mjs";
  await bundle.write({ dir: folder.path, entryFileNames: fileNames, chunkFileNames: fileNames });
  await bundle.close();
}, 60_000);
afterAll(() => folder.remove());

// One process each, against whatever a step does to the one that it runs in. With a database, and as a
// worker that goes on: test/faults/suspects.test.ts.

test.concurrent("a cell tells how far it is with a step and what it has counted, ends when it is asked to, and leaves its step no parent to talk to", async (context) => {
  const { cell, freed } = await open(context);

  expect(await run(cell, "complete")).toBe(true);

  expect(cell.workerId).toBe("worker");
  expect(freed).toEqual([[{ metric: "steps", labels: { send: "undefined" }, value: 1 }]]);
  await cell.endWithin(10_000);
  expect(await cell.exited).toBe("exit code 0");
});

test.concurrent("C16: what a step writes into its cell's channel is not heard", async (context) => {
  const { cell, freed } = await open(context);

  expect(await run(cell, "forge")).toBe(true);

  // A forged one would have come before, with nothing that was counted.
  expect(freed).toEqual([[{ metric: "steps", labels: {}, value: 1 }]]);
  expect([cell.workerId, cell.isOver]).toEqual(["worker", false]);
});

test.concurrent.for(["closeChannel", "flood"])(
  "C16: a step that makes its cell's channel useless dies with it (%s)",
  async (deed, context) => {
    const { cell } = await open(context);

    expect(await run(cell, deed)).toBe(false);
    expect(await cell.exited).toBe("it had closed the channel to its worker");
  },
);

test.concurrent("C16: a step that crashes its process, or uses up its memory, dies with it, and how much it had is known", async (context) => {
  const [crashing, growing] = await Promise.all([
    open(context),
    open(context, ["--max-old-space-size=128"]),
  ]);

  const freed = await Promise.all([run(crashing.cell, "crash"), run(growing.cell, "allocate")]);

  expect(freed).toEqual([false, false]);
  expect(await crashing.cell.exited).toBe("SIGSEGV");
  expect(await growing.cell.exited).toBe("SIGABRT");
  // Where there is no /proc nobody knows.
  const known = process.platform === "linux" ? 100_000_000 : Number.NEGATIVE_INFINITY;
  expect(growing.cell.peakBytes ?? 0).toBeGreaterThan(known);
});

test.concurrent("a cell does not wait for the debugger of its worker", async (context) => {
  const inspected = "--inspect-brk=127.0.0.1:0";

  const { cell } = await open(context, [inspected], { ...process.env, NODE_OPTIONS: inspected });

  expect(await run(cell, "complete")).toBe(true);
});

test.concurrent("C16: a cell that stands still is killed by whoever has started it", async (context) => {
  const { cell } = await open(context);

  const freed = run(cell, "stand");
  await eventually("the beginning", () => cell.workerId);
  await cell.endWithin(100);

  expect(await freed).toBe(false);
  expect(await cell.exited).toBe("SIGKILL");
});

test.concurrent("C16: a worker that may open no more files has no cell, and lives on", async () => {
  const program = `"${process.execPath}" "${bundled("no-files-left")}" "${bundled("cell")}"`;
  const start = `ulimit -n 400 && exec ${program}`;

  const { stdout } = await promisify(execFile)("sh", ["-c", start]);

  expect(JSON.parse(stdout)).toEqual([false, expect.stringContaining("EMFILE"), true]);
});

test("a worker has as many cells as its memory is good for, and never fewer than two", () => {
  const gigabytes = (count: number) => count * 2 ** 30;

  expect([0.25, 1, 2, 4, 64].map((count) => cellsFor(gigabytes(count)))).toEqual([2, 2, 4, 8, 8]);
  expect(availableBytes()).toBeGreaterThan(0);
  expect(availableBytes()).toBeLessThanOrEqual(totalmem());
});

async function open(
  { onTestFinished }: TestContext,
  options: readonly string[] = [],
  env: NodeJS.ProcessEnv = process.env,
): Promise<{ readonly cell: CellProcess; readonly freed: readonly (readonly Count[])[] }> {
  const freed: Count[][] = [];
  const cell = openCell({ file: bundled("cell"), options, env }, (counts) => freed.push(counts));
  onTestFinished(() => cell.endWithin(0));
  expect(await cell.ready).toBe(true);
  return { cell, freed };
}

async function run(cell: CellProcess, taskId: string): Promise<boolean> {
  const freed = cell.said("free");
  const instanceId = "0198c0de-0000-7000-8000-000000000001";
  const job = { tenantId: "t", instanceId, path: "p", iteration: 1, attempt: 1, fence: 1 };
  cell.run({ ...job, taskId }, "job");
  return freed;
}
