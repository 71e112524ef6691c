import { describe, expect, test } from "vitest";
import { define } from "../support/definitions.ts";
import { noon, simulate } from "../support/simulation.ts";
import { child, parent } from "../support/children.ts";

describe("a step that is stopped", () => {
  const both = (more: object = {}) => ({
    steps: [
      {
        stepId: "both",
        type: "PARALLEL",
        branches: [
          { name: "a", steps: [child("pay")] },
          { name: "b", steps: [{ stepId: "pack", retry: { maxAttempts: 1 } }] },
        ],
      },
    ],
    ...more,
  });

  test.each([
    ["a cancel", true, true],
    ["a cancel that undoes nothing", false, false],
  ])("by %s cancels its child the same way", (_what, shouldCompensate, expected) => {
    const simulation = simulate(define(both()));
    const childId = simulation.start().snapshot.live["both.a.pay#1"]?.child;

    const { commands } = simulation.cancel("enough", shouldCompensate);

    expect(commands).toContainEqual({
      kind: "cancelChild",
      path: "both.a.pay",
      iteration: 1,
      attempt: 1,
      childId,
      reason: "enough",
      shouldCompensate: expected,
    });
    expect(simulation.row("pay")?.status).toBe("CANCELLED");
  });

  test("by a sibling's failure has its child undo what it did", () => {
    const simulation = simulate(define(both()));
    simulation.start();

    const { commands } = simulation.fail("pack");

    expect(commands).toContainEqual(
      expect.objectContaining({ kind: "cancelChild", shouldCompensate: true }),
    );
  });

  test.each([
    { compensationSteps: [{ stepId: "unpack", compensationFor: "pack" }] },
    { compensationSteps: [] },
  ])("by a failure that undoes nothing has its child undo nothing either", (undone) => {
    const simulation = simulate(define(both({ compensateOnFailure: false, ...undone })));
    simulation.start();

    const { commands } = simulation.fail("pack");

    expect(commands).toContainEqual(
      expect.objectContaining({ kind: "cancelChild", shouldCompensate: false }),
    );
  });

  test("in the decision that entered it has no child at all", () => {
    const simulation = simulate(
      define({
        steps: [
          {
            stepId: "both",
            type: "PARALLEL",
            branches: [
              { name: "a", steps: [child("pay")] },
              { name: "b", steps: [{ stepId: "end", type: "END", outcome: "FAILED" }] },
            ],
          },
        ],
      }),
    );

    const { commands } = simulation.start();

    expect(commands).toEqual([{ kind: "settle" }]);
  });
});

describe("a child in flight at a cancel, of a step that can be undone", () => {
  const definition = define({
    steps: [child("pay")],
    compensationSteps: [{ stepId: "refund", compensationFor: "pay" }],
  });

  test("is cancelled and awaited; completed even so, it is undone", () => {
    const simulation = simulate(definition);
    simulation.start();

    const { commands } = simulation.cancel();
    expect(commands.map(({ kind }) => kind).toSorted()).toEqual(["cancelChild", "setTimer"]);
    expect(simulation.snapshot.compensation).toMatchObject({ frozen: false });
    simulation.endChild("pay", { output: { receipt: 1 } });

    expect(simulation.row("refund")).toMatchObject({ status: "PENDING" });
    simulation.succeed("refund");
    expect(simulation.snapshot).toMatchObject({
      status: "CANCELLED",
      compensation: { status: "COMPLETED", completed: ["refund"] },
    });
  });

  test("is awaited no longer than its grace, and is uncertain then", () => {
    const simulation = simulate(definition);
    simulation.start();
    simulation.cancel();

    simulation.elapse("PT30S");

    expect(simulation.snapshot.compensation).toMatchObject({
      status: "COMPLETED",
      plan: [],
      uncertain: ["pay"],
    });
  });

  test("that has undone itself needs no undoing", () => {
    const simulation = simulate(definition);
    simulation.start();
    simulation.cancel();

    simulation.endChild("pay", { status: "CANCELLED" });

    expect(simulation.snapshot.compensation).toMatchObject({ plan: [], uncertain: [] });
    expect(simulation.row("pay")?.status).toBe("CANCELLED");
  });
});

describe("an instance that is a child", () => {
  const definition = define({
    steps: [{ stepId: "charge", retry: { maxAttempts: 1 } }],
    compensationSteps: [{ stepId: "refund", compensationFor: "charge" }],
  });

  test("tells its parent when it has settled, and not before", () => {
    const simulation = simulate(definition, {}, { parent });
    simulation.start();
    simulation.claim("charge");

    expect(simulation.cancel("enough").commands.map(({ kind }) => kind)).not.toContain("reportEnd");
    simulation.succeed("charge");
    const { commands } = simulation.succeed("refund");

    expect(commands).toContainEqual({
      kind: "reportEnd",
      parent,
      status: "CANCELLED",
      error: null,
      reason: "enough",
    });
  });

  test("tells nobody when it is detached", () => {
    const simulation = simulate(definition, {}, { parent: { ...parent, awaited: false } });
    simulation.start();

    expect(simulation.succeed("charge").commands).toEqual([{ kind: "settle" }]);
  });

  test("may be 32 levels deep, and no deeper", () => {
    const nested = define({ steps: [child("pay", { detached: true })] });
    const last = simulate(nested, {}, { parent: { ...parent, depth: 31 } });
    const beyond = simulate(nested, {}, { parent: { ...parent, depth: 32 } });

    last.start();
    beyond.start();

    expect(last.snapshot.status).toBe("COMPLETED");
    expect(beyond.snapshot).toMatchObject({
      status: "FAILED",
      error: { kind: "LIMIT", type: "NESTED_TOO_DEEP", stepId: "pay" },
    });
  });

  test("that its parent cancels says so", () => {
    const simulation = simulate(definition, {}, { parent });
    simulation.start();

    simulation.send({
      kind: "cancelRequested",
      reason: "enough",
      actor: "parent:1",
      shouldCompensate: true,
      source: "PARENT",
    });

    expect(simulation.snapshot.cancellation).toMatchObject({
      source: "PARENT",
      requestedBy: "parent:1",
      reason: "enough",
    });
  });

  test("that is cancelled before it ever began has settled with nothing done", () => {
    const simulation = simulate(definition, {}, { parent });

    const { inserts, commands } = simulation.send(
      { kind: "scheduled", startAt: noon },
      {
        kind: "cancelRequested",
        reason: null,
        actor: "parent:1",
        shouldCompensate: true,
        source: "PARENT",
      },
    );

    expect(inserts).toEqual([]);
    expect(commands.map(({ kind }) => kind)).toEqual(["settle", "reportEnd"]);
    expect(simulation.snapshot.status).toBe("CANCELLED");
  });
});
