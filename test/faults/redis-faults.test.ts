import { setTimeout as sleep } from "node:timers/promises";
import { MillraceApiError } from "@millrace/client";
import type { InstanceView, WorkflowDefinition } from "@millrace/contract";
import { eventually } from "@millrace/testkit";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { cpuTaken } from "../support/cpu.ts";
import { openInstallation, replaceByKilling, type Installation } from "../support/installation.ts";
import { expectNothingLeft } from "../support/leftovers.ts";

// Redis is the current and not the truth: whatever becomes of it, what was answered 2xx happens.

let installation: Installation;
beforeAll(async () => {
  installation = await openInstallation();
  for (const definition of [threeSteps, delayed]) {
    await installation.client.definitions.register(definition);
  }
});
afterAll(() => installation?.close());
afterEach(() => expectNothingLeft(installation));

const threeSteps: WorkflowDefinition = {
  id: "three_steps",
  steps: ["one", "two", "three"].map((stepId, index, all) => ({
    stepId,
    type: "TASK" as const,
    taskId: "noop",
    ...(all[index + 1] === undefined ? {} : { transitions: { default: all[index + 1] ?? "" } }),
  })),
};

const delayed: WorkflowDefinition = {
  id: "delayed",
  steps: [
    {
      stepId: "delay",
      type: "DELAY",
      duration: "${ workflow.input.delay }",
      transitions: { default: "after" },
    },
    { stepId: "after", type: "TASK", taskId: "noop" },
  ],
};

test("C20: a full Redis costs no start: all are kept, across a restart, and run when there is room", async ({
  annotate,
}) => {
  await installation.withRedis(async (redis) => {
    const used = /^used_memory:(\d+)/m.exec(await redis.info("memory"))?.[1] ?? "1";
    await redis.config("SET", "maxmemory", used);
  });
  const { accepted, refused } = await startMany("full", threeSteps.id, 200);

  const { api, scheduler, worker } = installation.stack.pids();
  await replaceByKilling(installation, [...api, ...scheduler, ...worker]);
  const after = await startMany("full-restarted", threeSteps.id, 20);
  await sleep(2_000);
  await installation.withRedis((redis) => redis.config("SET", "maxmemory", "0"));
  const roomAt = performance.now();

  expect([...refused, ...after.refused].filter((status) => status !== 503)).toEqual([]);
  await expectAllCompleted([...accepted, ...after.accepted]);
  await annotate(`all done ${Math.round(performance.now() - roomAt)} ms after there was room`);
}, 120_000);

test("C22: timers due while connections are cut again and again fire once and never early", async ({
  annotate,
}) => {
  const cut = (async () => {
    for (let times = 0; times < 5; times += 1) {
      await sleep(2_500);
      await installation.withRedis((redis) =>
        redis.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"),
      );
    }
  })();
  const { accepted } = await startMany("cut", delayed.id, 200, (index) => ({
    delay: `PT${1 + (index % 100) / 10}S`,
  }));
  const ended = await expectAllCompleted(accepted);
  await cut;

  const [late] = await installation.query<{ early: number; late: number; times: number }>(
    `select
       min(extract(epoch from completed_at - started_at) * 1000
         - extract(epoch from ('PT' || substr(i.input->>'delay', 3))::interval) * 1000)::float as early,
       max(extract(epoch from completed_at - started_at) * 1000
         - extract(epoch from ('PT' || substr(i.input->>'delay', 3))::interval) * 1000)::float as late,
       count(*)::int as times
     from (select e.instance_id, e.started_at, e.completed_at, i.input
             from step_executions e join workflow_instances i
               on (i.tenant_id, i.id) = (e.tenant_id, e.instance_id)
             where e.step_id = 'delay' and e.instance_id = any($1::uuid[])) as i`,
    [accepted],
  );
  expect(late?.times).toBe(ended.length);
  expect(late?.early).toBeGreaterThanOrEqual(-1);
  const fired = await installation.query(
    `select instance_id from history, json_array_elements(signals) as signal
     where instance_id = any($1::uuid[]) and signal->>'kind' = 'timerFired'`,
    [accepted],
  );
  expect(fired).toHaveLength(ended.length);
  await annotate(`latest of 200 timers: ${Math.round(late?.late ?? 0)} ms after its time`);
}, 120_000);

test("C24: Redis killed and back empty during 500 starts: every start that was accepted runs", async ({
  annotate,
}) => {
  const starting = startMany("failover", threeSteps.id, 500);
  await sleep(300);
  await installation.stack.redis?.stop("kill");
  await sleep(1_000);
  await installation.stack.redis?.start();
  const backAt = performance.now();

  const { accepted, refused } = await starting;
  expect(refused.filter((status) => status !== 503)).toEqual([]);
  await expectAllCompleted(accepted);
  await annotate(
    `${accepted.length} accepted; all done ${Math.round(performance.now() - backAt)} ms after Redis was back`,
  );
}, 120_000);

test("with Redis away at the start of all processes they come up, take work, and do it once it is back", async ({
  annotate,
}) => {
  const { stack, client } = installation;
  await stack.redis?.stop("kill");
  const { api, scheduler, worker } = stack.pids();
  await replaceByKilling(installation, [...api, ...scheduler, ...worker]);

  const readiness = await client.readiness();
  const { accepted, refused } = await startMany("away", threeSteps.id, 50);
  const timers = await startMany("away-timers", delayed.id, 10, () => ({ delay: "PT0.5S" }));
  expect([readiness.status, refused, timers.refused]).toEqual(["ok", [], []]);
  // They wait, and do not spin.
  const taken = await cpuTaken(Object.values(stack.pids()).flat(), 3_000);
  expect(Math.max(0, ...taken)).toBeLessThan(1_500);
  await stack.redis?.start();
  const backAt = performance.now();

  await expectAllCompleted([...accepted, ...timers.accepted]);
  await annotate(`all done ${Math.round(performance.now() - backAt)} ms after Redis was back`);
}, 120_000);

async function startMany(
  correlationId: string,
  workflowId: string,
  count: number,
  inputOf: (index: number) => { readonly [name: string]: string } = () => ({}),
) {
  const accepted: string[] = [];
  const refused: number[] = [];
  const lane = async (from: number) => {
    for (let index = from; index < count; index += 8) {
      const request = { workflowId, correlationId, input: inputOf(index) };
      try {
        accepted.push((await installation.client.instances.start(request)).id);
      } catch (error) {
        if (!(error instanceof MillraceApiError)) throw error;
        refused.push(error.status);
      }
    }
  };
  await Promise.all(Array.from({ length: 8 }, (_, index) => lane(index)));
  return { accepted, refused };
}

async function expectAllCompleted(ids: readonly string[]): Promise<readonly InstanceView[]> {
  const found = await eventually(
    `the completion of ${ids.length} instances`,
    async () => {
      const instances: InstanceView[] = [];
      for (let from = 0; from < ids.length; from += 500) {
        const some = { ids: ids.slice(from, from + 500), limit: 500 };
        instances.push(...(await installation.client.instances.list(some)).items);
      }
      const open = instances.filter(({ status }) => status !== "COMPLETED");
      return open.length === 0 && instances.length === ids.length ? instances : undefined;
    },
    { timeoutMs: 90_000, intervalMs: 250 },
  );
  return found;
}
