import type { CompensationPlanView, WhyView } from "@millrace/contract";
import { afterEach, expect, test } from "vitest";
import { type FakeApi, openFakeApi, problem } from "./fake-api.ts";
import { millrace } from "./streams.ts";

let api: FakeApi | undefined;
afterEach(async () => {
  await api?.close();
  api = undefined;
});

const ID = "01890a5d-ac96-774b-bcce-b302099a8057";

async function against(args: readonly string[], body: unknown) {
  api = await openFakeApi(() => ({ body }));
  return millrace(args, { environment: { MILLRACE_API: api.url } });
}

const plan: CompensationPlanView = {
  instanceId: ID,
  workflowId: "order",
  workflowVersion: 1,
  version: 7,
  status: "RUNNING",
  cancellable: true,
  plan: ["refund"],
  steps: [
    {
      stepId: "refund",
      compensationFor: "pay",
      executionId: "pay#1",
      taskId: "refund_task",
      input: { amount: 5 },
    },
  ],
  awaited: [
    {
      stepId: "ship",
      executionId: "ship#1",
      compensatedBy: "unship",
      until: "2026-01-31T12:00:30.000Z",
    },
  ],
  stopped: [],
  skipped: [],
  failed: [],
};

test("plan shows what a cancel would undo, and what it would wait for", async () => {
  const ran = await against(["plan", ID, "--reason", "no money"], plan);

  expect(ran.exitCode).toBe(0);
  expect(ran.stdout).toMatch(/1 {2}refund {2}pay +refund_task {2}{"amount":5}/);
  expect(ran.stderr).toMatch(/ship is running: .* undone first by unship/);
  expect(api?.exchanges.map(({ path }) => path)).toEqual([
    `/v1/instances/${ID}/compensation-plan?reason=no+money`,
  ]);
});

const why: WhyView = {
  instanceId: ID,
  version: 7,
  status: "WAITING_FOR_EVENT",
  at: "2026-01-31T12:00:00.000Z",
  summary: "Step pay waits.",
  reasons: [
    {
      kind: "EVENT_WAIT",
      message: "Step pay waits.",
      stepId: "pay",
      nearMisses: [
        {
          eventId: "e-1",
          pattern: "paid",
          payload: { amount: 5 },
          receivedAt: "2026-01-31T11:00:00.000Z",
          because: "CONDITION",
          failed: [{ source: "event.payload.amount > 10", filledIn: "5 > 10" }],
        },
      ],
    },
  ],
};

test("why says what it waits for and by what the last events missed", async () => {
  const { exitCode, stdout } = await against(["why", ID], why);

  expect(exitCode).toBe(0);
  expect(stdout.split("\n")).toEqual([
    "Step pay waits.",
    expect.stringMatching(/^ {2}event e-1 at 2026-01-31 .* missed: {"amount":5}$/),
    "    false: event.payload.amount > 10, that is 5 > 10",
    "",
  ]);
});

test.each(["plan", "why"])("%s of an instance that is not there fails", async (command) => {
  api = await openFakeApi(() => problem(404, "INSTANCE_NOT_FOUND", "there is no instance"));

  const ran = await millrace([command, ID], { environment: { MILLRACE_API: api.url } });

  expect(ran.exitCode).toBe(1);
  expect(ran.stderr).toContain("there is no instance");
});
