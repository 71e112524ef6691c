import { setTimeout as sleep } from "node:timers/promises";
import type { WorkflowDefinition } from "@millrace/contract";
import { eventually, freeze, thaw } from "@millrace/testkit";
import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openInstallation, replaceByKilling, type Installation } from "../support/installation.ts";
import { expectNothingLeft } from "../support/leftovers.ts";

// Processes that stop between two steps of a protocol, wherever that happens to be.

let installation: Installation;
beforeAll(async () => {
  installation = await openInstallation({ schedulers: 2 });
  for (const definition of [waiting, timed]) {
    await installation.client.definitions.register(definition);
  }
});
afterAll(() => installation?.close());

const waiting: WorkflowDefinition = {
  id: "c02",
  steps: [
    { stepId: "gate", type: "TASK", taskId: "gate", transitions: { default: "wait" } },
    {
      stepId: "wait",
      type: "EVENT_WAIT",
      eventPattern: "c02",
      eventCondition: "event.payload.key === workflow.input.key",
      lookback: "instance",
    },
  ],
};

const timed: WorkflowDefinition = {
  id: "c14",
  steps: [
    {
      stepId: "wait",
      type: "EVENT_WAIT",
      eventPattern: "c14",
      eventCondition: "event.payload.key === workflow.input.key",
      eventTimeout: { duration: "PT0.5S", timeoutHandlerStepId: "late" },
      transitions: { default: "met" },
    },
    { stepId: "met", type: "TASK", taskId: "echo", input: { by: "event" } },
    { stepId: "late", type: "TASK", taskId: "echo", input: { by: "timeout" } },
  ],
};

test("C02: a worker that stops or dies while it opens waits leaves none without its row, and every event arrives", async () => {
  const { client, ledger, stack, query } = installation;
  const key = (index: number) => `c02-${index}`;
  let strays = 0;
  const watching = new AbortController();
  const watch = (async () => {
    while (!watching.signal.aborted) {
      strays += (await query(waitingWithoutWait)).length;
      await sleep(20);
    }
  })();

  const ids: string[] = [];
  for (let round = 0; round < 6; round += 1) {
    let letGo = () => {};
    const held = new Promise<void>((resolve) => (letGo = resolve));
    ledger.clear();
    ledger.answer({ until: () => held });
    const indexes = Array.from({ length: 20 }, (_, index) => round * 20 + index);
    const started = await client.instances.startBatch(
      indexes.map((index) => ({ workflowId: "c02", input: { key: key(index) } })),
    );
    ids.push(...started.results.map(({ instance }) => instance?.id ?? ""));
    await eventually("the tasks to stand at the gate", () => ledger.entries.length >= 20, {
      timeoutMs: 60_000,
    });

    letGo();
    ledger.clear();
    await sleep(round);
    const victims = stack.pids().worker;
    const isKilled = round === 1 || round === 4;
    const replaced = isKilled ? replaceByKilling(installation, victims) : undefined;
    if (!isKilled) for (const pid of victims) freeze(pid);
    await Promise.all(
      indexes.map((index) =>
        client.events.publish({ pattern: "c02", payload: { key: key(index) } }),
      ),
    );
    await sleep(100);
    if (!isKilled) for (const pid of victims) thaw(pid);
    await replaced;
  }

  const ended = await Promise.all(
    ids.map((id) => client.instances.wait(id, { timeoutMs: 90_000 })),
  );
  watching.abort();
  await watch;
  expect(ended.filter(({ status }) => status !== "COMPLETED")).toEqual([]);
  expect(strays).toBe(0);
  await expectNothingLeft(installation);
}, 180_000);

test("C14: a scheduler that stood still between its look and its act changes nothing that has moved on", async () => {
  const { client, stack, query } = installation;
  const stopping = new AbortController();
  const stop = (async () => {
    for (let round = 0; !stopping.signal.aborted; round += 1) {
      const pids = stack.pids().scheduler;
      const pid = pids[round % pids.length];
      if (pid === undefined) continue;
      freeze(pid);
      await sleep(150 + ((round * 37) % 300));
      thaw(pid);
      await sleep(20 + ((round * 13) % 60));
    }
  })();

  const outcomes = await Promise.all(
    Array.from({ length: 300 }, async (_, index) => {
      await sleep(index * 20);
      const key = `c14-${index}`;
      const { id } = await client.instances.start({ workflowId: "c14", input: { key } });
      // Most meet the timeout; on a machine that is late with all of them, some still come before it.
      await sleep(index % 10 === 0 ? 0 : 470 + (index % 60));
      const { delivered } = await client.events.publish({ pattern: "c14", payload: { key } });
      return { delivered, instance: await client.instances.wait(id, { timeoutMs: 60_000 }) };
    }),
  );
  stopping.abort();
  await stop;
  // Whatever the schedulers took and did not get to is tried again before it is forgotten.
  await sleep(6_000);

  for (const { delivered, instance } of outcomes) {
    expect(instance).toMatchObject({
      status: "COMPLETED",
      output: { by: delivered === 1 ? "event" : "timeout" },
    });
    const now = await client.instances.get(instance.id);
    expect(now).toEqual(instance);
  }
  const sides = new Set(outcomes.map(({ delivered }) => delivered));
  expect(sides).toEqual(new Set([0, 1]));
  const twice = await query(
    `select instance_id from step_executions where path in ('met', 'late') group by 1 having count(*) > 1`,
  );
  expect(twice).toEqual([]);
  await expectNothingLeft(installation);
}, 120_000);

const undoable: WorkflowDefinition = {
  id: "undoable",
  steps: [{ stepId: "one", type: "TASK", taskId: "witness" }],
  compensationSteps: [
    { stepId: "undo_one", compensationFor: "one", type: "TASK", taskId: "witness" },
  ],
};

test("P11: a step that was claimed before a cancel and not begun for lack of its definition never begins, and holds nothing up", async () => {
  const { client, environment, ledger, query, stack } = installation;
  ledger.clear();
  await client.definitions.register(undoable);
  const blocker = new pg.Client({ connectionString: environment["DATABASE_URL"] });
  await blocker.connect();
  const workers = stack.pids().worker;
  for (const pid of workers) freeze(pid);
  const { id } = await client.instances.start({ workflowId: "undoable", input: {} });
  // The worker, which meets the definition for the first time, cannot read it.
  await blocker.query("begin");
  await blocker.query("lock table workflow_definitions in access exclusive mode");
  for (const pid of workers) thaw(pid);
  await eventually("the claim", async () => (await query(claimedOf, [id])).length > 0);
  await client.instances.cancel(id, { reason: "no more" });
  await sleep(1_500);
  await blocker.end();

  const ended = await client.instances.wait(id, { timeoutMs: 60_000 });
  expect(ended).toMatchObject({
    status: "CANCELLED",
    state: { steps: { one: { status: "CANCELLED" } } },
    compensation: { status: "COMPLETED", plan: [], uncertain: [] },
  });
  expect(ledger.entries).toEqual([]);
  await expectNothingLeft(installation);
});

const claimedOf = "select from step_executions where instance_id = $1 and status = 'RUNNING'";

test("C10: of a worker and a scheduler that stop with an event or a timeout in hand, and those that go on, the wait has one outcome", async () => {
  const { client, stack } = installation;
  const count = 80;
  const key = (index: number) => `c10-${index}`;
  const outcomes: string[] = [];
  for (let round = 0; round < 4; round += 1) {
    const indexes = Array.from({ length: count / 4 }, (_, index) => (round * count) / 4 + index);
    const { results } = await client.instances.startBatch(
      indexes.map((index) => ({ workflowId: "c14", input: { key: key(index) } })),
    );
    const ids = results.map(({ instance }) => instance?.id ?? "");
    // Half of the events long before the timeout, half of them about then.
    const [early, late] = [ids.slice(0, ids.length / 2), ids.slice(ids.length / 2)];
    const publish = async (some: readonly string[], from: number) =>
      Promise.all(
        some.map(async (_id, index) => {
          const payload = { key: key((indexes[from] ?? 0) + index) };
          return (await client.events.publish({ pattern: "c14", payload })).delivered;
        }),
      );
    const victims = [stack.pids().worker[round % 2], stack.pids().scheduler[round % 2]].flatMap(
      (pid) => pid ?? [],
    );

    const soon = publish(early, 0);
    await sleep(round * 4);
    for (const pid of victims) freeze(pid);
    await sleep(400 + round * 60);
    const delivered = [...(await soon), ...(await publish(late, early.length))];
    const ended = await Promise.all(
      ids.map((id) => client.instances.wait(id, { timeoutMs: 60_000 })),
    );
    for (const pid of victims) thaw(pid);
    await sleep(1_500);

    for (const [index, instance] of ended.entries()) {
      const by = delivered[index] === 1 ? "event" : "timeout";
      outcomes.push(by);
      expect(instance).toMatchObject({ status: "COMPLETED", output: { by } });
      expect(await client.instances.get(instance.id)).toEqual(instance);
      const { items } = await client.instances.history(instance.id);
      const told = items.filter(({ stepId, type }) => stepId === "wait" && isOutcome.test(type));
      expect(told).toHaveLength(1);
    }
  }

  expect(new Set(outcomes)).toEqual(new Set(["event", "timeout"]));
  await expectNothingLeft(installation);
}, 120_000);

const isOutcome = /^workflow\.step\.(completed|failed)$/;

const waitingWithoutWait = `
  select from workflow_instances i
  where i.status = 'WAITING_FOR_EVENT' and i.workflow_id = 'c02'
    and not exists (select from waits w where (w.tenant_id, w.instance_id) = (i.tenant_id, i.id)
                      and w.purpose = 'STEP')`;
