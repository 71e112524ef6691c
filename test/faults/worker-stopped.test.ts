import { setTimeout as sleep } from "node:timers/promises";
import type { WorkflowDefinition } from "@millrace/contract";
import { eventually, freeze, kill, thaw, type LedgerEntry } from "@millrace/testkit";
import { expect, test, type TestContext } from "vitest";
import {
  openInstallation,
  type Installation,
  type InstallationOptions,
} from "../support/installation.ts";
import { expectNothingLeft } from "../support/leftovers.ts";

// Most of the time passes waiting for somebody to find out, so these run beside each other.

/** One step that is under test and one that follows; the input says what the first one does. */
const definition: WorkflowDefinition = {
  id: "two_steps",
  retry: { initialInterval: "PT0.2S", jitter: "NONE" },
  steps: [
    {
      stepId: "held",
      type: "TASK",
      taskId: "witness",
      input: "workflow.input",
      transitions: { default: "after" },
    },
    { stepId: "after", type: "TASK", taskId: "witness", input: {} },
  ],
};

test.concurrent("a worker that stood still for 10 s in the middle of its tasks changes nothing when it goes on", async (context) => {
  const installation = await open(context, { isRestarted: false });
  const { client, ledger, stack } = installation;
  // First runs are held at the ledger; those of another worker, later on, are answered at once.
  let letGo = () => {};
  const held = new Promise<void>((resolve) => (letGo = resolve));
  ledger.answer({ when: { step: "held" }, until: (entry) => (isFirst(entry) ? held : done) });

  const succeed = { stubborn: true };
  const fail = { stubborn: true, failures: 1 };
  const starts = Array.from({ length: 12 }, (_, index) => {
    const input = index % 4 < 2 ? succeed : fail;
    return client.instances.start({ workflowId: definition.id, input });
  });
  const ids = (await Promise.all(starts)).map(({ id }) => id);
  await eventually("all tasks to run", () => ledger.entries.length === ids.length);
  const runsOf = (pid: number) => ledger.entries.filter(({ details }) => details["pid"] === pid);
  const [other = 0, victim = 0] = stack
    .pids()
    .worker.toSorted((a, b) => runsOf(a).length - runsOf(b).length);
  const mine = runsOf(victim);

  freeze(victim);
  const frozenAt = Date.now();
  const again = () => ledger.entries.filter(({ details }) => Number(details["deliveries"]) > 1);
  await eventually("the other to take over", () => again().length >= mine.length, {
    timeoutMs: 60_000,
  });
  await context.annotate(`taken over after ${(again()[0]?.receivedAt ?? 0) - frozenAt} ms`);
  const taken = mine.map(({ instance }) => instance);
  const ended = await Promise.all(
    taken.map((id) => client.instances.wait(id, { timeoutMs: 60_000 })),
  );
  const rows = await stepRows(installation, taken);
  await sleep(Math.max(0, frozenAt + 10_000 - Date.now()));

  thaw(victim);
  const told = (kind: string) =>
    ledger.entries.filter(({ details }) => details["kind"] === kind && details["pid"] === victim);
  await eventually("its tasks to be told", () => told("aborted").length >= mine.length, {
    timeoutMs: 60_000,
  });
  // Only now do the handlers end: with results, and with failures that would want a retry.
  letGo();
  await eventually(
    "its late results",
    () => told("outcome").filter(({ instance }) => taken.includes(instance)).length > 0,
  );
  await sleep(1_500);

  const afterwards = await Promise.all(taken.map((id) => client.instances.get(id)));
  expect(afterwards).toEqual(ended);
  expect(await stepRows(installation, taken)).toEqual(rows);
  for (const { id, status, state, input } of afterwards) {
    const failures = (input as { failures?: number }).failures ?? 0;
    // What it began last may have been guessed to be what stopped it: then it ran in a process for itself.
    const entry = ledger.entries.findLast(
      ({ instance, step, details }) =>
        instance === id && step === "held" && details["pid"] !== victim,
    );
    expect(status).toBe("COMPLETED");
    expect(state.steps["held"]).toMatchObject({
      status: "COMPLETED",
      attempts: 1 + failures,
      output: { pid: entry?.details["pid"] ?? "of another process" },
    });
  }
  for (const id of taken) {
    const keys = ledger.entries
      .filter(({ instance, step }) => instance === id && step === "held")
      .map(({ idempotencyKey }) => idempotencyKey);
    expect(new Set(keys).size).toBe(1);
  }

  // It is a worker like any other again.
  kill(other);
  const { id } = await client.instances.start({ workflowId: definition.id, input: {} });
  const last = await client.instances.wait(id, { timeoutMs: 60_000 });
  expect(last.state.steps["held"]?.output).toMatchObject({ pid: victim });
  for (const each of ids) await client.instances.wait(each, { timeoutMs: 60_000 });
  await expectNothingLeft(installation);
}, 120_000);

test.concurrent("a worker that is asked to end in the middle of a task hands it over and exits 0", async (context) => {
  const installation = await open(context, {
    isRestarted: false,
    env: { MILLRACE_GRACE: "PT1S" },
  });
  const { client, ledger, stack, events } = installation;
  let letGo = () => {};
  const held = new Promise<void>((resolve) => (letGo = resolve));
  ledger.answer({ when: { step: "held" }, until: (entry) => (isFirst(entry) ? held : done) });
  const { id } = await client.instances.start({
    workflowId: definition.id,
    input: { stubborn: true },
  });
  await eventually("the task to run", () => ledger.entries.length === 1);

  const pid = Number(ledger.entries[0]?.details["pid"]);
  process.kill(pid, "SIGTERM");
  const askedAt = Date.now();
  const instance = await client.instances.wait(id, { timeoutMs: 60_000 });
  const isEnd = (event: { kind: string; pid: number }) =>
    event.kind === "ended" && event.pid === pid;
  await eventually("its exit", () => events.some(isEnd), { timeoutMs: 20_000 });
  letGo();

  expect(events.find(isEnd)?.exit).toEqual({ code: 0, signal: null });
  expect(instance).toMatchObject({ status: "COMPLETED" });
  expect(instance.state.steps["held"]).toMatchObject({ attempts: 1, deliveries: 2 });
  expect(instance.state.steps["held"]?.output).toMatchObject({ pid: stack.pids().worker[0] });
  const second = ledger.entries.find(({ details }) => details["deliveries"] === 2);
  await context.annotate(
    `handed over ${(second?.receivedAt ?? 0) - askedAt} ms after SIGTERM, grace 1 s`,
  );
  await expectNothingLeft(installation);
}, 120_000);

test.concurrent("C81: a worker that is asked to end before a full queue takes no more, lets end what can within the grace, and hands over the rest", async (context) => {
  const concurrency = 6;
  const installation = await open(context, {
    env: { MILLRACE_GRACE: "PT4S", MILLRACE_CONCURRENCY: String(concurrency) },
  });
  const { client, ledger, events } = installation;
  let letGo = () => {};
  const held = new Promise<void>((resolve) => (letGo = resolve));
  const never = new Promise<void>(() => {});
  const { id: long } = await client.instances.start({
    workflowId: definition.id,
    input: { stubborn: true },
  });
  ledger.answer({
    when: { step: "held" },
    until: (entry) => {
      if (!isFirst(entry)) return done;
      if (entry.instance === long) return never;
      return entry.details["pid"] === pid ? held : done;
    },
  });
  const first = await eventually("the long step to run", () => ledger.entries[0]);
  const pid = Number(first.details["pid"]);
  const starts = Array.from({ length: 24 }, () =>
    client.instances.start({ workflowId: definition.id, input: { ms: 200 } }),
  );
  const ids = (await Promise.all(starts)).map(({ id }) => id);
  const runs = () =>
    ledger.entries.filter(({ details }) => details["kind"] === "run" && details["pid"] === pid);
  await eventually("it to be full", () => runs().length === concurrency);

  process.kill(pid, "SIGTERM");
  await eventually("it to hear of it", () => installation.logs().includes("asked to end"));
  letGo();
  const { exit } = await eventually(
    "its exit",
    () => events.find((event) => event.kind === "restarting" && event.pid === pid),
    { timeoutMs: 30_000 },
  );
  const ended = await Promise.all(
    [long, ...ids].map((id) => client.instances.wait(id, { timeoutMs: 60_000 })),
  );

  expect(exit).toEqual({ code: 0, signal: null });
  // Neither another job nor the step that follows one of its own.
  expect(runs()).toHaveLength(concurrency);
  for (const { id, status, state } of ended) {
    expect(status).toBe("COMPLETED");
    const deliveries = id === long ? 2 : 1;
    expect(state.steps["held"]).toMatchObject({ attempts: 1, deliveries });
  }
  await expectNothingLeft(installation);
}, 120_000);

async function open(
  { onTestFinished }: TestContext,
  options: InstallationOptions,
): Promise<Installation> {
  const installation = await openInstallation(options);
  onTestFinished(() => installation.close());
  await installation.client.definitions.register(definition);
  return installation;
}

const done = Promise.resolve();

function isFirst({ attempt, details }: LedgerEntry): boolean {
  return attempt === 1 && details["deliveries"] === 1 && details["kind"] === "run";
}

async function stepRows({ query }: Installation, instanceIds: readonly string[]) {
  return query(
    `select instance_id, path, status, attempt, fence, deliveries, output::text, error::text
     from step_executions where instance_id = any($1::uuid[]) order by instance_id, path`,
    [instanceIds],
  );
}
