import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "@millrace/testkit";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Dev, runMillrace, startDev, startMillrace, stopDev } from "./millrace.ts";

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/;

let dev: Dev;
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "millrace-e2e-"));
  dev = await startDev("--tasks", "examples/order-processing/tasks");
  await dev.millrace("apply", "examples/order-processing/order_processing.json");
});

afterAll(async () => {
  await stopDev(dev);
  await rm(folder, { recursive: true, force: true });
});

function inputOf(orderId: string): string {
  return JSON.stringify({ orderId, lines: [{ sku: "mug", quantity: 1 }] });
}

async function startOrder(orderId: string): Promise<string> {
  const { output } = await dev.millrace("start", "order_processing", "--input", inputOf(orderId));
  return output.split("\n").find((line) => uuid.test(line)) ?? `no id in: ${output}`;
}

test("apply says new, unchanged, and which version", async () => {
  const file = join(folder, "greeting.yaml");
  const steps = "steps:\n  - { stepId: say, type: TASK, taskId: echo }\n";
  await writeFile(file, `id: greeting\n${steps}`);

  const first = await dev.millrace("apply", file);
  const again = await dev.millrace("apply", file);
  await writeFile(file, `id: greeting\nname: Greeting\n${steps}`);
  const changed = await dev.millrace("apply", file);

  expect(first).toEqual({ exitCode: 0, output: `${file}: greeting version 1 (new)\n` });
  expect(again).toEqual({ exitCode: 0, output: `${file}: greeting version 1 (unchanged)\n` });
  expect(changed).toEqual({ exitCode: 0, output: `${file}: greeting version 2 (new)\n` });
});

test("apply names every fault by file, pointer and line, and registers nothing", async () => {
  const file = join(folder, "broken.yaml");
  const good = join(folder, "good.yaml");
  await writeFile(good, "id: good\nsteps:\n  - { stepId: a, type: TASK, taskId: echo }\n");
  await writeFile(
    file,
    "id: broken\nsteps:\n  - stepId: a\n    type: TASK\n    taskId: echo\n" +
      "    transitions: { default: nowhere }\n  - stepId: b\n    type: TASK\n",
  );

  const { exitCode, output } = await dev.millrace("apply", good, file);
  const { output: definitions } = await dev.millrace("start", "good");

  expect(exitCode).toBe(1);
  expect(output).toMatch(/broken\.yaml:\/steps\/0\/transitions\/default \(line 6\): /);
  expect(output).toMatch(/broken\.yaml:\/steps\/1\/taskId \(line 7\): /);
  expect(output).toContain("nothing was registered");
  expect(definitions).toContain("millrace apply");
});

test("an order is started, paid and shown to its end", async () => {
  const id = await startOrder("A-1");

  const payload = JSON.stringify({ orderId: "A-1", id: "p-1", amount: 20 });
  const event = await dev.millrace(
    "event",
    "payment.received",
    "--payload",
    payload,
    "--id",
    "e-1",
  );
  const shown = await dev.millrace("show", id, "--wait");
  const repeated = await dev.millrace(
    "event",
    "payment.received",
    "--payload",
    payload,
    "--id",
    "e-1",
  );

  expect(event.output).toMatch(/^e-1 accepted: [01] delivered, 0 cancelled, 0 started\n$/);
  expect(shown.exitCode).toBe(0);
  expect(shown.output).toContain(`order_processing version 1  COMPLETED  ${id}`);
  expect(shown.output).toMatch(/✔ {2}reserve_inventory +COMPLETED +TASK/);
  expect(shown.output).toMatch(/✔ {2}wait_for_payment +COMPLETED +EVENT_WAIT/);
  expect(shown.output).toContain("shipment-A-1");
  expect(shown.output).not.toContain("compensation");
  expect(repeated.output).toContain("accepted before");
});

test("an order is cancelled, and what it did is undone", async () => {
  const id = await startOrder("A-2");
  await dev.millrace("ls", "--status", "waiting_for_event");

  const cancelled = await dev.millrace("cancel", id, "--reason", "ordered twice", "--wait");
  const again = await dev.millrace("cancel", id, "--reason", "ordered twice");

  expect(cancelled.exitCode).toBe(0);
  expect(cancelled.output).toContain("CANCELLED");
  expect(cancelled.output).toContain("ordered twice (API");
  expect(again.exitCode).toBe(1);
  expect(again.output).toContain("millrace show <id>");
});

test("ls finds an instance by what it is and where it stands", async () => {
  const id = await startOrder("A-3");
  await dev.millrace("show", id);

  const found = await dev.millrace("ls", "--workflow", "order_processing", "--json");
  const none = await dev.millrace("ls", "--correlation-id", "nobody");

  const { items } = JSON.parse(found.output) as { items: { id: string }[] };
  expect(items.map((each) => each.id)).toContain(id);
  expect(none).toEqual({ exitCode: 0, output: "No instance matches.\n" });
});

test("start --wait is the exit code of the instance", async () => {
  const file = join(folder, "outcomes.yaml");
  const steps = (task: string) =>
    `steps:\n  - { stepId: a, type: TASK, taskId: ${task}, retry: { maxAttempts: 1 } }\n`;
  await writeFile(file, `id: works\n${steps("echo")}---\nid: breaks\n${steps("fail")}`);
  const applied = await dev.millrace("apply", file);

  const works = await dev.millrace("start", "works", "--input", "1", "--wait");
  const breaks = await dev.millrace("start", "breaks", "--input", "1", "--wait");

  expect(applied.exitCode).toBe(0);
  expect(works).toMatchObject({ exitCode: 0, output: expect.stringContaining("COMPLETED") });
  expect(breaks).toMatchObject({ exitCode: 1, output: expect.stringContaining("FAILED") });
});

test("an idempotency key starts one instance", async () => {
  const args = ["start", "order_processing", "--input", inputOf("A-4"), "--json"];
  const start = async () => {
    const { output } = await dev.millrace(...args, "--idempotency-key", "once");
    return (JSON.parse(output) as { id: string }).id;
  };

  expect(await start()).toBe(await start());
});

test("every fault of an input is listed", async () => {
  const { exitCode, output } = await dev.millrace("start", "order_processing", "--input", "{}");

  expect(exitCode).toBe(1);
  expect(output).toContain("orderId");
  expect(output).toContain("lines");
});

test("history tells what happened, in order", async () => {
  const id = await startOrder("A-5");

  const { exitCode, output } = await dev.millrace("history", id);

  expect(exitCode).toBe(0);
  expect(output).toMatch(/^ *SEQ {2}AT .*\n *1 /m);
});

test("an unknown instance is a failure with advice", async () => {
  const { exitCode, output } = await dev.millrace("show", "0198c1de-0000-7000-8000-000000000000");

  expect(exitCode).toBe(1);
  expect(output).toContain("millrace ls");
});

test("where no API answers, every client command has exit code 3", async () => {
  const api = `http://127.0.0.1:${await freePort()}`;

  const { exitCode, output } = await runMillrace(["ls"], { MILLRACE_API: api });

  expect(exitCode).toBe(3);
  expect(output).toContain(`no Millrace API at ${api}`);
});

test("migrate may run again at any time", async () => {
  const env = { DATABASE_URL: dev.ready.databaseUrl };

  const { exitCode, output } = await runMillrace(["migrate"], env);

  expect(exitCode).toBe(0);
  expect(output).toContain("has the newest schema");
  expect(output).not.toContain(new URL(dev.ready.databaseUrl).password);
});

test("worker, scheduler and api run in the process of the command, and end at SIGTERM", async () => {
  const env = {
    DATABASE_URL: dev.ready.databaseUrl,
    REDIS_URL: dev.ready.redisUrl ?? undefined,
    LOG_LEVEL: "info",
  };
  const processes = await Promise.all([
    startMillrace(["api", "--port", "0"], env),
    startMillrace(["worker", "--tasks", "examples/order-processing/tasks"], env),
    startMillrace(["scheduler"], env),
  ]);

  for (const process of processes) await process.waitForOutput(/"msg":"ready"/);
  for (const process of processes) process.signal("SIGTERM");
  const exits = await Promise.all(processes.map(({ exited }) => exited));

  expect(exits.map(({ code }) => code)).toEqual([0, 0, 0]);
});

test("a worker without its settings says all that is missing, with exit code 2", async () => {
  const { exitCode, output } = await runMillrace(["worker"]);

  expect(exitCode).toBe(2);
  expect(output).toContain("DATABASE_URL is missing");
});

test("a process that cannot start says what is wrong and what to do, without a line of our own code", async () => {
  const DATABASE_URL = dev.ready.databaseUrl;
  const file = join(folder, "ends.mjs");
  await writeFile(file, "process.exit();\n");

  const [ended, without, plain] = await Promise.all([
    runMillrace(["worker", "--tasks", file], { DATABASE_URL, LOG_LEVEL: "error" }),
    runMillrace(["scheduler"], { DATABASE_URL: `${DATABASE_URL}-x`, LOG_LEVEL: "error" }),
    runMillrace(["scheduler"], {
      DATABASE_URL: `${DATABASE_URL}?sslmode=require`,
      LOG_LEVEL: "error",
    }),
  ]);

  expect(ended.exitCode).toBe(1);
  expect(ended.output).toMatch(
    /^could not start: the task module \S+ends\.mjs ended its worker .*\n +at file:\S+ends\.mjs:1:9\n$/,
  );
  expect(without.exitCode).toBe(1);
  expect(without.output).toMatch(/^could not start: .*-x" does not exist\. .*millrace migrate\n$/);
  expect(plain.exitCode).toBe(1);
  expect(plain.output).toMatch(
    /^could not start: .* no TLS.*\. .*sslmode=disable in DATABASE_URL\n$/,
  );
});

test("doctor looks at the database, the API, drift and a sample of the instances", async () => {
  await startOrder("A-doctor");

  const { exitCode, output } = await runMillrace(["doctor", "--api", dev.ready.api], {
    DATABASE_URL: dev.ready.databaseUrl,
  });

  expect(output).toMatch(/^ok +database/m);
  expect(output).toMatch(/^ok +migrations +the schema is the newest/m);
  expect(output).toMatch(/^ok +leftovers +no rows/m);
  expect(output).toMatch(/^ok +versions +definition versions are as they were registered/m);
  expect(output).toMatch(/^ok +instances +\d+ checked, 0 not consistent/m);
  expect(exitCode).toBe(0);
});
