import { describe, expect, test } from "vitest";
import { defined } from "../../src/assert.ts";
import { childIdOf } from "../../src/child-id.ts";
import type { Command } from "../../src/state/decision.ts";
import type { WorkflowError } from "../../src/state/snapshot.ts";
import { define } from "../support/definitions.ts";
import { noon, simulate } from "../support/simulation.ts";
import { child, leadingTo, declined, failed, parent } from "../support/children.ts";

describe("the id of a child", () => {
  test("is a UUIDv7 of its time, the same for the same text and another for any other", () => {
    const texts = Array.from(
      { length: 20_000 },
      (_, index) => `parent/step[${index % 5_000}]#1.${index}`,
    );
    const ids = texts.map((text) => childIdOf(text, noon));

    expect(new Set(ids).size).toBe(texts.length);
    for (const id of ids.slice(0, 100)) {
      expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
      expect(Number.parseInt(id.replace("-", "").slice(0, 12), 16)).toBe(noon.getTime());
    }
    expect(childIdOf("a", noon)).toBe(childIdOf("a", noon));
    expect(childIdOf("a", new Date(noon.getTime() + 1))).not.toBe(childIdOf("a", noon));
  });

  test("has bits that all depend on every character", () => {
    const ids = "abcdefghijklmnop".split("").map((text) => childIdOf(`${text}/same#1.1`, noon));

    for (let at = 19; at < 36; at++) {
      if (at === 19 || at === 23) continue;
      expect(new Set(ids.map((id) => id[at])).size, `character ${at}`).toBeGreaterThan(4);
    }
  });
});

describe("an awaited child", () => {
  const definition = define({
    steps: [
      child("pay", { input: { of: "${ input.id }" }, ...leadingTo("ship") }),
      { stepId: "ship" },
    ],
  });

  test("is started with the step, which waits for it and holds no slot", () => {
    const simulation = simulate(definition, { id: 7 });

    const { inserts, commands, snapshot } = simulation.start();

    const childId = snapshot.live["pay#1"]?.child ?? "";
    expect(inserts).toMatchObject([
      { path: "pay", type: "SUB_WORKFLOW", status: "WAITING", input: { of: 7 }, queue: null },
    ]);
    expect(commands).toEqual([
      {
        kind: "startChild",
        path: "pay",
        iteration: 1,
        attempt: 1,
        childId,
        workflowId: "payment",
        workflowVersion: null,
        detached: false,
      },
    ]);
    expect(snapshot.status).toBe("WAITING_FOR_EVENT");
  });

  test("hands up its output, and the step goes on", () => {
    const simulation = simulate(definition, { id: 7 });
    simulation.start();

    const { inserts } = simulation.endChild("pay", { output: { receipt: 1 } });

    expect(simulation.row("pay")).toMatchObject({ status: "COMPLETED", output: { receipt: 1 } });
    expect(inserts.map(({ path }) => path)).toEqual(["ship"]);
    expect(simulation.snapshot.status).toBe("RUNNING");
  });

  test("that fails fails the step with its own error, and says where it comes from", () => {
    const simulation = simulate(definition);
    const childId = simulation.start().snapshot.live["pay#1"]?.child;

    simulation.endChild("pay", failed);

    expect(simulation.snapshot).toMatchObject({
      status: "FAILED",
      error: {
        kind: "TASK",
        type: "CardDeclined",
        message: `workflow "payment" (${childId}) failed: the card was declined`,
        stepId: "pay",
        attempt: 1,
        details: { childId, workflowId: "payment", status: "FAILED", error: declined },
      },
    });
  });

  test("that is poisoned does not make its parent look so; details that are too deep stay with it", () => {
    const simulation = simulate(definition);
    simulation.start();
    let details: WorkflowError["details"] = 1;
    for (let level = 0; level < 40; level++) details = { details };

    simulation.endChild("pay", {
      ...failed,
      error: { ...declined, kind: "POISONED", type: "POISONED", details },
    });

    expect(simulation.snapshot.error).toMatchObject({
      kind: "TASK",
      type: "POISONED",
      details: { error: { kind: "POISONED", details: null } },
    });
  });

  test("that hands on what came up from further below tells it once, and the way that it took", () => {
    let error: WorkflowError = declined;
    const sizes: number[] = [];
    for (let level = 1; level <= 32; level++) {
      const simulation = simulate(definition);
      simulation.start();
      simulation.endChild("pay", { ...failed, error });
      error = defined(simulation.snapshot.error ?? undefined, "error");
      sizes.push(JSON.stringify(error).length);
    }

    const { levels, ...facts } = error.details as { levels: { childId: string }[] };
    const lowest = levels.at(-1)?.childId;
    expect(facts).toMatchObject({ workflowId: "payment", status: "FAILED", error: declined });
    expect(levels).toHaveLength(31);
    expect(levels[0]).toEqual({ stepId: "pay", workflowId: "payment", childId: lowest });
    expect(error).toMatchObject({ kind: "TASK", type: "CardDeclined", stepId: "pay" });
    expect(error.message).toMatch(
      /^workflow "payment" \(\S+\) failed, 31 levels further down in workflow "payment" \(\S+\): the card was declined$/,
    );
    const growth = sizes.slice(1).map((size, index) => size - (sizes[index] ?? 0));
    expect(Math.max(...growth.slice(2))).toBeLessThan(150);
  });

  test("that fails at a step of its own is where the error began, whatever the task says of it", () => {
    const details = {
      childId: "x",
      workflowId: "forged",
      error: { ...declined },
      levels: [{ stepId: "a", workflowId: "b", childId: "c" }],
    };
    const inside = simulate(
      define({ steps: [{ stepId: "charge", retry: { maxAttempts: 1 } }] }),
      {},
      { parent },
    );
    inside.start();
    const { commands } = inside.fail("charge", { type: "Forged", message: "oh", details });
    const report = defined(
      commands.find(({ kind }) => kind === "reportEnd"),
      "report",
    );
    const { isOwn, error } = report as Extract<Command, { kind: "reportEnd" }>;
    const simulation = simulate(definition);
    simulation.start();
    simulation.endChild("pay", { status: "FAILED", error, ...(isOwn && { isOwn }) });

    expect(simulation.snapshot.error).toMatchObject({
      type: "Forged",
      message: expect.stringMatching(/failed: oh$/) as string,
      details: { workflowId: "payment", error: { type: "Forged", details } },
    });
    expect(simulation.snapshot.error?.details).not.toHaveProperty("levels");
  });

  test("that is cancelled fails the step", () => {
    const simulation = simulate(definition);
    simulation.start();

    simulation.endChild("pay", { status: "CANCELLED", reason: "fraud" });

    expect(simulation.snapshot.error).toMatchObject({ kind: "TASK", type: "CHILD_CANCELLED" });
    expect(simulation.snapshot.error?.message).toMatch(/was cancelled: fraud$/);
  });

  test("that could not be started fails the step at once, whatever its retry", () => {
    const again = define({ steps: [child("pay", { retry: { maxAttempts: 3 } })] });
    const simulation = simulate(again);
    const childId = simulation.start().snapshot.live["pay#1"]?.child ?? "";
    const error = {
      kind: "DEFINITION",
      type: "WORKFLOW_NOT_FOUND",
      message: "no such workflow",
      details: null,
    } as const;

    simulation.send({
      kind: "childRefused",
      path: "pay",
      iteration: 1,
      attempt: 1,
      childId,
      error,
    });

    expect(simulation.snapshot).toMatchObject({
      status: "FAILED",
      error: { ...error, stepId: "pay", attempt: 1 },
    });
  });

  test("is told apart from any other: its end comes once", () => {
    const simulation = simulate(definition);
    const before = simulation.start().snapshot;

    const { snapshot } = simulation.send({
      kind: "childEnded",
      path: "pay",
      iteration: 1,
      attempt: 1,
      childId: "0195a3b0-0000-7000-8000-0000000000aa",
      ...failed,
      output: null,
      reason: null,
    });

    expect(snapshot).toBe(before);
  });

  test("takes the error to onError by the child's own type", () => {
    const simulation = simulate(
      define({
        steps: [
          child("pay", { onError: [{ errors: ["CardDeclined"], to: "mail" }] }),
          { stepId: "mail", input: "steps.pay.error.details.error.details.code" },
        ],
      }),
    );
    simulation.start();

    const { inserts } = simulation.endChild("pay", failed);

    expect(inserts).toMatchObject([{ path: "mail", input: 51 }]);
  });
});

describe("a child that failed", () => {
  const definition = (retry?: object) =>
    define({ retry: { maxAttempts: 5 }, steps: [child("pay", retry && { retry })] });

  test("is not tried again unless its own step says so", () => {
    const simulation = simulate(definition());
    simulation.start();

    simulation.endChild("pay", failed);

    expect(simulation.snapshot.status).toBe("FAILED");
  });

  test.each([
    ["${ input.pause ?? 'PT5S' }", "RETRYING", null],
    ["${ input.pause ?? 'soon' }", "FAILED", "EXPRESSION"],
  ])("waits for the interval that %s gives", (initialInterval, status, kind) => {
    const simulation = simulate(definition({ maxAttempts: 2, initialInterval, jitter: "NONE" }));
    simulation.start();

    simulation.endChild("pay", failed);

    expect(simulation.row("pay")?.status).toBe(status);
    expect(simulation.snapshot.error?.kind ?? null).toBe(kind);
  });

  test("is followed by another child, after a while", () => {
    const simulation = simulate(
      definition({ maxAttempts: 2, initialInterval: "PT5S", jitter: "NONE" }),
    );
    const first = simulation.start().snapshot.live["pay#1"]?.child;

    simulation.endChild("pay", failed);
    expect(simulation.row("pay")).toMatchObject({ status: "RETRYING", attempt: 2 });
    expect(simulation.elapse("PT4S")).toEqual([]);
    simulation.elapse("PT1S");

    const second = simulation.snapshot.live["pay#1"]?.child;
    expect(second).not.toBe(first);
    expect(simulation.row("pay")).toMatchObject({ status: "WAITING", attempt: 2 });
    simulation.endChild("pay", failed);
    expect(simulation.snapshot).toMatchObject({ status: "FAILED", error: { attempt: 2 } });
  });

  test("is not tried again for an error that its policy names, nor when it was cancelled", () => {
    for (const end of [failed, { status: "CANCELLED" } as const]) {
      const simulation = simulate(definition({ nonRetryableErrors: ["CardDeclined"] }));
      simulation.start();

      simulation.endChild("pay", end);

      expect(simulation.snapshot.status).toBe("FAILED");
    }
  });

  test("is not followed early because the timer of an earlier try is told of again", () => {
    const simulation = simulate(
      definition({ maxAttempts: 3, initialInterval: "PT5S", jitter: "NONE" }),
    );
    simulation.start();
    simulation.endChild("pay", failed);
    simulation.elapse("PT5S");
    simulation.endChild("pay", failed);
    const { snapshot } = simulation;

    simulation.send({ kind: "timerFired", timer: "retry", path: "pay", iteration: 1, attempt: 2 });

    expect(simulation.snapshot).toBe(snapshot);
  });

  test("leaves nothing behind when a cancel comes before the next try", () => {
    const simulation = simulate(definition({ maxAttempts: 2 }));
    simulation.start();
    simulation.endChild("pay", failed);

    const { commands } = simulation.cancel();

    expect(commands).toEqual([
      { kind: "clearTimer", timer: "retry", path: "pay", iteration: 1 },
      { kind: "settle" },
    ]);
    expect(simulation.row("pay")).toMatchObject({ status: "CANCELLED", attempt: 1 });
  });
});

describe("the clocks of a child", () => {
  test("its timeout stops it and is a failed attempt, which may be tried again", () => {
    const simulation = simulate(
      define({
        steps: [
          child("pay", {
            timeout: "PT1H",
            retry: { maxAttempts: 2, initialInterval: "PT1M", jitter: "NONE" },
          }),
        ],
      }),
    );
    const first = simulation.start().snapshot.live["pay#1"]?.child;

    const [firing] = simulation.elapse("PT1H");
    expect(firing?.decision.commands).toContainEqual(
      expect.objectContaining({ kind: "cancelChild", childId: first, shouldCompensate: true }),
    );
    expect(simulation.row("pay")).toMatchObject({ status: "RETRYING", error: { type: "TIMEOUT" } });
    simulation.elapse("PT1M");
    simulation.elapse("PT1H");

    expect(simulation.snapshot).toMatchObject({
      status: "FAILED",
      error: { kind: "TIMEOUT", type: "TIMEOUT", stepId: "pay", attempt: 2 },
    });
  });

  test("totalTimeout counts all of its children and the waits between them", () => {
    const simulation = simulate(
      define({
        steps: [
          child("pay", {
            totalTimeout: "PT10M",
            retry: { maxAttempts: 9, initialInterval: "PT8M", jitter: "NONE", maxInterval: "PT8M" },
          }),
        ],
      }),
    );
    simulation.start();
    simulation.endChild("pay", failed);

    simulation.elapse("PT8M");
    expect(simulation.row("pay")).toMatchObject({ status: "WAITING", attempt: 2 });
    simulation.endChild("pay", failed);
    simulation.elapse("PT2M");

    expect(simulation.snapshot).toMatchObject({ status: "FAILED", error: { type: "TIMEOUT" } });
    expect(simulation.row("pay")).toMatchObject({ attempt: 2 });
  });
});

describe("a detached child", () => {
  test("completes the step at once with its id, and is not cancelled with its parent", () => {
    const simulation = simulate(
      define({
        steps: [child("audit", { detached: true, ...leadingTo("ship") }), { stepId: "ship" }],
      }),
    );

    const { commands } = simulation.start();

    const started = commands.find(({ kind }) => kind === "startChild");
    expect(started).toMatchObject({ detached: true });
    expect(simulation.row("audit")).toMatchObject({
      status: "COMPLETED",
      output: { instanceId: started?.kind === "startChild" && started.childId },
    });
    expect(simulation.cancel().commands).not.toContainEqual(
      expect.objectContaining({ kind: "cancelChild" }),
    );
  });
});
