import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { JsonValue, WorkflowDefinition } from "@millrace/contract";
import { createTemporaryFolder, eventually, kill, type LedgerEntry } from "@millrace/testkit";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  openInstallation,
  openOwnWorkers,
  type Installation,
  type OwnWorkers,
  type OwnWorkersOptions,
} from "../support/installation.ts";
import { expectNothingLeft } from "../support/leftovers.ts";

// Tasks that harm the worker that runs them. Most of the time passes waiting for other workers to
// find out, so these run beside each other: in one installation, each with workers of its own.

let installation: Installation;
const opened: OwnWorkers[] = [];
beforeAll(async () => {
  installation = await openInstallation({ workers: 0 });
});
afterAll(async () => {
  await expectNothingLeft(installation);
  await Promise.all(opened.map((workers) => workers.close()));
  await installation.close();
}, 120_000);

/** Workers of its own, and a workflow whose step harms them as the input says. */
async function open(options: OwnWorkersOptions) {
  const workers = await openOwnWorkers(installation, options);
  opened.push(workers);
  const { queue } = workers;
  const harm = { stepId: "harm", type: "TASK", taskId: "witness", queue } as const;
  const definition: WorkflowDefinition = {
    id: `harmful-${queue}`,
    steps: [{ ...harm, input: "workflow.input", retry: { maxAttempts: 3 } }],
  };
  const { client, ledger } = installation;
  await client.definitions.register(definition);
  return {
    workers,
    queue,
    client,
    start: async (input: JsonValue = {}, workflowId = definition.id) =>
      (await client.instances.start({ workflowId, input })).id,
    entriesOf: (...ids: readonly string[]) =>
      ledger.entries.filter(({ instance }) => ids.includes(instance)),
    letterOf: (id: string) =>
      eventually(
        "the dead letter",
        async () => (await client.deadLetters.list({ instanceId: id })).items[0],
        { timeoutMs: 150_000, intervalMs: 250 },
      ),
  };
}

test.concurrent("C11: a task that blocks the event loop for longer than the job's lock has one outcome, under one key", async (context) => {
  const { client, start, entriesOf } = await open({ workers: 2 });

  const id = await start({ blockMs: 45_000 });
  const ended = await client.instances.wait(id, { timeoutMs: 150_000 });

  const runs = entriesOf(id).filter(({ details }) => details["kind"] === "run");
  expect(new Set(runs.map(({ idempotencyKey }) => idempotencyKey)).size).toBe(1);
  expect(ended).toMatchObject({ status: "COMPLETED" });
  expect(ended.state.steps["harm"]).toMatchObject({ attempts: 1, deliveries: runs.length });
  expect(runs.map(({ seq }) => seq)).toContain((ended.output as { record: number }).record);
  const { items } = await client.instances.history(id);
  expect(items.filter(({ type }) => type === "workflow.step.completed")).toHaveLength(1);
  await context.annotate(`${runs.length} runs`);
}, 180_000);

test.concurrent.each(["timeout", "cancel"])(
  "a task that blocks the event loop for ever, and is ended by its %s, does not keep what runs beside it",
  async (by) => {
    const { client, queue, start, entriesOf } = await open({ workers: 1 });
    const id = `endless-${by}`;
    const timeout = by === "timeout" ? { timeout: "PT2S" } : {};
    const harm = {
      stepId: "harm",
      type: "TASK",
      taskId: "witness",
      input: "input",
      queue,
    } as const;
    await client.definitions.register({
      id,
      steps: [{ ...harm, ...timeout, retry: { maxAttempts: 1 } }],
    });

    const beside = await start({ ms: 4_000 });
    await eventually("its beginning", () => entriesOf(beside).length === 1);
    const endless = await start({ alone: 1, blocks: true }, id);
    await eventually("the end of its loop", async () => {
      const { state } = await client.instances.get(endless);
      return state.steps["harm"]?.status !== "PENDING";
    });
    if (by === "cancel") await client.instances.cancel(endless);
    const ended = await client.instances.wait(endless, { timeoutMs: 60_000 });
    const others = await client.instances.wait(beside, { timeoutMs: 120_000 });

    expect(ended.status).toBe(by === "timeout" ? "FAILED" : "CANCELLED");
    expect(others).toMatchObject({ status: "COMPLETED" });
    expect(others.state.steps["harm"]).toMatchObject({ attempts: 1, deliveries: 2 });
  },
  180_000,
);

test.concurrent("C16: runs cut short by the worker's death are counted, and are not attempts", async () => {
  const { client, start, entriesOf } = await open({ workers: 1 });

  const id = await start({ deaths: 3 });
  await eventually("the third run", () => entriesOf(id).length === 3, { timeoutMs: 120_000 });
  const { state } = await client.instances.get(id);
  const ended = await client.instances.wait(id, { timeoutMs: 120_000 });

  expect(state.steps["harm"]).toMatchObject({ attempts: 1, deliveries: 3 });
  expect(ended).toMatchObject({ status: "COMPLETED" });
  expect(ended.state.steps["harm"]).toMatchObject({ attempts: 1, deliveries: 4 });
  expect(new Set(entriesOf(id).map(({ idempotencyKey }) => idempotencyKey)).size).toBe(1);
}, 180_000);

test.concurrent("C16: what killed its workers five times is poisoned, and can be discarded, which undoes what was done, or retried once the fault is gone; those beside it come through, and the workers live on", async (context) => {
  const { client, queue, start, entriesOf, letterOf } = await open({
    workers: 2,
    takesDefaultQueue: true,
  });
  const folder = await createTemporaryFolder();
  context.onTestFinished(() => folder.remove());
  const file = join(folder.path, "deadly");
  await writeFile(file, "");
  const noop = { type: "TASK", taskId: "noop", queue } as const;
  await client.definitions.register({
    id: "deadly",
    steps: [
      { ...noop, stepId: "pay", transitions: { default: "harm" } },
      { ...noop, stepId: "harm", taskId: "witness", input: "workflow.input" },
    ],
    compensationSteps: [{ stepId: "refund", compensationFor: "pay", type: "TASK", taskId: "noop" }],
  });

  const [discarded, retried] = [
    await start({ deadlyWhile: file }, "deadly"),
    await start({ deadlyWhile: file }, "deadly"),
  ];
  const beside = await Promise.all(Array.from({ length: 10 }, () => start({ ms: 200 })));
  const [one, other] = await Promise.all([letterOf(discarded), letterOf(retried)]);
  await rm(file);
  await client.deadLetters.discard(one.id, { reason: "not worth it" });
  await client.deadLetters.retry(other.id, { reason: "mended" });
  const [undone, done] = await Promise.all(
    [discarded, retried].map((id) => client.instances.wait(id, { timeoutMs: 60_000 })),
  );
  const healthy = await start();

  const pids = entriesOf(discarded, retried).map(({ details }) => details["pid"]);
  for (const { deliveries, attempt } of [one, other]) {
    expect(attempt).toBe(1);
    expect(deliveries).toHaveLength(5);
    for (const { pid, lastBeatAt, rssBytes, exit } of deliveries) {
      expect(pids).toContain(pid);
      expect(lastBeatAt).not.toBeNull();
      expect(rssBytes).toBeGreaterThan(10_000_000);
      expect(exit).toBe("SIGKILL");
    }
  }
  expect(undone).toMatchObject({
    status: "FAILED",
    error: { kind: "POISONED", stepId: "harm" },
    compensation: { status: "COMPLETED", completed: ["refund"] },
  });
  expect(undone?.state.steps["harm"]).toMatchObject({
    status: "FAILED",
    attempts: 1,
    deliveries: 5,
  });
  expect(entriesOf(discarded)).toHaveLength(5);
  expect(done).toMatchObject({ status: "COMPLETED", error: null, compensation: null });
  for (const id of [...beside, healthy]) {
    expect(await client.instances.wait(id, { timeoutMs: 60_000 })).toMatchObject({
      status: "COMPLETED",
    });
  }
  const left = await client.deadLetters.list();
  expect(left.items.filter(({ workflowId }) => workflowId === "deadly")).toEqual([]);
}, 240_000);

test.concurrent("C16: steps that kill their workers are poisoned by their own deaths alone, and cost those beside them neither their outcome nor much time", async () => {
  const { client, workers, start, entriesOf, letterOf } = await open({ workers: 2 });
  const innocents: string[] = [];
  const killers: string[] = [];

  for (let n = 0; n < 2; n += 1) {
    innocents.push(await start({ ms: 3_000 }), await start({ ms: 3_000 }));
    killers.push(await start({ deaths: 100, ...(n === 0 && { exitCode: 7 }) }));
  }
  const poisoned = await Promise.all(killers.map(letterOf));
  for (const id of innocents) {
    expect(await client.instances.wait(id, { timeoutMs: 60_000 })).toMatchObject({
      status: "COMPLETED",
    });
  }

  for (const { instanceId, deliveries } of poisoned) {
    // The first two deaths may be anybody's; from then on it dies alone, of itself.
    const own = deliveries.slice(2);
    const exit = instanceId === killers[0] ? /^exit code 7, .*\n +at .*witness\.mjs/ : /^SIGKILL$/;
    expect(own.map((each) => each.exit)).toEqual(Array(3).fill(expect.stringMatching(exit)));
    const pids = own.map(({ pid }) => pid);
    for (const { pid } of workers.events) expect(pids).not.toContain(pid);
    expect(new Set(pids).size).toBe(3);
    const beside = entriesOf(...innocents, ...killers).filter(({ details }) =>
      pids.slice(1).includes(Number(details["pid"])),
    );
    expect(new Set(beside.map(({ instance }) => instance))).toEqual(new Set([instanceId]));
  }
  await workers.close();
  expect(alive(entriesOf(...innocents, ...killers))).toEqual([]);
}, 240_000);

test.concurrent("C16: an isolated task has a process for itself from its first run on: what kills it there touches nothing else of its worker, and it is carried on to, retried, undone with, cancelled and waited for as any other", async () => {
  const { client, workers, queue, start, entriesOf, letterOf } = await open({
    workers: 1,
    env: { MILLRACE_CELLS: "2" },
    takesDefaultQueue: true,
  });
  const alone = { type: "TASK", taskId: "isolated", input: "input.orders", queue } as const;
  const first = { ...alone, stepId: "first", taskId: "witness", input: "input.first" };
  const harm = { ...alone, stepId: "harm", retry: { maxAttempts: 2, initialInterval: "PT0.1S" } };
  await client.definitions.register({
    id: "isolated",
    steps: [{ ...first, transitions: { default: "harm" } }, harm],
    compensationSteps: [
      { stepId: "undo", compensationFor: "first", type: "TASK", taskId: "isolated" },
    ],
  });
  await client.definitions.register({
    id: "ordinary",
    steps: [
      { ...first, stepId: "one", transitions: { default: "two" } },
      { ...first, stepId: "two", transitions: { default: "three" } },
      { ...first, stepId: "three" },
    ],
  });
  const unheeding = { stubborn: true, ms: 60_000 };
  const leave = { ...alone, stepId: "leave", input: unheeding, retry: { maxAttempts: 1 } };
  await client.definitions.register({
    id: "leaving",
    steps: [
      { ...leave, timeout: "PT0.5S", onError: [{ errors: ["TIMEOUT"], to: "follow" }] },
      { ...alone, stepId: "follow", input: {} },
    ],
  });
  const isolated = (orders: JsonValue) => start({ first: {}, orders }, "isolated");
  const ids: string[] = [];
  const ran = () => entriesOf(...ids).filter(({ details }) => details["kind"] === "run");
  const pidsOf = (step: string, ...of: readonly string[]) =>
    ran()
      .filter((run) => run.step === step && of.includes(run.instance))
      .map(({ details }) => details["pid"]);
  const end = (id: string) => client.instances.wait(id, { timeoutMs: 90_000 });
  const [worker] = workers.stack.pids().worker;

  // Both of its processes are taken, and one step waits for them.
  const long = [await isolated({ ms: 60_000 }), await isolated({ ms: 60_000 })] as const;
  ids.push(...long);
  await eventually("both", () => pidsOf("harm", ...long).length === 2, { timeoutMs: 60_000 });
  const retried = await isolated({ failures: 1 });
  const why = await eventually("why it waits", async () => {
    const { reasons } = await client.instances.why(retried);
    return reasons.find(({ kind }) => kind === "QUEUED_ALONE");
  });
  const meanwhile = await start({ first: {} }, "ordinary");
  const passing = await end(meanwhile);
  const progress = (await client.instances.get(long[0])).state.steps["harm"]?.progress;
  for (const id of long) await client.instances.cancel(id);
  const killer = await isolated({ deaths: 100 });
  const beside = await Promise.all(
    [1, 2, 3].map(() => start({ first: { ms: 3_000 } }, "ordinary")),
  );
  ids.push(retried, meanwhile, killer, ...beside);
  const [done, ...undone] = await Promise.all([retried, ...long].map(end));
  const letter = await letterOf(killer);
  const others = await Promise.all(beside.map(end));
  const leaving = await start({}, "leaving");
  const left = await end(leaving);
  ids.push(leaving);

  expect(workers.stack.pids().worker).toEqual([worker]);
  expect(why).toMatchObject({ deaths: 0, handOvers: 0, cells: 2, taken: 2, failure: null });
  expect(why.message).toContain("in a process of its own, since its task is isolated.");
  for (const { status, state } of [passing, ...others]) {
    expect(status).toBe("COMPLETED");
    for (const step of Object.values(state.steps)) expect(step.deliveries).toBe(1);
  }
  const shared = ran().filter(({ step }) => ["first", "one", "two", "three"].includes(step));
  expect(shared).toHaveLength(4 + 3 * 4);
  for (const { details } of shared) expect(details["pid"]).toBe(worker);
  expect([...pidsOf("harm", ...ids), ...pidsOf("undo", ...ids)]).not.toContain(worker);
  expect(letter.deliveries.map(({ exit }) => exit)).toEqual(Array(5).fill("SIGKILL"));
  expect(pidsOf("harm", killer)).toEqual(letter.deliveries.map(({ pid }) => pid));
  expect(done).toMatchObject({
    status: "COMPLETED",
    output: { pid: pidsOf("harm", retried)[1] },
    state: { steps: { harm: { attempts: 2 } } },
  });
  // Some of them in one that was idle by then.
  const harmless = [...pidsOf("harm", ...long, retried), ...pidsOf("undo", ...long)];
  expect(harmless).toHaveLength(6);
  expect(new Set(harmless).size).toBeLessThan(6);
  expect(progress).toEqual({ pid: pidsOf("harm", long[0])[0] });
  // Not in one where a handler goes on that does not heed its abort.
  expect(left.status).toBe("COMPLETED");
  const [leftIn, followedIn] = ["leave", "follow"].map((step) => pidsOf(step, leaving));
  expect(followedIn).toHaveLength(1);
  expect(followedIn).not.toEqual(leftIn);
  const logged = { workflow: "isolated", instanceId: long[0], msg: "an isolated task runs" };
  const lines = workers
    .logs()
    .split("\n")
    .filter((line) => line.includes(logged.msg));
  expect(lines.map((line) => JSON.parse(line) as unknown)).toContainEqual(
    expect.objectContaining(logged),
  );
  for (const each of undone) {
    expect(each).toMatchObject({ status: "CANCELLED", compensation: { completed: ["undo"] } });
  }
  const told = entriesOf(...long).filter(({ step }) => step === "harm");
  expect(told.filter(({ details }) => details["kind"] === "aborted")).toHaveLength(2);
}, 240_000);

test.concurrent("C16: a step that runs alone outlives its worker's end, be it asked to or killed, and neither is a death of the step", async () => {
  const { client, workers, start, entriesOf } = await open({
    workers: 1,
    env: { MILLRACE_GRACE: "PT1S" },
  });
  const id = await start({ deaths: 2 });
  installation.ledger.answer({
    when: { instance: id },
    until: async ({ details }) => {
      if (details["kind"] === "run" && [3, 4].includes(Number(details["deliveries"]))) await never;
    },
  });
  const run = (deliveries: number) =>
    eventually(
      `run ${deliveries}`,
      () => entriesOf(id).find(({ details }) => details["deliveries"] === deliveries),
      { timeoutMs: 60_000 },
    );

  for (const [deliveries, signal] of [
    [3, "SIGTERM"],
    [4, "SIGKILL"],
  ] as const) {
    const { details } = await run(deliveries);
    const [worker = 0] = workers.stack.pids().worker;
    expect(details["pid"]).not.toBe(worker);
    process.kill(worker, signal);
  }
  const ended = await client.instances.wait(id, { timeoutMs: 60_000 });

  expect(ended).toMatchObject({ status: "COMPLETED" });
  expect(ended.state.steps["harm"]).toMatchObject({ attempts: 1, deliveries: 5 });
  const rows = await installation.query(
    `select lapses from step_executions where instance_id = '${id}'`,
  );
  expect(rows).toEqual([{ lapses: 2 }]);
  await workers.close();
  expect(alive(entriesOf(id))).toEqual([]);
}, 180_000);

test.concurrent("C16: a step that runs alone keeps its process neither by blocking it nor by closing its channel", async () => {
  const { client, workers, queue, start, entriesOf, letterOf } = await open({
    workers: 1,
    env: { MILLRACE_GRACE: "PT0.2S", MILLRACE_CELLS: "1" },
  });
  const harm = { stepId: "harm", type: "TASK", taskId: "witness", input: "input", queue } as const;
  const retry = { maxAttempts: 1 };
  await client.definitions.register({
    id: "bounded",
    steps: [{ ...harm, timeout: "PT3S", retry }],
  });
  const lethal = { deaths: 2, alone: 3 };

  const blocking = await start({ ...lethal, blocks: true }, "bounded");
  const timedOut = await client.instances.wait(blocking, { timeoutMs: 120_000 });
  const closing = await start({ ...lethal, disconnects: true });
  const poisoned = await letterOf(closing);

  expect(timedOut).toMatchObject({ status: "FAILED", error: { kind: "TIMEOUT" } });
  // From its first line on: the third run tells nobody that it has begun.
  expect(entriesOf(blocking)).toHaveLength(2);
  const exits = poisoned.deliveries.slice(2).map(({ exit }) => exit);
  expect(exits).toEqual(Array(3).fill("it had closed the channel to its worker"));
  await workers.close();
  expect(alive(entriesOf(blocking, closing))).toEqual([]);
}, 240_000);

test.concurrent("C16: a step that asks its own worker to end, again and again, gets a process of its own, and comes to its end there", async () => {
  const { client, workers, start, entriesOf } = await open({
    workers: 1,
    env: { MILLRACE_GRACE: "PT0S" },
  });

  const asks = Object.fromEntries(Array.from({ length: 20 }, (_, run) => [run + 1, "SIGTERM"]));
  const id = await start({ signals: asks, ms: 2_000 });
  const ended = await client.instances.wait(id, { timeoutMs: 120_000 });

  expect(ended).toMatchObject({ status: "COMPLETED" });
  expect(ended.state.steps["harm"]).toMatchObject({ attempts: 1, deliveries: 6 });
  const last = entriesOf(id).find(({ details }) => details["deliveries"] === 6);
  for (const { pid } of workers.events) expect(pid).not.toBe(last?.details["pid"]);
  const rows = await installation.query(
    `select lapses, hand_overs from step_executions where instance_id = '${id}'`,
  );
  expect(rows).toEqual([{ lapses: 0, hand_overs: 5 }]);
}, 180_000);

test.concurrent("C16: where no process can be had for a step that is to run alone, it is told why, and at last that is what it dies of", async () => {
  const { client, start, letterOf } = await open({ workers: 1, env: { TEST_LOADS_ONCE: "yes" } });
  const id = await start({ deaths: 2 });
  const set = (values: string) =>
    installation.query(`update step_executions set ${values} where instance_id = '${id}'`);

  const why = await eventually(
    "the reason",
    async () => {
      const [reason] = (await client.instances.why(id)).reasons;
      return reason?.kind === "QUEUED_ALONE" && reason.failure ? reason : undefined;
    },
    { timeoutMs: 120_000, intervalMs: 250 },
  );
  // As if some more had failed, and it had died twice of that.
  await set("lapses = 4, looks = 3, look_at = now()");
  const letter = await letterOf(id);

  expect(why.failure).toMatch(/^exit code 1, Error: .*: Error: the port is taken\n +at file:\S+$/s);
  expect(why.message).toContain(
    "The last try came to nothing, and another one follows: exit code 1",
  );
  const exit = letter.deliveries.at(-1)?.exit;
  expect(exit).toMatch(/^exit code 1, Error: .*the port is taken.*, before it had the step$/s);
}, 180_000);

test.concurrent("C16: runs of which nothing can be stored, or whose definition is gone, are counted, alone as well, and tried again after pauses", async () => {
  const { client, queue, start, letterOf } = await open({ workers: 1 });
  const query = (text: string) => installation.query<{ instance_id: string; lapses: number }>(text);
  await query(`create function refuse() returns trigger language plpgsql as
    $$ begin raise exception 'no space is left'; end $$`);
  await query(`create trigger refuse before update on step_executions for each row
    when (new.queue = '${queue}' and new.status = 'COMPLETED') execute function refuse()`);
  await client.definitions.register({
    id: "undefined",
    steps: [{ stepId: "task", type: "TASK", taskId: "noop", queue }],
  });
  await query(`create function undefine() returns trigger language plpgsql as
    $$ begin delete from workflow_definitions where id = new.workflow_id; return null; end $$`);
  await query(`create trigger undefine after insert on workflow_instances for each row
    when (new.workflow_id = 'undefined') execute function undefine()`);
  const [refused, undefinedId] = [await start(), await start({}, "undefined")];
  const ids = [refused, undefinedId];
  const ofBoth = `where instance_id in ('${ids.join("', '")}')`;
  const counted = (lapses: number) =>
    eventually(
      `run ${lapses} of both`,
      async () => {
        const rows = await query(`select lapses from step_executions ${ofBoth}
          and status = 'PENDING' and look_at > now()`);
        return rows.filter((row) => row.lapses === lapses).length === 2;
      },
      { timeoutMs: 60_000, intervalMs: 100 },
    );

  await counted(1);
  const whys = await Promise.all(ids.map((id) => client.instances.why(id)));
  await query(`update step_executions set lapses = 2, look_at = now() ${ofBoth}`);
  await counted(3);
  await client.instances.cancel(undefinedId, { shouldCompensate: false });
  await query(`update step_executions set lapses = 4, look_at = now()
    where instance_id = '${refused}'`);
  const letter = await letterOf(refused);

  expect(whys.map(({ reasons }) => reasons.map(({ kind }) => kind))).toEqual([
    ["QUEUED"],
    ["DEFINITION_MISSING", "QUEUED"],
  ]);
  const failures = whys.map(({ reasons }) => reasons.at(-1)?.failure);
  expect(failures).toEqual([
    expect.stringContaining("no space is left"),
    expect.stringContaining("undefined"),
  ]);
  expect(letter.deliveries.at(-1)?.exit).toContain("no space is left");
}, 120_000);

test.concurrent("C16: attempts that failed are not counted as deaths of their workers", async () => {
  const { client, queue, start, entriesOf } = await open({ workers: 1 });
  await client.definitions.register({
    id: "failing",
    steps: [
      {
        stepId: "harm",
        type: "TASK",
        taskId: "witness",
        queue,
        input: { failures: 6 },
        retry: { maxAttempts: 10, initialInterval: "PT0S" },
      },
    ],
  });
  installation.ledger.answer({ when: { attempt: 7 }, times: 1, until: () => never });

  const id = await start({}, "failing");
  const seventh = await eventually(
    "the seventh attempt",
    () => entriesOf(id).find(({ attempt }) => attempt === 7),
    { timeoutMs: 60_000 },
  );
  kill(Number(seventh.details["pid"]));
  const ended = await client.instances.wait(id, { timeoutMs: 60_000 });

  expect(ended).toMatchObject({ status: "COMPLETED" });
  expect(ended.state.steps["harm"]).toMatchObject({ attempts: 7, deliveries: 2 });
}, 180_000);

test.concurrent("C16: hand-overs at the end of workers are not counted as deaths", async () => {
  const { client, queue, start, entriesOf } = await open({
    workers: 1,
    env: { MILLRACE_GRACE: "PT0S" },
  });
  await client.definitions.register({
    id: "rolled-out",
    steps: [{ stepId: "rolled", type: "TASK", taskId: "witness", queue }],
  });
  installation.ledger.answer({
    when: { step: "rolled" },
    until: async ({ details }) => {
      if (details["kind"] === "run" && Number(details["deliveries"]) <= 5) await never;
    },
  });
  const id = await start({}, "rolled-out");
  const runs = () => entriesOf(id).filter(({ details }) => details["kind"] === "run");

  // Four rollouts in the middle of one step, and a death after them.
  for (let run = 1; run <= 5; run += 1) {
    const entry = await eventually(`run ${run}`, () => runs()[run - 1], { timeoutMs: 60_000 });
    process.kill(Number(entry.details["pid"]), run < 5 ? "SIGTERM" : "SIGKILL");
  }
  const ended = await client.instances.wait(id, { timeoutMs: 60_000 });

  expect(ended).toMatchObject({ status: "COMPLETED" });
  expect(ended.state.steps["rolled"]).toMatchObject({ attempts: 1, deliveries: 6 });
}, 180_000);

test.concurrent.each([
  { refused: "insert", what: "a new id" },
  { refused: "update", what: "its beat" },
])(
  "a worker whose database refuses it $what says so and ends: it takes no steps without a beat",
  async ({ refused }) => {
    const { queue, workers, start, client } = await open({ workers: 1 });
    const { query } = installation;
    const mine = `queues = '{${queue}}'`;
    await query(`create function "refuse_${queue}"() returns trigger language plpgsql as
      $$ begin raise insufficient_privilege using message = 'no ${refused} for ${queue}'; end $$`);
    await query(`create trigger "refuse_${queue}" before ${refused} on workers for each row
      when (new.${mine}) execute function "refuse_${queue}"()`);

    if (refused === "insert") await query(`delete from workers where ${mine}`);
    const { exit } = await eventually("its exit", () =>
      workers.events.find(({ kind }) => kind === "restarting"),
    );
    await query(`drop function "refuse_${queue}" cascade`);
    const ended = await client.instances.wait(await start(), { timeoutMs: 60_000 });

    expect(exit).toEqual({ code: 1, signal: null });
    const told = workers
      .logs()
      .split("\n")
      .filter((line) => line.includes(`no ${refused} for`));
    expect(told.filter((line) => line.includes('"level":"fatal"'))).toHaveLength(1);
    expect(ended).toMatchObject({ status: "COMPLETED" });
  },
  180_000,
);

test.concurrent("C37: a cancelled task that does not stop gives its place in the worker back all the same", async () => {
  const { client, start, entriesOf } = await open({
    workers: 1,
    env: { MILLRACE_CONCURRENCY: "1" },
  });
  const slow = await start({ ms: 60_000, stubborn: true });
  await eventually("the task to run", () => entriesOf(slow).length === 1);

  await client.instances.cancel(slow, { reason: "make room" });
  const next = await start();
  const ended = await client.instances.wait(next, { timeoutMs: 45_000 });

  expect(ended).toMatchObject({ status: "COMPLETED" });
  const told = (kind: string) => entriesOf(slow).filter(({ details }) => details["kind"] === kind);
  expect(told("aborted")).toHaveLength(1);
  expect(told("outcome")).toHaveLength(0);
}, 180_000);

const never = new Promise(() => {});

/** Of the processes in which tasks have run. */
function alive(entries: readonly LedgerEntry[]): readonly number[] {
  const pids = new Set(entries.map(({ details }) => Number(details["pid"])));
  return [...pids].filter(isAlive);
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
