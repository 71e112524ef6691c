import type { WorkflowDefinition } from "@millrace/contract";
import { eventually } from "@millrace/testkit";
import { afterAll, beforeAll, expect, test } from "vitest";
import { expectConsistent } from "../support/consistent.ts";
import { openInstallation, type Installation } from "../support/installation.ts";
import { expectNothingLeft } from "../support/leftovers.ts";

// Intervals that are expressions (CONTRACT 1.2): evaluated when the attempt has failed, by whoever
// commits that, which the reads of the instance have to reach.

let installation: Installation;
beforeAll(async () => {
  installation = await openInstallation();
});
afterAll(async () => {
  try {
    await expectNothingLeft(installation);
    await expectConsistent(installation.stack.apiUrl);
  } finally {
    await installation?.close();
  }
});

const reading: WorkflowDefinition = {
  id: "reading",
  retry: { maxInterval: "${ workflow.input.longest }", jitter: "NONE" },
  steps: [
    {
      stepId: "quota",
      type: "TASK",
      taskId: "echo",
      input: { wait: "${ workflow.input.wait }" },
      transitions: { default: "between" },
    },
    { stepId: "between", type: "TASK", taskId: "noop", transitions: { default: "call" } },
    {
      stepId: "call",
      type: "TASK",
      taskId: "witness",
      input: { failures: "${ workflow.input.failures }" },
      retry: { initialInterval: "${ steps.quota.output.wait }", backoffCoefficient: 10 },
      onError: [{ errors: ["*"], to: "refused" }],
    },
    { stepId: "refused", type: "END", outcome: "COMPLETED", output: "refused" },
  ],
};

test("a retry comes when the output of an earlier step says, and no later than the input allows", async () => {
  const { client } = installation;
  await client.definitions.register(reading);
  const start = async (input: Record<string, string | number>) =>
    (await client.instances.start({ workflowId: "reading", input })).id;

  const long = await start({ wait: "PT1H", longest: "PT2H", failures: 1 });
  const short = await start({ wait: "PT0.2S", longest: "PT0.3S", failures: 2 });
  const bad = await start({ wait: "soon", longest: "PT1S", failures: 1 });

  expect(await client.instances.wait(short, { timeoutMs: 30_000 })).toMatchObject({
    status: "COMPLETED",
  });
  expect(await rowsOf(short)).toMatchObject([{ attempt: 3 }]);
  expect(await client.instances.wait(bad, { timeoutMs: 30_000 })).toMatchObject({
    status: "COMPLETED",
    output: "refused",
  });
  expect(await rowsOf(bad)).toMatchObject([
    { attempt: 1, status: "FAILED", error: { kind: "EXPRESSION" } },
  ]);
  const waiting = await eventually("the retry that waits", async () => {
    const [row] = await rowsOf(long);
    return row?.status === "RETRYING" ? row : undefined;
  });
  expect(waiting.wait_s).toBe(3_600);
  await client.instances.cancel(long, { reason: "seen enough" });
  await client.instances.wait(long, { timeoutMs: 30_000 });
});

test("a retry whose row is being changed at its time is run, and not only when it is next looked for", async () => {
  const { client } = installation;
  await client.definitions.register(reading);
  const input = { wait: "PT1S", longest: "PT1S", failures: 1 };
  const { id } = await client.instances.start({ workflowId: "reading", input });
  await eventually("the retry that waits", async () => {
    const [row] = await rowsOf(id);
    return row?.status === "RETRYING" || undefined;
  });

  // As the reconciler does, which finds the retry at the same moment.
  await installation.query(`do $$ begin
    update step_executions set look_at = now() + interval '10 minutes'
    where instance_id = '${id}' and step_id = 'call';
    perform pg_sleep(2);
  end $$`);

  const { status, completedAt } = await client.instances.wait(id, { timeoutMs: 20_000 });
  expect([status, completedAt !== null]).toEqual(["COMPLETED", true]);
});

/** With the seconds between the failure, whose commit is the row's last in the history, and the retry. */
function rowsOf(id: string) {
  return installation.query<{
    status: string;
    attempt: number;
    error: unknown;
    wait_s: number | null;
  }>(
    `select s.status, s.attempt, s.error, round(extract(epoch from s.retry_at - h.at))::integer as wait_s
    from step_executions s
    join lateral (select at from history where instance_id = s.instance_id order by version desc limit 1) h
      on true
    where s.instance_id = '${id}' and s.step_id = 'call'`,
  );
}
