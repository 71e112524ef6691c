import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { millrace } from "./streams.ts";

const example = resolve(import.meta.dirname, "../../../examples/order-processing");
const order = join(example, "order_processing.json");

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "millrace-cli-test-"));
});
afterEach(() => rm(folder, { recursive: true }));

test("simulate tells what happens, what comes of it and which transitions were taken", async () => {
  const scenario = join(example, "scenarios/paid.json");

  const { exitCode, stdout } = await millrace(["simulate", order, "--scenario", scenario]);

  expect(exitCode).toBe(0);
  expect(stdout).toContain("reserve_inventory fails with WarehouseBusy");
  expect(stdout).toContain("event payment.received arrives, and nothing waits for it");
  expect(stdout).toContain("SETTLED: COMPLETED");
  expect(stdout).toContain("coverage   5 of 10 transitions");
});

test("simulate answers JSON", async () => {
  const scenario = join(example, "scenarios/cancelled-while-shipping.json");

  const { stdout } = await millrace(["simulate", order, "-s", scenario, "--json"]);

  expect(JSON.parse(stdout)).toMatchObject({
    workflowId: "order_processing",
    outcome: "SETTLED",
    instance: { status: "CANCELLED", compensation: { status: "COMPLETED" } },
  });
});

test("simulate names every fault of a scenario with its line", async () => {
  const scenario = join(folder, "bad.yaml");
  await writeFile(scenario, "tasks:\n  ship_ordre: {}\nevents:\n  - at: soon\n    pattern: go\n");

  const { exitCode, stdout } = await millrace(["simulate", order, "-s", scenario]);

  expect(exitCode).toBe(1);
  expect(stdout).toMatch(/bad\.yaml:\/events\/0\/at \(line 4\): .*BAD_DURATION/);
  expect(stdout).toMatch(/bad\.yaml:\/tasks\/ship_ordre \(line 2\): .*UNKNOWN_STEP/);
});
