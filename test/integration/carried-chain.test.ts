import { setTimeout as sleep } from "node:timers/promises";
import type { InstanceView, WorkflowDefinition } from "@millrace/contract";
import { eventually } from "@millrace/testkit";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { align, type Race } from "../support/aligned.ts";
import { openGates } from "../support/gates.ts";
import { openInstallation, type Installation } from "../support/installation.ts";
import { expectNothingLeft } from "../support/leftovers.ts";
import { expectConsistent } from "../support/consistent.ts";

// A worker that settles a step goes on with the next one without asking anybody (carry-on). What
// comes from outside meanwhile must neither be lost nor let the chain run on.

let installation: Installation;
beforeAll(async () => {
  installation = await openInstallation();
  await installation.client.definitions.register(chain);
});
afterAll(async () => {
  try {
    await expectConsistent(installation.stack.apiUrl);
  } finally {
    await installation?.close();
  }
});
beforeEach(() => installation.ledger.clear());

const links = ["one", "two", "three", "four", "five", "six"] as const;
const undone: readonly string[] = ["one", "three", "four", "six"];

const chain: WorkflowDefinition = {
  id: "carried_chain",
  cancellationTriggers: [
    {
      eventPattern: "chain.stop",
      eventCondition: "event.payload.key === workflow.input.key",
      reason: "stopped by an event",
      shouldCompensate: true,
    },
  ],
  steps: [
    ...links.map((stepId, index) => ({
      stepId,
      type: "TASK" as const,
      taskId: "witness",
      input: { ms: 5 },
      transitions: { default: links[index + 1] ?? "go" },
    })),
    {
      stepId: "go",
      type: "EVENT_WAIT",
      eventPattern: "chain.go",
      eventCondition: "event.payload.key === workflow.input.key",
      lookback: "instance",
      transitions: { default: "last" },
    },
    { stepId: "last", type: "TASK", taskId: "echo", input: { by: "${ steps.go.output.id }" } },
  ],
  compensationSteps: undone.map((stepId) => ({
    stepId: `undo_${stepId}`,
    compensationFor: stepId,
    type: "TASK" as const,
    taskId: "noop",
  })),
};

test("an event that arrives while the chain is carried is there when the wait opens", async () => {
  const ended = await drive("go", async (id, key) => {
    await publish("chain.go", key);
    return id;
  });

  for (const { instance, key } of ended) {
    expect(instance).toMatchObject({ status: "COMPLETED", output: { by: `chain.go-${key}` } });
    expect(runsOf(instance.id)).toEqual(links);
  }
  await expectNothingLeft(installation);
});

test("a cancel that arrives while the chain is carried stops it there and undoes what was done", async () => {
  const ended = await drive("cancel", async (id) => {
    await installation.client.instances.cancel(id, { reason: "by hand" });
  });

  for (const { instance } of ended) {
    expect(instance).toMatchObject({ status: "CANCELLED", cancellation: { source: "API" } });
    expectStoppedAndUndone(instance);
  }
  await expectNothingLeft(installation);
});

test("an event that cancels while the chain is carried does the same, as its answer says", async () => {
  const ended = await drive("stop", async (_id, key) => publish("chain.stop", key));

  for (const { instance, answer } of ended) {
    expect(answer).toMatchObject({ cancelled: 1, delivered: 0 });
    expect(instance).toMatchObject({ status: "CANCELLED", cancellation: { source: "EVENT" } });
    expectStoppedAndUndone(instance);
  }
  await expectNothingLeft(installation);
});

test("of an event that lets go and one that cancels, at the same moment, each does what its answer says", async () => {
  const ended = await drive("both", async (_id, key) => {
    const [stop] = await Promise.all([publish("chain.stop", key), publish("chain.go", key)]);
    return stop;
  });

  for (const { instance, answer } of ended) {
    expect(instance.status).toBe(answer.cancelled === 1 ? "CANCELLED" : "COMPLETED");
    if (instance.status === "CANCELLED") expectStoppedAndUndone(instance);
  }
  await expectNothingLeft(installation);
});

test("an event that cancels, against the result that completes: the end is what its answer says", async ({
  annotate,
}) => {
  const { client, ledger } = installation;
  await client.definitions.register({
    id: "last_step",
    cancellationTriggers: chain.cancellationTriggers ?? [],
    steps: [{ stepId: "gate", type: "TASK", taskId: "gate" }],
  });
  const gates = openGates(ledger);
  const ids: string[] = [];
  const cancelled = new Map<string, number>();
  for (const round of [1, 2]) {
    const keys = Array.from({ length: 80 }, (_, index) => `last-${round}-${index}`);
    const { results } = await client.instances.startBatch(
      keys.map((key) => ({ workflowId: "last_step", input: { key } })),
    );
    const batch = results.map(({ instance }) => instance?.id ?? "");
    await eventually("the tasks to stand at their gates", () => batch.every(gates.isWaiting), {
      timeoutMs: 60_000,
    });
    const races = batch.map((id, index): Race => ({
      open: async () => gates.open(id),
      publish: async () => {
        const answer = await publish("chain.stop", keys[index] ?? "");
        cancelled.set(id, answer.cancelled);
      },
    }));
    await align(races, { lanes: 4, staggerMs: [0, 1, 2, 3, 4, 5] });
    ids.push(...batch);
  }

  const ended = await Promise.all(
    ids.map((id) => client.instances.wait(id, { timeoutMs: 45_000 })),
  );
  const wrong = ended.filter(
    ({ id, status }) => status !== (cancelled.get(id) === 1 ? "CANCELLED" : "COMPLETED"),
  );
  expect(wrong.map(({ id, status }) => [id, status, cancelled.get(id)])).toEqual([]);
  await expectNothingLeft(installation);
  const count = ended.filter(({ status }) => status === "CANCELLED").length;
  await annotate(`${count} of ${ended.length} cancelled`);
}, 120_000);

interface Ended<T> {
  readonly instance: InstanceView;
  readonly key: string;
  readonly answer: T;
}

/** Starts instances and does something to each at a moment of its own during its chain. */
async function drive<T>(
  run: string,
  act: (id: string, key: string) => Promise<T>,
): Promise<readonly Ended<T>[]> {
  const { instances } = installation.client;
  const count = 40;
  return Promise.all(
    Array.from({ length: count }, async (_, index) => {
      const key = `${run}-${index}`;
      const { id } = await instances.start({ workflowId: chain.id, input: { key } });
      await sleep((index * 200) / count);
      const answer = await act(id, key);
      return { instance: await instances.wait(id, { timeoutMs: 45_000 }), key, answer };
    }),
  );
}

function publish(pattern: string, key: string) {
  const event = { id: `${pattern}-${key}`, pattern, payload: { key } };
  return installation.client.events.publish(event);
}

/** The steps whose task ran, in order, by what they told the ledger. */
function runsOf(instanceId: string): readonly string[] {
  return installation.ledger.entries
    .filter(({ instance, details }) => instance === instanceId && details["kind"] === "run")
    .map(({ step }) => step);
}

function expectStoppedAndUndone({ id, state, compensation }: InstanceView): void {
  const steps = Object.entries(state.steps);
  const completed = steps
    .filter(([stepId, { status }]) => status === "COMPLETED" && stepId !== "go")
    .toSorted(([, a], [, b]) => (a.completionNumber ?? 0) - (b.completionNumber ?? 0))
    .map(([stepId]) => stepId);
  // A chain: what has completed is a beginning of it, and what ran is at most one step more.
  const chained = [...links, "last"];
  expect(completed).toEqual(chained.slice(0, completed.length));
  const open = steps.filter(([, { status }]) => status !== "COMPLETED");
  expect(open.map(([, { status }]) => status)).toEqual(open.length === 0 ? [] : ["CANCELLED"]);
  expect(runsOf(id).length).toBeLessThanOrEqual(completed.length + 1);

  const plan = completed.filter((stepId) => undone.includes(stepId)).toReversed();
  expect(compensation).toMatchObject({
    status: "COMPLETED",
    completed: plan.map((stepId) => `undo_${stepId}`),
    failed: [],
  });
}
