import { rmSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { MillraceClient } from "@millrace/client";
import type { Stack } from "@millrace/devstack";
import { type Command, defineCommand } from "../command.ts";
import { driveOrder, type Outcome } from "../demo/drive.ts";
import { orderTasksFolder, readOrderDefinition } from "../demo/example.ts";
import { type Order, planOrders } from "../demo/orders.ts";
import { openProgress } from "../demo/progress.ts";
import { faultLines, outcomeLines, stepsByWorker } from "../demo/report.ts";
import { openWatch } from "../demo/watch.ts";
import { EXIT } from "../exit-codes.ts";
import { type Interrupt, listenForInterrupt } from "../interrupt.ts";
import type { Output } from "../output.ts";
import { queueChoice, queueText } from "../queue-choice.ts";
import { withoutPassword } from "../secrets.ts";
import { startStack } from "../start-stack.ts";
import { durationText } from "../times.ts";
import { integerOf } from "../values.ts";

/** For one order to reach the next point of its path. */
const PATIENCE_MS = 90_000;

const WORKERS = 2;

const NO_SERVERS = { databaseUrl: undefined, redisUrl: undefined };

/** Whatever the environment says of these is meant for other installations. */
const OWN_SETTINGS = {
  HOST: undefined,
  MILLRACE_QUEUES: undefined,
  MILLRACE_CONCURRENCY: undefined,
  MILLRACE_KEY_PREFIX: undefined,
  MILLRACE_METRICS_PORT: undefined,
};

export const demo: Command = defineCommand({
  name: "demo",
  summary: "run the order-processing example with fifty orders and judge how each one ended",
  isClient: false,
  options: {
    keep: { type: "boolean", description: "leave everything up afterwards, until Ctrl-C" },
    orders: { type: "string", value: "count", description: "how many, 1 to 1000 (default: 50)" },
    external: {
      type: "boolean",
      description: "use DATABASE_URL and REDIS_URL, and leave what the demo writes there",
    },
    "no-redis": {
      type: "boolean",
      description: "keep the queue in Postgres even where there is a Redis",
    },
  },
  details: [
    "It starts a private Postgres and Redis, the API, a scheduler and two workers on free ports, in " +
      "a data folder of its own that it removes at the end. Where there is no Redis the queue is " +
      "kept in Postgres. What the environment names belongs to somebody, so it is used only with " +
      "--external.",
    "Some orders are paid, some before the payment is waited for; some are never paid, declined, or " +
      "cancelled while they ship. The exit code is 0 only when the API says that every one of them " +
      "has ended as it should and both workers took part.",
  ],
  examples: ["millrace demo", "millrace demo --keep --orders 200", "millrace demo --no-redis"],
  run: async ({ output, settings }, { options }) => {
    const count = integerOf("--orders", options.orders, { min: 1, max: 1_000 }) ?? 50;
    const { databaseUrl, redisUrl } = options.external ? settings : NO_SERVERS;
    const queue = queueChoice({
      redisUrl,
      queueBackend: options["no-redis"] ? "postgres" : settings.queueBackend,
    });
    const dataDir = await mkdtemp(join(tmpdir(), "millrace-demo-"));
    const interrupt = listenForInterrupt(() => rmSync(dataDir, { recursive: true, force: true }));
    const say = output.isJson ? output.note : output.line;
    try {
      const servers = queue.backend === "redis" ? "Postgres, Redis" : "Postgres";
      say(`Starting ${servers}, API, scheduler and two workers …`);
      const began = performance.now();
      const stack = await startStack({
        dataDir,
        databaseUrl,
        redisUrl: queue.redisUrl,
        queueBackend: queue.backend,
        workers: WORKERS,
        tasks: [orderTasksFolder],
        // Tasks that wait to be cancelled need not be waited for when the demo is broken off.
        env: { ...OWN_SETTINGS, MILLRACE_GRACE: "PT1S" },
        signal: interrupt.signal,
      });
      if (stack === undefined) return interrupt.exitCode();
      try {
        say(`Ready after ${durationText(performance.now() - began)}: ${stack.apiUrl}`);
        say(`Queue: ${queueText(stack, queue.reason)}`);
        const run = `demo-${Date.now().toString(36)}`;
        const orders = planOrders(count, { run: options.external ? run : undefined });
        const result = await runOrders(output, stack, orders, run, interrupt);
        if (interrupt.signal.aborted) return interrupt.exitCode();
        const isRight = report(output, stack, result);
        if (options.keep) await keepUp(output, stack, dataDir, result, interrupt);
        return isRight ? EXIT.done : EXIT.failed;
      } finally {
        if (interrupt.signal.aborted) say("Stopping …");
        await stack.close();
      }
    } finally {
      await rm(dataDir, { recursive: true, force: true, maxRetries: 5 });
      interrupt.dispose();
    }
  },
});

interface DemoResult {
  readonly outcomes: readonly Outcome[];
  readonly seconds: number;
}

async function runOrders(
  output: Output,
  { apiUrl }: Stack,
  orders: readonly Order[],
  correlationId: string,
  { signal, happened }: Interrupt,
): Promise<DemoResult> {
  const client = new MillraceClient({ baseUrl: apiUrl });
  const { id, version } = await client.definitions.register(await readOrderDefinition());
  output.note(`Registered ${id} version ${version}; starting ${orders.length} orders …`);

  const began = performance.now();
  const paths = new Map(orders.map(({ orderId, path }) => [orderId, path]));
  const progress = openProgress({
    output,
    total: orders.length,
    pathOf: ({ input }) => paths.get((input as { readonly orderId: string }).orderId),
    clock: () => performance.now(),
  });
  const watch = openWatch({
    client,
    correlationId,
    timeoutMs: PATIENCE_MS,
    onLook: (instances) => progress.show(instances),
  });
  void happened.then(() => watch.close());
  try {
    const driven = orders.map((order) => driveOrder(order, { client, watch, correlationId }));
    const outcomes = await Promise.all(driven);
    if (!signal.aborted) progress.close(watch.instances);
    return { outcomes, seconds: (performance.now() - began) / 1_000 };
  } finally {
    await watch.close();
  }
}

/** Prints what came of it; true when all of it is as it should be. */
function report(output: Output, stack: Stack, { outcomes, seconds }: DemoResult): boolean {
  const instances = outcomes.flatMap(({ instance }) => instance ?? []);
  const byWorker = stepsByWorker(instances);
  const wrong = outcomes.filter(({ faults }) => faults.length > 0);
  // A handful of orders may well end up with one worker.
  const isShared = byWorker.size >= WORKERS || instances.length < 10;
  const isRight = wrong.length === 0 && isShared;
  const early = outcomes.filter(({ isPaidEarly }) => isPaidEarly).length;

  output.json({
    ok: isRight,
    seconds,
    api: stack.apiUrl,
    queue: stack.queueBackend,
    stepsByWorker: Object.fromEntries(byWorker),
    paidBeforeTheWaitWasOpen: early,
    orders: outcomes.map(({ order, instance, faults }) => ({
      orderId: order.orderId,
      path: order.path,
      instanceId: instance?.id ?? null,
      status: instance?.status ?? null,
      compensation: instance?.compensation?.completed ?? null,
      faults,
    })),
  });
  if (output.isJson) return isRight;

  output.line();
  for (const line of outcomeLines(output, outcomes)) output.line(line);
  output.line();
  for (const [worker, steps] of byWorker) output.line(`Worker ${worker} ran ${steps} steps.`);
  output.line(`Payments that came before anybody waited for them: ${early}.`);
  output.line(`API docs: ${stack.apiUrl}/docs   Metrics: ${stack.apiUrl}/metrics`);
  if (!isShared) output.line(output.paint("red", "Not every worker process took part."));
  for (const line of faultLines(output, wrong)) output.line(line);
  const ended = `${outcomes.length - wrong.length} of ${outcomes.length} orders ended as they should`;
  const verdict = `${ended}, in ${seconds.toFixed(1)} s.`;
  output.line(output.paint(isRight ? "green" : "red", verdict));
  return isRight;
}

async function keepUp(
  output: Output,
  { apiUrl, databaseUrl, postgres }: Stack,
  dataDir: string,
  { outcomes }: DemoResult,
  { happened }: Interrupt,
): Promise<void> {
  const example = outcomes.find(({ instance }) => instance?.compensation)?.instance?.id ?? "<id>";
  const tips = [
    `npx millrace ls --api ${apiUrl}`,
    `npx millrace show ${example} --api ${apiUrl}`,
    `npx millrace history ${example} --api ${apiUrl}`,
    ...(postgres ? [psqlOf(dataDir, databaseUrl)] : []),
  ];
  output.note("\nEverything stays up. In another terminal, try:");
  for (const tip of tips) output.note(`  ${tip}`);
  output.note("To stop and remove it all: Ctrl-C here.");
  await happened;
}

function psqlOf(dataDir: string, databaseUrl: string): string {
  const file = join(dataDir, "postgres/password");
  return `PGPASSWORD=$(cat ${file}) psql ${withoutPassword(databaseUrl, "")}`;
}
