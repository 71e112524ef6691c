import type { InstanceView, WorkflowDefinition } from "@millrace/contract";
import { cancelInstance, startInstance, type Services } from "@millrace/runtime";
import { eventually } from "@millrace/testkit";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openTestApi, type TestApi } from "./api/support.ts";
import { expectConsistent } from "../support/consistent.ts";

// SUB_WORKFLOW from definition to worker: parents and children in one process, with a worker and a
// scheduler, and the halves between them by hand where a process has died.

let api: TestApi;
beforeAll(async () => {
  api = await openTestApi({ isWorking: true });
});
afterAll(async () => {
  try {
    await expectConsistent(api.url);
  } finally {
    await api?.close();
  }
});

async function register(...definitions: readonly Partial<WorkflowDefinition>[]): Promise<void> {
  for (const definition of definitions) {
    const { status, body } = await api.call("POST", "/v1/definitions", definition);
    expect(body.errors ?? []).toEqual([]);
    expect([200, 201]).toContain(status);
  }
}

async function start(workflowId: string, input: unknown = {}, more: object = {}) {
  const { status, body } = await api.call("POST", "/v1/instances", { workflowId, input, ...more });
  expect(body.detail).toBeUndefined();
  expect(status).toBe(201);
  return body as InstanceView;
}

async function settled(id: string): Promise<InstanceView> {
  return (await api.call("GET", `/v1/instances/${id}?wait=20`)).body;
}

async function read(id: string): Promise<InstanceView> {
  return (await api.call("GET", `/v1/instances/${id}`)).body;
}

/** What a process that died would have left behind. */
async function rowsLeft(): Promise<readonly unknown[]> {
  const { db } = api.services.database;
  return [
    ...(await db.selectFrom("child_signals").selectAll().execute()),
    ...(await db.selectFrom("children").selectAll().where("started_at", "is", null).execute()),
  ];
}

/** Of a child that may still have to be created. */
async function eventuallySettled(id: string): Promise<InstanceView> {
  await eventually("the child", async () => {
    const { status, body } = await api.call("GET", `/v1/instances/${id}`);
    return status === 200 && body.completedAt !== null;
  });
  return read(id);
}

const child = (workflowId: string, more: object = {}) =>
  ({ stepId: "child", type: "SUB_WORKFLOW", workflowId, ...more }) as never;

const child2 = { ...(child("c_quick") as object), stepId: "again" };

const echo = (id: string, more: object = {}) => ({
  id,
  steps: [{ stepId: "say", type: "TASK", taskId: "echo", ...more } as never],
});

test("a child runs with its input and hands up its output; each names the other", async () => {
  await register(echo("c_echo"), {
    id: "p_echo",
    steps: [
      child("c_echo", {
        input: { of: "${ input.order }" },
        transitions: { default: "after" },
      }),
      { stepId: "after", type: "TASK", taskId: "echo", input: "steps.child.output" } as never,
    ],
  });

  const { id } = await start("p_echo", { order: 7 }, { correlationId: "o-7", priority: 5 });
  const parent = await settled(id);

  expect(parent).toMatchObject({ status: "COMPLETED", output: { of: 7 }, parent: null });
  const { childId = "" } = parent.state.steps["child"] ?? {};
  const own = await read(childId);
  expect(own).toMatchObject({
    workflowId: "c_echo",
    status: "COMPLETED",
    input: { of: 7 },
    correlationId: "o-7",
    priority: 5,
    parent: { instanceId: id, path: "child", executionId: "child#1", detached: false },
  });
  expect(Number.parseInt(childId.replace("-", "").slice(0, 12), 16)).toBe(
    Date.parse(own.createdAt),
  );
});

describe("at registration", () => {
  const validate = async (document: Partial<WorkflowDefinition>) =>
    (await api.call("POST", "/v1/definitions/validate", document)).body;

  test("a child that nobody has registered yet is a warning", async () => {
    await register(echo("c_there"));

    const { warnings } = await validate({
      id: "p_warned",
      steps: [
        { ...(child("c_later") as object), transitions: { default: "other" } },
        { ...(child("c_there", { version: 7 }) as object), stepId: "other" },
      ] as never,
    });

    expect(warnings).toMatchObject([
      { path: "/steps/0/workflowId", code: "UNKNOWN_WORKFLOW" },
      { path: "/steps/1/workflowId", code: "UNKNOWN_WORKFLOW" },
    ]);
  });

  test("input that its inputSchema refuses is an error where its version is named, else a warning", async () => {
    await register({
      ...echo("c_strict"),
      inputSchema: { type: "object", properties: { z: { type: "number" } }, required: ["z"] },
    });
    const given = (input: unknown, more: object = {}) =>
      validate({ id: "p_given", steps: [child("c_strict", { input, ...more })] });
    const version = 1;

    expect((await given({})).warnings).toMatchObject([
      { path: "/steps/0/input", code: "CHILD_INPUT" },
    ]);
    expect((await given({}, { version })).errors).toMatchObject([
      { path: "/steps/0/input", code: "TYPE_MISMATCH" },
    ]);
    expect((await given({ z: "text" }, { version })).errors).toMatchObject([
      { path: "/steps/0/input/z", code: "TYPE_MISMATCH" },
    ]);
    expect((await given({ z: "${ input.z }" }, { version })).warnings).toEqual([]);
    expect((await given(undefined, { version })).warnings).toEqual([]);
  });

  test("a workflow that waits for itself by way of others is refused, unless it may not come to it", async () => {
    await register({ id: "r_b", steps: [child("r_c")] }, { id: "r_c", steps: [child("r_a")] });
    const awaiting = (more: object) => ({
      id: "r_a",
      steps: [
        {
          stepId: "beside",
          type: "PARALLEL",
          branches: [{ name: "a", steps: [child("r_b", more)] }],
        } as never,
      ],
    });
    const tree = {
      id: "r_a",
      steps: [
        { stepId: "each", type: "MAP", items: "input.children", steps: [child("r_b")] } as never,
      ],
    };

    expect((await validate(awaiting({}))).errors).toMatchObject([
      {
        path: "/steps/0/branches/0/steps/0/workflowId",
        code: "RECURSIVE_WORKFLOW",
        message: expect.stringContaining("r_a → r_b → r_c → r_a"),
      },
    ]);
    expect((await validate(awaiting({ detached: true }))).errors).toBeUndefined();
    expect((await validate(awaiting({ condition: "input.left > 0" }))).errors).toBeUndefined();
    expect((await validate(tree)).errors).toBeUndefined();
  });
});

describe("what goes wrong with a child", () => {
  test("comes up as its own error, which onError can name", async () => {
    await register(
      echo("c_fail", {
        taskId: "fail",
        input: { type: "CardDeclined", message: "declined", retryable: false },
      }),
      {
        id: "p_fail",
        steps: [
          child("c_fail", { onError: [{ errors: ["CardDeclined"], to: "mail" }] }),
          { stepId: "mail", type: "TASK", taskId: "echo", input: "steps.child.error" } as never,
        ],
      },
    );

    const parent = await settled((await start("p_fail")).id);

    const { childId } = parent.state.steps["child"] ?? {};
    expect(parent).toMatchObject({
      status: "COMPLETED",
      output: {
        kind: "TASK",
        type: "CardDeclined",
        stepId: "child",
        details: { childId, workflowId: "c_fail", status: "FAILED", error: { stepId: "say" } },
      },
    });
  });

  test("is told at once where there can be no such child", async () => {
    await register(
      echo("c_strict", {}),
      {
        id: "c_picky",
        inputSchema: { type: "object", required: ["amount"] },
        steps: echo("").steps,
      },
      { id: "p_unknown", steps: [child("c_nowhere")] },
      { id: "p_version", steps: [child("c_strict", { version: 9 })] },
      { id: "p_picky", steps: [child("c_picky", { input: { order: 1 } })] },
      {
        id: "p_unheard",
        steps: [
          child("c_nowhere", { detached: true, transitions: { default: "after" } }),
          { stepId: "after", type: "TASK", taskId: "echo", input: "steps.child.output" } as never,
        ],
      },
    );

    const ids = ["p_unknown", "p_version", "p_picky", "p_unheard"];
    const [unknown, version, picky, unheard] = await Promise.all(
      ids.map(async (id) => settled((await start(id)).id)),
    );

    expect(unknown).toMatchObject({
      status: "FAILED",
      error: { kind: "DEFINITION", type: "WORKFLOW_NOT_FOUND", stepId: "child" },
    });
    expect(version?.error?.message).toBe('workflow "c_strict" has no version 9');
    expect(picky).toMatchObject({
      status: "FAILED",
      error: { kind: "EXPRESSION", type: "INVALID_INPUT", details: [{ path: "/input" }] },
    });
    expect(unheard).toMatchObject({
      status: "COMPLETED",
      output: { instanceId: expect.any(String) },
    });
  });

  test("is tried again with another child, where the step says so", async () => {
    await register(echo("c_broken", { taskId: "fail", retry: { maxAttempts: 1 } }), {
      id: "p_again",
      steps: [child("c_broken", { retry: { maxAttempts: 3, initialInterval: "PT0S" } })],
    });

    const parent = await settled((await start("p_again")).id);

    expect(parent).toMatchObject({ status: "FAILED", error: { attempt: 3 } });
    const { body } = await api.call("GET", "/v1/instances?workflowId=c_broken");
    expect(body.items).toHaveLength(3);
    expect(new Set(body.items.map(({ input }: InstanceView) => JSON.stringify(input))).size).toBe(
      1,
    );
  });

  test("a chain that starts itself for ever ends 32 levels down", async () => {
    await register({
      id: "p_deep",
      steps: [
        child("p_deep", {
          condition: "input.level < 100",
          input: { level: "${ (input.level ?? 0) + 1 }" },
        }),
      ],
    });

    const top = await settled((await start("p_deep", { level: 0 })).id);

    expect(top).toMatchObject({
      status: "FAILED",
      error: { kind: "LIMIT", type: "NESTED_TOO_DEEP", stepId: "child" },
    });
    const { body } = await api.call("GET", "/v1/instances?workflowId=p_deep&limit=100");
    expect(body.items).toHaveLength(33);
  });
});

const waiting = (id: string, more: object = {}): Partial<WorkflowDefinition> => ({
  id,
  steps: [
    { stepId: "work", type: "TASK", taskId: "echo", transitions: { default: "wait" } } as never,
    { stepId: "wait", type: "EVENT_WAIT", eventPattern: `${id}.go` } as never,
  ],
  compensationSteps: [
    { stepId: "undo", compensationFor: "work", type: "TASK", taskId: "noop" } as never,
  ],
  ...more,
});

/** The parent, once its child waits for its event. */
async function waitingChild(id: string, stepId = "child"): Promise<string> {
  for (;;) {
    const { childId } = (await read(id)).state.steps[stepId] ?? {};
    if (childId !== undefined) {
      const { status } = await api.call("GET", `/v1/instances/${childId}`);
      if (status === 200 && (await read(childId)).status === "WAITING_FOR_EVENT") return childId;
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

describe("a cancel", () => {
  test("goes down, with its reason, and is undone at every level", async () => {
    await register(
      waiting("c_low"),
      { id: "c_mid", steps: [child("c_low")] },
      {
        id: "p_top",
        steps: [
          {
            stepId: "both",
            type: "PARALLEL",
            branches: [
              {
                name: "a",
                steps: [
                  {
                    stepId: "each",
                    type: "MAP",
                    items: "[1]",
                    steps: [child("c_mid")],
                  } as never,
                ],
              },
            ],
          } as never,
        ],
      },
    );
    const { id } = await start("p_top");
    const middle = await (async () => {
      for (;;) {
        const { childId } = (await read(id)).state.steps["child"] ?? {};
        if (childId !== undefined) return childId;
      }
    })();
    const low = await waitingChild(middle);

    const why = await api.call("GET", `/v1/instances/${id}/why`);
    expect(why.body.reasons).toMatchObject([
      {
        kind: "CHILD_WORKFLOW",
        executionId: "both.a.each[0].child#1",
        childId: middle,
        childWorkflowId: "c_mid",
        childStatus: "WAITING_FOR_EVENT",
      },
    ]);
    const listed = await api.call("GET", `/v1/instances/${id}/steps?path=both.a.each[0].child`);
    expect(listed.body.items).toMatchObject([{ status: "WAITING", childId: middle }]);
    expect((await read(middle)).parent).toMatchObject({ path: "both.a.each[0].child" });
    await api.call("POST", `/v1/instances/${id}/cancel`, { reason: "enough" });

    for (const each of [id, middle, low]) {
      expect(await settled(each)).toMatchObject({ status: "CANCELLED" });
    }
    expect(await read(low)).toMatchObject({
      cancellation: { reason: "enough", source: "PARENT", shouldCompensate: true },
      compensation: { status: "COMPLETED", completed: ["undo"] },
    });
    expect((await read(id)).state.steps["child"]).toMatchObject({ status: "CANCELLED" });
  });

  test("that comes at any moment leaves no child running and nothing untold", async () => {
    await register(echo("c_quick"), {
      id: "p_many",
      steps: [
        {
          stepId: "each",
          type: "MAP",
          items: "[1, 2, 3, 4]",
          steps: [child("c_quick", { transitions: { default: "again" } }), child2],
        } as never,
      ],
    });
    const ids = await Promise.all(
      Array.from({ length: 30 }, async (_, index) => {
        const { id } = await start("p_many");
        await new Promise((resolve) => setTimeout(resolve, index * 5));
        await api.call("POST", `/v1/instances/${id}/cancel`, { reason: "enough" });
        return id;
      }),
    );

    const ends = await Promise.all(ids.map(async (id) => (await settled(id)).status));
    await eventually("all children to have settled, and nothing to be untold", async () => {
      const { body } = await api.call(
        "GET",
        "/v1/instances?workflowId=c_quick&limit=500&status=RUNNING,CREATED,WAITING_FOR_EVENT",
      );
      return body.items.length === 0 && (await rowsLeft()).length === 0;
    });
    expect(ends).toContain("CANCELLED");
    expect(ends.filter((status) => status !== "CANCELLED" && status !== "COMPLETED")).toEqual([]);
  });

  test("of the child alone fails the step; a detached child lives on", async () => {
    await register(
      waiting("c_alone"),
      { id: "p_alone", steps: [child("c_alone")] },
      {
        id: "p_free",
        steps: [
          child("c_alone", { detached: true, transitions: { default: "wait" } }),
          { stepId: "wait", type: "EVENT_WAIT", eventPattern: "never" } as never,
        ],
      },
    );
    const [{ id }, free] = await Promise.all([start("p_alone"), start("p_free")]);
    const [own, detached] = [await waitingChild(id), await waitingChild(free.id)];

    await api.call("POST", `/v1/instances/${own}/cancel`, { reason: "fraud" });
    await api.call("POST", `/v1/instances/${free.id}/cancel`, { reason: "enough" });

    expect(await settled(id)).toMatchObject({
      status: "FAILED",
      error: { type: "CHILD_CANCELLED" },
    });
    expect(await settled(free.id)).toMatchObject({ status: "CANCELLED" });
    expect(await read(detached)).toMatchObject({
      status: "WAITING_FOR_EVENT",
      parent: { instanceId: free.id, detached: true },
    });
  });

  test("does to a child in flight what the plan has said before", async () => {
    await register(waiting("c_plan"), {
      id: "p_plan",
      steps: [
        {
          stepId: "first",
          type: "TASK",
          taskId: "echo",
          transitions: { default: "child" },
        } as never,
        child("c_plan"),
      ],
      compensationSteps: [
        { stepId: "undoFirst", compensationFor: "first", type: "TASK", taskId: "noop" },
        { stepId: "undoChild", compensationFor: "child", type: "TASK", taskId: "noop" },
      ] as never,
    });
    const { id } = await start("p_plan");
    await waitingChild(id);

    const { body: plan } = await api.call("GET", `/v1/instances/${id}/compensation-plan`);
    await api.call("POST", `/v1/instances/${id}/cancel`, { reason: "enough" });
    const parent = await settled(id);

    expect(plan.awaited).toMatchObject([{ stepId: "child" }]);
    expect(plan.steps.map(({ stepId }: { stepId: string }) => stepId)).toEqual(["undoFirst"]);
    expect(parent.compensation).toMatchObject({ plan: ["undoFirst"], uncertain: [] });
  });
});

test("a pause holds the end of a child, which itself goes on", async () => {
  await register(waiting("c_paused"), { id: "p_paused", steps: [child("c_paused")] });
  const { id } = await start("p_paused");
  const childId = await waitingChild(id);

  await api.call("POST", `/v1/instances/${id}/pause`, {});
  await api.call("POST", "/v1/events", { pattern: "c_paused.go", payload: { n: 1 } });
  const ended = await settled(childId);
  await eventually("the end to be taken note of", async () => (await rowsLeft()).length === 0);
  const paused = await read(id);
  await api.call("POST", `/v1/instances/${id}/resume`, {});

  expect(ended.status).toBe("COMPLETED");
  expect(paused).toMatchObject({
    status: "PAUSED",
    state: { steps: { child: { status: "COMPLETED" } } },
  });
  expect(await settled(id)).toMatchObject({
    status: "COMPLETED",
    output: { payload: { n: 1 } },
  });
});

test("an awaited child is of the version that was the latest when its parent began", async () => {
  const version = (n: number) => ({
    id: "c_pinned",
    output: n,
    steps: [{ stepId: "set", type: "SET", variables: { n } } as never],
  });
  await register(version(1), {
    id: "p_pinned",
    steps: [
      {
        stepId: "wait",
        type: "EVENT_WAIT",
        eventPattern: "p_pinned.go",
        transitions: { default: "child" },
      },
      child("c_pinned", { transitions: { default: "free" } }),
      { ...(child("c_pinned", { detached: true }) as object), stepId: "free" },
    ] as never,
  });
  const { id } = await start("p_pinned");
  await register(version(2));
  await api.call("POST", "/v1/events", { pattern: "p_pinned.go", payload: {} });

  const parent = await settled(id);

  expect(parent.state.steps["child"]?.output).toBe(1);
  const free = await eventuallySettled(parent.state.steps["free"]?.childId ?? "");
  expect(free.output).toBe(2);
});

describe("a process that dies between a commit and what follows from it", () => {
  /** As of a process that is killed as soon as it has committed. */
  function dying(): Services {
    const { services } = api;
    const die = async (commit: Parameters<Services["commit"]>[0], write: Services["commit"]) => {
      await write(commit);
      throw new Error("killed");
    };
    return {
      ...services,
      create: (commit) => die(commit, services.create),
      commit: (commit) => die(commit, services.commit),
    };
  }
  const caller = { tenantId: "default", actor: "test" };

  async function startAndDie(workflowId: string): Promise<string> {
    await expect(startInstance(dying(), caller, { workflowId })).rejects.toThrow("killed");
    const { body } = await api.call("GET", `/v1/instances?workflowId=${workflowId}`);
    return body.items[0].id;
  }

  async function cancelAndDie(id: string): Promise<void> {
    await expect(cancelInstance(dying(), caller, id, { reason: "enough" })).rejects.toThrow(
      "killed",
    );
  }

  test("leaves a start, an end or a cancel that the reconciler finishes, once", async () => {
    await register(
      echo("c_left"),
      { id: "p_start", steps: [child("c_left")] },
      waiting("c_held"),
      { id: "p_end", steps: [child("c_held")] },
      { id: "p_cancel", steps: [child("c_held")] },
      { id: "p_both", steps: [child("c_held")] },
    );
    const [end, cancel] = [(await start("p_end")).id, (await start("p_cancel")).id];
    const [ended, cancelled] = [await waitingChild(end), await waitingChild(cancel)];

    const started = await startAndDie("p_start");
    const both = await startAndDie("p_both");
    await cancelAndDie(both);
    await cancelAndDie(cancel);
    // The worker, which lives, undoes the child; then nobody tells the parent of it.
    await cancelInstance(dying(), caller, ended, { shouldCompensate: false }).catch(() => {});

    expect(await settled(started)).toMatchObject({ status: "COMPLETED", output: {} });
    expect(await settled(end)).toMatchObject({
      status: "FAILED",
      error: { type: "CHILD_CANCELLED" },
    });
    expect(await eventuallySettled(cancelled)).toMatchObject({
      status: "CANCELLED",
      cancellation: { source: "PARENT", reason: "enough" },
    });
    const never = await eventuallySettled((await read(both)).state.steps["child"]?.childId ?? "");
    expect(never).toMatchObject({ status: "CANCELLED", startedAt: null, state: { steps: {} } });
    expect(await read(both)).toMatchObject({ status: "CANCELLED" });
    expect(await rowsLeft()).toEqual([]);
  });
});
