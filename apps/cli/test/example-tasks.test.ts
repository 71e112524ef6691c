import { readFile, readdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { parseDocument } from "@millrace/contract";
import { isTask, type Task, type TaskContext } from "@millrace/sdk";
import { openLedger } from "@millrace/testkit";
import { afterEach, expect, test, vi } from "vitest";
import { orderTasksFolder, readOrderDefinition } from "../src/demo/example.ts";

afterEach(() => vi.unstubAllEnvs());

async function loadTasks(): Promise<readonly Task[]> {
  const files = await readdir(orderTasksFolder);
  const modules = await Promise.all(
    files.map(async (file) => {
      const url = pathToFileURL(join(orderTasksFolder, file)).href;
      return (await import(url)) as Record<string, unknown>;
    }),
  );
  return modules.flatMap((each) => Object.values(each)).filter(isTask);
}

function contextOf(more: Partial<TaskContext> = {}): TaskContext {
  const log = () => {};
  return {
    idempotencyKey: "key",
    attempt: 1,
    deliveries: 1,
    stepId: "step",
    executionId: "execution",
    instance: {
      id: "instance",
      workflowId: "order_processing",
      workflowVersion: 1,
      correlationId: null,
      tenantId: "default",
    },
    signal: new AbortController().signal,
    logger: { debug: log, info: log, warn: log, error: log },
    heartbeat: log,
    ...more,
  };
}

async function runTask(id: string, input: unknown, context: TaskContext = contextOf()) {
  const task = (await loadTasks()).find((each) => each.id === id);
  if (task === undefined) throw new Error(`no task ${id}`);
  return task.run(context, input);
}

test("there is a task for every step of the definition, and none besides", async () => {
  const { document } = parseDocument(await readOrderDefinition());
  const steps = [...(document?.steps ?? []), ...(document?.compensationSteps ?? [])];
  const called = steps.flatMap((step) => ("taskId" in step ? step.taskId : []));

  const tasks = await loadTasks();

  expect(tasks.map(({ id }) => id).toSorted()).toEqual(called.toSorted());
});

test("the task modules import nothing", async () => {
  for (const file of await readdir(orderTasksFolder)) {
    const text = await readFile(join(orderTasksFolder, file), "utf8");
    expect(text).not.toMatch(/^\s*import\b|\bimport\(|\brequire\(/m);
  }
});

test("an order with an ordinary id goes well, with the outputs that the definition reads", async () => {
  const input = { orderId: "A-1", lines: [], paymentId: "p", amount: 5, reservationId: "r" };

  expect(await runTask("inventory_reservation_task", input)).toHaveProperty("reservationId");
  expect(await runTask("payment_processing_task", input)).toEqual({ paymentId: "p", amount: 5 });
  expect(await runTask("shipment_task", input)).toHaveProperty("shipmentId");
});

test("a declined payment has a name and is not tried again", async () => {
  const run = runTask("payment_processing_task", { orderId: "declined-1", paymentId: "p" });

  await expect(run).rejects.toMatchObject({ type: "PaymentDeclined", retryable: false });
});

test("of two shipments that are told to stop, the one with the carrier already goes on", async () => {
  const controller = new AbortController();
  const context = contextOf({ signal: controller.signal });
  setTimeout(() => controller.abort(new Error("cancelled")), 50);

  const [shipped, stopped] = await Promise.allSettled([
    runTask("shipment_task", { orderId: "cancelled_after_handover-1" }, context),
    runTask("shipment_task", { orderId: "cancelled_before_handover-1" }, context),
  ]);

  expect(shipped).toMatchObject({ value: { shipmentId: "shipment-cancelled_after_handover-1" } });
  expect(stopped).toMatchObject({ reason: { message: "cancelled" } });
});

test("every run is told to the ledger, under the key of its execution", async () => {
  const ledger = await openLedger();
  vi.stubEnv("MILLRACE_DEMO_LEDGER", `${ledger.url}/entries`);

  await runTask("order_confirmation_task", { orderId: "A-1", shipmentId: "s" });
  await ledger.close();

  expect(ledger.entries).toEqual([
    expect.objectContaining({
      instance: "instance",
      step: "step",
      attempt: 1,
      idempotencyKey: "key",
      details: { orderId: "A-1", shipmentId: "s", deliveries: 1, pid: process.pid },
    }),
  ]);
});

test("a task whose ledger refuses the entry fails", async () => {
  const ledger = await openLedger();
  ledger.answer({ status: 503 });
  vi.stubEnv("MILLRACE_DEMO_LEDGER", `${ledger.url}/entries`);

  const run = runTask("payment_reminder_task", { orderId: "A-1" });

  await expect(run).rejects.toThrow("the ledger answers 503");
  await ledger.close();
});

test("the example's definition is the one of the acceptance tests, where that is at hand", async () => {
  const fixture = resolve(
    import.meta.dirname,
    "../../../test/fixtures/definitions/order_processing.json",
  );
  const text = await readFile(fixture, "utf8").catch(() => undefined);
  if (text === undefined) return;

  expect(await readOrderDefinition()).toEqual(JSON.parse(text));
});
