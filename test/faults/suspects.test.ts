import type { JsonObject, WorkflowDefinition } from "@millrace/contract";
import { eventually, kill } from "@millrace/testkit";
import { expect, test } from "vitest";
import { openInstallation } from "../support/installation.ts";
import { expectNothingLeft } from "../support/leftovers.ts";

// Steps under which two workers have died, wherever in a workflow they stand, and what they then do to the
// process that they have for themselves. All at once, since each start of a process takes its time.

const harm = { type: "TASK", taskId: "witness", input: "input.orders" } as const;
const definitions: readonly WorkflowDefinition[] = [
  { id: "plain", steps: [{ ...harm, stepId: "harm" }] },
  {
    id: "items",
    steps: [
      {
        stepId: "each",
        type: "MAP",
        items: "input.items",
        steps: [{ ...harm, stepId: "harm", input: "item" }],
      },
    ],
  },
  {
    id: "parent",
    steps: [{ stepId: "child", type: "SUB_WORKFLOW", workflowId: "plain" }],
  },
  {
    id: "undone",
    steps: [
      { stepId: "done", type: "TASK", taskId: "noop", transitions: { default: "failing" } },
      {
        stepId: "failing",
        type: "TASK",
        taskId: "fail",
        input: { type: "Refused" },
        retry: { maxAttempts: 1 },
      },
    ],
    compensationSteps: [{ ...harm, stepId: "undo", compensationFor: "done" }],
  },
];

test("C16: suspects wait for a process of their own and are told so, wherever they stand; what crashes, stops or outlives an empty Redis there is counted and comes through", async (context) => {
  const installation = await openInstallation({
    workers: 1,
    env: { MILLRACE_CELLS: "2", MILLRACE_GRACE: "PT0S", MILLRACE_METRICS_PORT: "0" },
  });
  context.onTestFinished(() => installation.close());
  const { client, ledger, stack } = installation;
  for (const definition of definitions) await client.definitions.register(definition);
  let letGo = () => {};
  const gate = new Promise<void>((resolve) => (letGo = resolve));
  ledger.answer({
    until: async ({ details }) => {
      if (details["kind"] === "run" && Number(details["deliveries"]) <= 3) await gate;
    },
  });
  const start = async (workflowId: string, input: JsonObject) =>
    (await client.instances.start({ workflowId, input })).id;
  const signals = (signal: string) => ({ orders: { signals: { 3: signal } } });

  const ids = {
    crashing: await start("plain", signals("SIGSEGV")),
    stopping: await start("plain", signals("SIGSTOP")),
    items: await start("items", { items: [{ signals: { 3: "SIGBUS" } }, {}] }),
    // Its process is to end with its worker alone.
    parent: await start("parent", signals("SIGTERM SIGINT SIGHUP SIGQUIT SIGUSR2 SIGALRM")),
    undone: await start("undone", { orders: {} }),
  };
  const runs = (deliveries: number) =>
    ledger.entries.filter(
      ({ details }) => details["kind"] === "run" && details["deliveries"] === deliveries,
    );
  const suspects = 6;
  for (const deliveries of [1, 2]) {
    await eventually(`delivery ${deliveries} of all`, () => runs(deliveries).length === suspects, {
      timeoutMs: 60_000,
    });
    // As if all had begun in one moment: of none of them is guessed then that it has ended the worker.
    await installation.query("update step_executions set started_at = created_at::date");
    for (const pid of stack.pids().worker) kill(pid);
  }
  await eventually("two that run alone", () => runs(3).length === 2, { timeoutMs: 60_000 });
  const children = await client.instances.list({ workflowId: "plain" });
  const reasons = await Promise.all(
    [...new Set([...Object.values(ids), ...children.items.map(({ id }) => id)])].map(
      async (id) => (await client.instances.why(id)).reasons,
    ),
  );
  await installation.withRedis((redis) => redis.flushall());
  letGo();
  const ended = await Promise.all(
    Object.values(ids).map((id) => client.instances.wait(id, { timeoutMs: 90_000 })),
  );

  const waiting = reasons.flat().filter(({ kind }) => kind === "QUEUED_ALONE");
  expect(waiting).toHaveLength(suspects - 2);
  for (const each of waiting) expect(each).toMatchObject({ deaths: 2, cells: 2, taken: 2 });
  expect(ended.map(({ status }) => status)).toEqual([
    ...Array<string>(4).fill("COMPLETED"),
    "FAILED",
  ]);
  expect(ended.at(-1)).toMatchObject({
    compensation: { status: "COMPLETED", completed: ["undo"] },
  });
  const died = await installation.query(
    "select step_id, lapses from step_executions where lapses > 2",
  );
  expect(died).toEqual(Array.from({ length: 3 }, () => ({ step_id: "harm", lapses: 3 })));
  expect(runs(4)).toHaveLength(3);
  const alone = runs(3)
    .concat(runs(4))
    .map(({ details }) => Number(details["pid"]));
  for (const { pid } of installation.events) expect(alone).not.toContain(pid);
  expect(await countedByWorker(installation.logs())).toBe(suspects);
  await expectNothingLeft(installation);
}, 180_000);

/** Attempts of the task that the last worker says have ended well. */
async function countedByWorker(logs: string): Promise<number> {
  const port = logs
    .split("\n")
    .filter((line) => line.includes("metrics are served") && line.includes('"name":"worker"'))
    .map((line) => (JSON.parse(line) as { readonly port: number }).port)
    .at(-1);
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  const counted = /^millrace_steps_total\{task="witness",outcome="\w+"\} (\d+)$/m.exec(text);
  return Number(counted?.[1]);
}
