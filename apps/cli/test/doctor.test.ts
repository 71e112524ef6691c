import type { ConsistencyView, WorkflowDefinition } from "@millrace/contract";
import { afterEach, expect, test } from "vitest";
import { checkDrift, type Installation } from "../src/doctor/drift.ts";
import { type Exchange, type FakeAnswer, type FakeApi, openFakeApi } from "./fake-api.ts";
import { millrace } from "./streams.ts";

let api: FakeApi | undefined;
afterEach(async () => {
  await api?.close();
  api = undefined;
});

async function against(args: readonly string[], answer: (exchange: Exchange) => FakeAnswer) {
  api = await openFakeApi(answer);
  return millrace(["doctor", ...args], { environment: { MILLRACE_API: api.url } });
}

const ID = "01890a5d-ac96-774b-bcce-b302099a8057";
const whole: ConsistencyView = {
  instanceId: ID,
  version: 3,
  checkedAt: "2026-01-31T12:00:00.000Z",
  ok: true,
  findings: [],
  skipped: [],
};
const damaged: ConsistencyView = {
  ...whole,
  ok: false,
  findings: [
    {
      code: "TIMER_MISSING",
      severity: "ERROR",
      message: "timer wait of step pay is not stored",
      where: { path: "pay", iteration: 1, timer: "wait" },
      repairable: true,
      repair: "it is set again, for the time that it had",
    },
  ],
};

test("a damaged instance is shown with what a repair would do, and ends with 1", async () => {
  const ran = await against(["--instance", ID], () => ({ body: damaged }));

  expect(ran.exitCode).toBe(1);
  expect(ran.stdout).toMatch(/TIMER_MISSING {2}timer wait of step pay is not stored/);
  expect(ran.stdout).toMatch(/with --repair it is set again/);
  expect(api?.exchanges.map(({ path }) => path)).toEqual([`/v1/instances/${ID}/consistency`]);
});

test("--repair repairs what is damaged, and nothing else, and ends with 0 when nothing is left", async () => {
  const ran = await against(["--instance", ID, "--repair"], ({ method }) => ({
    body:
      method === "GET" ? damaged : { before: damaged, repaired: damaged.findings, after: whole },
  }));

  expect(ran.exitCode).toBe(0);
  expect(ran.stdout).toMatch(new RegExp(`${ID} repaired: TIMER_MISSING`));
  const healthy = await against(["--instance", ID, "--repair", "--json"], () => ({ body: whole }));
  expect(api?.exchanges.map(({ method }) => method)).toEqual(["GET"]);
  expect(JSON.parse(healthy.stdout)).toMatchObject({
    ok: true,
    instances: { checked: 1, inconsistent: [] },
  });
});

test("warnings are shown, and do not count", async () => {
  const findings = damaged.findings.map((each) => ({ ...each, severity: "WARNING" as const }));

  const ran = await against(["--instance", ID], () => ({ body: { ...damaged, findings } }));

  expect(ran.exitCode).toBe(0);
  expect(ran.stdout).toMatch(/TIMER_MISSING/);
});

test("without an API it ends with 3, and says so also as JSON", async () => {
  const environment = { MILLRACE_API: "http://127.0.0.1:9" };

  const ran = await millrace(["doctor", "--json"], { environment });

  expect(ran.exitCode).toBe(3);
  expect(JSON.parse(ran.stdout)).toMatchObject({
    ok: false,
    checks: [
      { name: "database", status: "SKIPPED" },
      { name: "api", status: "FAILED" },
    ],
  });
});

test("--instance with --all is a slip of the hand: 2", async () => {
  const ran = await millrace(["doctor", "--instance", ID, "--all"]);

  expect(ran.exitCode).toBe(2);
});

const definition: WorkflowDefinition = {
  id: "order",
  steps: [
    {
      stepId: "all",
      type: "MAP",
      items: "${ input.lines }",
      steps: [{ stepId: "pick", type: "TASK", taskId: "pick_task" }],
    },
    { stepId: "sub", type: "SUB_WORKFLOW", workflowId: "billing" },
  ],
};
const sound: Installation = {
  workers: [],
  tasks: [],
  queues: [],
  workflows: [],
  definitions: [],
};
const drift = (installation: Partial<Installation>) =>
  checkDrift({ ...sound, ...installation }).flatMap(({ name, status, detail }) =>
    status === "OK" ? [] : [`${name} ${status}: ${detail}`],
  );

test("drift: tasks that definitions name at any depth, and children that nobody has registered", () => {
  expect(drift({ definitions: [definition] })).toEqual([
    "workers WARNING: none is alive: no task runs",
    "tasks WARNING: no live worker knows pick_task (order)",
    "definitions WARNING: billing (for order) are not registered",
  ]);
});

test("drift: a task or a child that an expression gives is none that nobody knows", () => {
  const steps: WorkflowDefinition["steps"] = [
    { stepId: "pick", type: "TASK", taskId: "pick_${ input.by }" },
    { stepId: "sub", type: "SUB_WORKFLOW", workflowId: "${ input.next }" },
  ];

  expect(drift({ definitions: [{ ...definition, steps }] })).toEqual([
    "workers WARNING: none is alive: no task runs",
  ]);
});

test("drift: steps that wait for a task or a queue in vain, and instances without a definition", () => {
  const queue = { name: "gpu", pending: 2, retrying: 1, running: 0, oldestPendingAt: null };
  const workflow = { workflowId: "gone", total: 4, instances: {}, successRate: null, retries: 0 };

  const found = drift({
    tasks: [{ id: "ghost", workers: [], isolated: false, blocked: 3 }],
    queues: [{ ...queue, workers: [], paused: false, pause: null, jobs: null }],
    workflows: [{ ...workflow, executionTimeMs: null }],
  });

  expect(found.slice(1)).toEqual([
    "blocked steps WARNING: 3 wait for task ghost, which no live worker knows",
    "queues WARNING: 3 steps in gpu, which no live worker serves",
    "definitions FAILED: gone (4 instances) are not stored",
  ]);
});

test("drift: schemas that an earlier release has taken, and that are not compiled any more", () => {
  const inputSchema = { properties: { a: { pattern: "a?".repeat(300) } } };

  const found = drift({ definitions: [{ ...definition, steps: [], inputSchema }] });

  expect(found.slice(1)).toEqual([
    "input schemas WARNING: order (PATTERN_TOO_COSTLY at /inputSchema/properties/a/pattern) would take too long to compile",
  ]);
});

test("drift: queues that somebody has paused", () => {
  const queue = { name: "gpu", pending: 2, retrying: 1, running: 0, oldestPendingAt: null };
  const pause = { at: "2026-01-31T12:00:00.000Z", by: "ann", reason: null };

  const found = drift({ queues: [{ ...queue, workers: ["w"], paused: true, pause, jobs: null }] });

  expect(found.slice(1)).toEqual([
    "queues WARNING: no worker takes steps of gpu (by ann since 2026-01-31T12:00:00.000Z): paused",
  ]);
});
