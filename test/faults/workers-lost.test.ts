import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { WorkflowDefinition } from "@millrace/contract";
import { createTemporaryFolder, eventually, kill } from "@millrace/testkit";
import { expect, test, type TestContext } from "vitest";
import {
  openInstallation,
  type Installation,
  type InstallationOptions,
} from "../support/installation.ts";
import { expectNothingLeft } from "../support/leftovers.ts";

// Tasks that harm the worker that runs them. Most of the time passes waiting for other workers to
// find out, so these run beside each other.

const definition: WorkflowDefinition = {
  id: "harmful",
  steps: [
    {
      stepId: "harm",
      type: "TASK",
      taskId: "witness",
      input: "workflow.input",
      retry: { maxAttempts: 3 },
    },
  ],
};

test.concurrent("C11: a task that blocks the event loop for longer than the job's lock has one outcome, under one key", async (context) => {
  const installation = await open(context, { workers: 2 });
  const { client, ledger } = installation;

  const { id } = await client.instances.start({
    workflowId: definition.id,
    input: { blockMs: 45_000 },
  });
  const ended = await client.instances.wait(id, { timeoutMs: 150_000 });

  const runs = ledger.entries.filter(({ details }) => details["kind"] === "run");
  expect(new Set(runs.map(({ idempotencyKey }) => idempotencyKey)).size).toBe(1);
  expect(ended).toMatchObject({ status: "COMPLETED" });
  expect(ended.state.steps["harm"]).toMatchObject({ attempts: 1, deliveries: runs.length });
  expect(runs.map(({ seq }) => seq)).toContain((ended.output as { record: number }).record);
  const { items } = await client.instances.history(id);
  expect(items.filter(({ type }) => type === "workflow.step.completed")).toHaveLength(1);
  await context.annotate(`${runs.length} runs`);
  await expectNothingLeft(installation);
}, 180_000);

test.concurrent("C16: runs cut short by the worker's death are counted, and are not attempts", async (context) => {
  const installation = await open(context, { workers: 1 });
  const { client, ledger } = installation;

  const { id } = await client.instances.start({
    workflowId: definition.id,
    input: { deaths: 3 },
  });
  await eventually("the third run", () => ledger.entries.length === 3, { timeoutMs: 120_000 });
  const { state } = await client.instances.get(id);
  const ended = await client.instances.wait(id, { timeoutMs: 120_000 });

  expect(state.steps["harm"]).toMatchObject({ attempts: 1, deliveries: 3 });
  expect(ended).toMatchObject({ status: "COMPLETED" });
  expect(ended.state.steps["harm"]).toMatchObject({ attempts: 1, deliveries: 4 });
  expect(new Set(ledger.entries.map(({ idempotencyKey }) => idempotencyKey)).size).toBe(1);
  await expectNothingLeft(installation);
}, 180_000);

test.concurrent("C16: a step that kills its worker five times is poisoned, and the workers live on", async (context) => {
  const installation = await open(context, { workers: 1 });
  const { client, ledger } = installation;

  const { id } = await client.instances.start({
    workflowId: definition.id,
    input: { deaths: 100 },
  });
  const ended = await eventually(
    "the end",
    async () => {
      const instance = await client.instances.get(id);
      return instance.status === "FAILED" ? instance : undefined;
    },
    { timeoutMs: 150_000, intervalMs: 250 },
  );
  const healthy = await client.instances.start({ workflowId: definition.id, input: {} });

  expect(ended).toMatchObject({ error: { kind: "POISONED", stepId: "harm" } });
  expect(ended.state.steps["harm"]).toMatchObject({
    status: "FAILED",
    attempts: 1,
    deliveries: 5,
  });
  expect(ledger.entries.filter(({ instance }) => instance === id)).toHaveLength(5);
  const after = await client.instances.wait(healthy.id, { timeoutMs: 60_000 });
  expect(after).toMatchObject({ status: "COMPLETED" });
  await expectNothingLeft(installation);
}, 180_000);

test.concurrent("C16: what killed its workers can be discarded, which undoes what was done, or retried once the fault is gone; those beside it come through", async (context) => {
  const installation = await open(context, { workers: 2 });
  const { client, ledger } = installation;
  const folder = await createTemporaryFolder();
  context.onTestFinished(() => folder.remove());
  const file = join(folder.path, "deadly");
  await writeFile(file, "");
  await client.definitions.register({
    id: "deadly",
    steps: [
      { stepId: "pay", type: "TASK", taskId: "noop", transitions: { default: "harm" } },
      { stepId: "harm", type: "TASK", taskId: "witness", input: "workflow.input" },
    ],
    compensationSteps: [{ stepId: "refund", compensationFor: "pay", type: "TASK", taskId: "noop" }],
  });
  const start = async () =>
    (await client.instances.start({ workflowId: "deadly", input: { deadlyWhile: file } })).id;

  const [discarded, retried] = [await start(), await start()];
  const beside = await Promise.all(
    Array.from({ length: 10 }, () =>
      client.instances.start({ workflowId: definition.id, input: { ms: 200 } }),
    ),
  );
  const letterOf = (id: string) =>
    eventually(
      "the dead letter",
      async () => (await client.deadLetters.list({ instanceId: id })).items[0],
      { timeoutMs: 150_000, intervalMs: 250 },
    );
  const [one, other] = await Promise.all([letterOf(discarded), letterOf(retried)]);
  await rm(file);
  await client.deadLetters.discard(one.id, { reason: "not worth it" });
  await client.deadLetters.retry(other.id, { reason: "mended" });
  const [undone, done] = await Promise.all(
    [discarded, retried].map((id) => client.instances.wait(id, { timeoutMs: 60_000 })),
  );

  for (const { deliveries, attempt } of [one, other]) {
    expect(attempt).toBe(1);
    expect(deliveries).toHaveLength(5);
    for (const { pid, lastBeatAt, rssBytes, exit } of deliveries) {
      expect(ledger.entries.map(({ details }) => details["pid"])).toContain(pid);
      expect(lastBeatAt).not.toBeNull();
      expect(rssBytes).toBeGreaterThan(10_000_000);
      expect(exit).toBe("SIGKILL");
    }
  }
  expect(undone).toMatchObject({
    status: "FAILED",
    error: { kind: "POISONED" },
    compensation: { status: "COMPLETED", completed: ["refund"] },
  });
  expect(done).toMatchObject({ status: "COMPLETED", error: null, compensation: null });
  for (const { id } of beside) {
    expect(await client.instances.wait(id, { timeoutMs: 60_000 })).toMatchObject({
      status: "COMPLETED",
    });
  }
  expect((await client.deadLetters.list()).items).toEqual([]);
  await expectNothingLeft(installation);
}, 240_000);

test.concurrent("C16: steps that kill their workers are poisoned by their own deaths alone, and cost those beside them neither their outcome nor much time", async (context) => {
  const installation = await open(context, { workers: 2 });
  const { client, ledger } = installation;
  const start = async (input: Readonly<Record<string, number>>) =>
    (await client.instances.start({ workflowId: definition.id, input })).id;
  const innocents: string[] = [];
  const killers: string[] = [];

  for (let n = 0; n < 2; n += 1) {
    innocents.push(await start({ ms: 3_000 }), await start({ ms: 3_000 }));
    killers.push(await start({ deaths: 100, ...(n === 0 && { exitCode: 7 }) }));
  }
  const poisoned = await eventually(
    "the dead letters",
    async () => {
      const { items } = await client.deadLetters.list();
      return items.length === killers.length ? items : undefined;
    },
    { timeoutMs: 150_000, intervalMs: 250 },
  );
  for (const id of innocents) {
    expect(await client.instances.wait(id, { timeoutMs: 60_000 })).toMatchObject({
      status: "COMPLETED",
    });
  }

  expect(poisoned.map(({ instanceId }) => instanceId).toSorted()).toEqual(killers.toSorted());
  for (const { instanceId, deliveries } of poisoned) {
    // The first two deaths may be anybody's; from then on it dies alone, of itself.
    const own = deliveries.slice(2);
    const exit = instanceId === killers[0] ? "exit code 7" : "SIGKILL";
    expect(own.map((each) => each.exit)).toEqual([exit, exit, exit]);
    const pids = own.map(({ pid }) => pid);
    for (const { pid } of installation.events) expect(pids).not.toContain(pid);
    expect(new Set(pids).size).toBe(3);
    const beside = ledger.entries.filter(({ details }) =>
      pids.slice(1).includes(Number(details["pid"])),
    );
    expect(new Set(beside.map(({ instance }) => instance))).toEqual(new Set([instanceId]));
  }
  await expectNothingLeft(installation);
  await installation.close();
  expect(alive(installation)).toEqual([]);
}, 240_000);

test.concurrent("C16: a step that runs alone outlives its worker's end, be it asked to or killed, and neither is a death of the step", async (context) => {
  const installation = await open(context, { workers: 1, env: { MILLRACE_GRACE: "PT1S" } });
  const { client, ledger, stack } = installation;
  const never = new Promise(() => {});
  ledger.answer({
    until: async ({ details }) => {
      if (details["kind"] === "run" && [3, 4].includes(Number(details["deliveries"]))) await never;
    },
  });
  const run = (deliveries: number) =>
    eventually(
      `run ${deliveries}`,
      () => ledger.entries.find(({ details }) => details["deliveries"] === deliveries),
      { timeoutMs: 60_000 },
    );

  const { id } = await client.instances.start({
    workflowId: definition.id,
    input: { deaths: 2 },
  });
  for (const [deliveries, signal] of [
    [3, "SIGTERM"],
    [4, "SIGKILL"],
  ] as const) {
    const { details } = await run(deliveries);
    const [worker = 0] = stack.pids().worker;
    expect(details["pid"]).not.toBe(worker);
    process.kill(worker, signal);
  }
  const ended = await client.instances.wait(id, { timeoutMs: 60_000 });

  expect(ended).toMatchObject({ status: "COMPLETED" });
  expect(ended.state.steps["harm"]).toMatchObject({ attempts: 1, deliveries: 5 });
  const rows = await installation.query("select lapses from step_executions");
  expect(rows).toEqual([{ lapses: 2 }]);
  await expectNothingLeft(installation);
  await installation.close();
  expect(alive(installation)).toEqual([]);
}, 180_000);

test.concurrent("C16: a step that runs alone keeps its process neither by blocking it nor by closing its channel", async (context) => {
  const installation = await open(context, {
    workers: 1,
    env: { MILLRACE_GRACE: "PT0.2S", MILLRACE_CELLS: "1" },
  });
  const { client, ledger } = installation;
  const harm = { stepId: "harm", type: "TASK", taskId: "witness", input: "input" } as const;
  const retry = { maxAttempts: 1 };
  await client.definitions.register({
    id: "bounded",
    steps: [{ ...harm, timeout: "PT3S", retry }],
  });
  const start = async (workflowId: string, input: Record<string, unknown>) =>
    (await client.instances.start({ workflowId, input: { deaths: 2, alone: 3, ...input } })).id;

  const blocking = await start("bounded", { blocks: true });
  const timedOut = await client.instances.wait(blocking, { timeoutMs: 120_000 });
  const closing = await start(definition.id, { disconnects: true });
  const poisoned = await eventually(
    "the dead letter",
    async () => (await client.deadLetters.list()).items[0],
    { timeoutMs: 150_000, intervalMs: 250 },
  );

  expect(timedOut).toMatchObject({ status: "FAILED", error: { kind: "TIMEOUT" } });
  // From its first line on: the third run tells nobody that it has begun.
  expect(ledger.entries.filter(({ instance }) => instance === blocking)).toHaveLength(2);
  expect(poisoned).toMatchObject({ instanceId: closing });
  const exits = poisoned.deliveries.slice(2).map(({ exit }) => exit);
  expect(exits).toEqual(Array(3).fill("it had closed the channel to its worker"));
  await expectNothingLeft(installation);
  await installation.close();
  expect(alive(installation)).toEqual([]);
}, 240_000);

test.concurrent("C16: attempts that failed are not counted as deaths of their workers", async (context) => {
  const installation = await open(context, { workers: 1 });
  const { client, ledger } = installation;
  await client.definitions.register({
    id: "failing",
    steps: [
      {
        stepId: "harm",
        type: "TASK",
        taskId: "witness",
        input: { failures: 6 },
        retry: { maxAttempts: 10, initialInterval: "PT0S" },
      },
    ],
  });
  ledger.answer({ when: { attempt: 7 }, times: 1, until: () => new Promise(() => {}) });

  const { id } = await client.instances.start({ workflowId: "failing" });
  const seventh = await eventually(
    "the seventh attempt",
    () => ledger.entries.find(({ attempt }) => attempt === 7),
    { timeoutMs: 60_000 },
  );
  kill(Number(seventh.details["pid"]));
  const ended = await client.instances.wait(id, { timeoutMs: 60_000 });

  expect(ended).toMatchObject({ status: "COMPLETED" });
  expect(ended.state.steps["harm"]).toMatchObject({ attempts: 7, deliveries: 2 });
  await expectNothingLeft(installation);
}, 180_000);

test.concurrent("C16: hand-overs at the end of workers are not counted as deaths", async (context) => {
  const installation = await open(context, { workers: 1, env: { MILLRACE_GRACE: "PT0S" } });
  const { client, ledger } = installation;
  const never = new Promise(() => {});
  ledger.answer({
    until: async ({ details }) => {
      if (details["kind"] === "run" && Number(details["deliveries"]) <= 5) await never;
    },
  });
  const runs = () => ledger.entries.filter(({ details }) => details["kind"] === "run");
  const { id } = await client.instances.start({ workflowId: definition.id, input: {} });

  // Four rollouts in the middle of one step, and a death after them.
  for (let run = 1; run <= 5; run += 1) {
    const entry = await eventually(`run ${run}`, () => runs()[run - 1], { timeoutMs: 60_000 });
    process.kill(Number(entry.details["pid"]), run < 5 ? "SIGTERM" : "SIGKILL");
  }
  const ended = await client.instances.wait(id, { timeoutMs: 60_000 });

  expect(ended).toMatchObject({ status: "COMPLETED" });
  expect(ended.state.steps["harm"]).toMatchObject({ attempts: 1, deliveries: 6 });
  await expectNothingLeft(installation);
}, 180_000);

test.concurrent("C37: a cancelled task that does not stop gives its place in the worker back all the same", async (context) => {
  const installation = await open(context, { workers: 1, env: { MILLRACE_CONCURRENCY: "1" } });
  const { client, ledger } = installation;
  const slow = await client.instances.start({
    workflowId: definition.id,
    input: { ms: 60_000, stubborn: true },
  });
  await eventually("the task to run", () => ledger.entries.length === 1);

  await client.instances.cancel(slow.id, { reason: "make room" });
  const next = await client.instances.start({ workflowId: definition.id, input: {} });
  const ended = await client.instances.wait(next.id, { timeoutMs: 45_000 });

  expect(ended).toMatchObject({ status: "COMPLETED" });
  const told = (id: string, kind: string) =>
    ledger.entries.filter(({ instance, details }) => instance === id && details["kind"] === kind);
  expect(told(slow.id, "aborted")).toHaveLength(1);
  expect(told(slow.id, "outcome")).toHaveLength(0);
  await expectNothingLeft(installation);
}, 180_000);

/** Of the processes in which tasks have run. */
function alive({ ledger }: Installation): readonly number[] {
  const pids = new Set(ledger.entries.map(({ details }) => Number(details["pid"])));
  return [...pids].filter(isAlive);
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

async function open(
  { onTestFinished }: TestContext,
  options: InstallationOptions,
): Promise<Installation> {
  const installation = await openInstallation(options);
  onTestFinished(() => installation.close());
  await installation.client.definitions.register(definition);
  return installation;
}
