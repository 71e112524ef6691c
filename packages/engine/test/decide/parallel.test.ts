import { describe, expect, test } from "vitest";
import { define } from "../support/definitions.ts";
import { simulate } from "../support/simulation.ts";
import { parallel, leadingTo, wait } from "../support/parallel.ts";

describe("a PARALLEL that joins all", () => {
  const definition = define({
    steps: [
      parallel(
        "checkout",
        {
          card: [{ stepId: "authorize", ...leadingTo("charge") }, { stepId: "charge" }],
          note: [{ stepId: "mail" }],
        },
        leadingTo("after"),
      ),
      { stepId: "after", input: "steps.checkout.output" },
    ],
  });

  test("enters every branch at once, each under a path of its own", () => {
    const simulation = simulate(definition);

    const { inserts } = simulation.start();

    expect(inserts.map(({ path, status }) => [path, status])).toEqual([
      ["checkout", "RUNNING"],
      ["checkout.card.authorize", "PENDING"],
      ["checkout.note.mail", "PENDING"],
    ]);
    expect(simulation.snapshot.status).toBe("RUNNING");
  });

  test("goes on once, when the last branch has come to its end, with the output of each", () => {
    const simulation = simulate(definition);
    simulation.start();

    simulation.succeed("mail", "sent");
    simulation.succeed("authorize", "held");
    const { inserts } = simulation.succeed("charge", { id: 7 });

    expect(inserts.map(({ path }) => path)).toEqual(["after"]);
    expect(inserts[0]?.input).toEqual({ card: { id: 7 }, note: "sent" });
    expect(simulation.row("checkout")).toMatchObject({ status: "COMPLETED", completion: 4 });
    simulation.succeed("after", "bye");
    expect(simulation.snapshot).toMatchObject({
      status: "COMPLETED",
      output: "bye",
      completedSteps: 5,
    });
  });

  test("branches that end in one decision are joined once", () => {
    const names = Array.from({ length: 30 }, (_, index) => `b${index}`);
    const wide = define({
      steps: [
        parallel(
          "fan",
          Object.fromEntries(names.map((name) => [name, [{ stepId: `${name}_work` }]])),
        ),
      ],
    });
    const simulation = simulate(wide);
    simulation.start();
    for (const name of names) simulation.claim(`${name}_work`);

    const { updates } = simulation.send(
      ...names.map((name) => ({
        kind: "stepSucceeded" as const,
        path: `fan.${name}.${name}_work`,
        iteration: 1,
        attempt: 1,
        output: name,
      })),
    );

    expect(updates.filter(({ path }) => path === "fan")).toHaveLength(1);
    expect(simulation.snapshot.output).toEqual(
      Object.fromEntries(names.map((name) => [name, name])),
    );
  });

  test("branches that end one by one are asked for together, however many there are", () => {
    const names = Array.from({ length: 30 }, (_, index) => `b${index}`);
    const simulation = simulate(
      define({
        steps: [
          parallel(
            "fan",
            Object.fromEntries(names.map((name) => [name, [{ stepId: `${name}_work` }]])),
          ),
        ],
      }),
    );
    simulation.start();

    for (const name of names) simulation.succeed(`${name}_work`, name);

    expect(simulation.snapshot.output).toEqual(
      Object.fromEntries(names.map((name) => [name, name])),
    );
  });

  test("C43: a branch whose only step is skipped, or whose choice leads nowhere, has settled", () => {
    const simulation = simulate(
      define({
        steps: [
          parallel("fork", {
            a: [{ stepId: "skipped", condition: "false" }],
            b: [
              { stepId: "switch", type: "CHOICE", choices: [{ when: "input.x", to: "x" }] },
              { stepId: "x" },
            ],
          }),
        ],
      }),
    );

    simulation.start();

    expect(simulation.snapshot).toMatchObject({
      status: "COMPLETED",
      output: { a: null, b: null },
    });
    expect(simulation.statuses()).toMatchObject({ skipped: "SKIPPED", switch: "COMPLETED" });
  });

  test("a failed branch fails it with that branch's error; its siblings and what they wait for go", () => {
    const simulation = simulate(
      define({
        retry: { maxAttempts: 1 },
        steps: [
          parallel(
            "fork",
            {
              a: [{ stepId: "work" }],
              b: [wait("w", { eventTimeout: { duration: "P1D" } })],
              c: [{ stepId: "other" }],
            },
            { onError: [{ errors: ["Boom"], to: "rescue" }] },
          ),
          { stepId: "rescue", input: "steps.fork.error" },
        ],
      }),
    );
    simulation.start();
    simulation.claim("other");

    const { commands, inserts } = simulation.fail("work", "Boom");

    expect(simulation.statuses()).toEqual({
      fork: "FAILED",
      work: "FAILED",
      w: "CANCELLED",
      other: "CANCELLED",
      rescue: "PENDING",
    });
    expect(inserts[0]?.input).toMatchObject({ type: "Boom", stepId: "work" });
    expect(commands.map(({ kind }) => kind).toSorted()).toEqual([
      "abort",
      "clearTimer",
      "closeWait",
      "dispatch",
    ]);
    expect([...simulation.waits, ...simulation.timers]).toEqual([]);
  });

  test("onBranchError CONTINUE joins what completed, and leaves the failed branch out", () => {
    const simulation = simulate(
      define({
        retry: { maxAttempts: 1 },
        steps: [
          parallel(
            "fork",
            { a: [{ stepId: "x" }], b: [{ stepId: "y" }] },
            { onBranchError: "CONTINUE" },
          ),
        ],
      }),
    );
    simulation.start();

    simulation.fail("x");
    simulation.succeed("y", 2);

    expect(simulation.snapshot).toMatchObject({ status: "COMPLETED", output: { b: 2 } });
  });

  test("is waiting for an event only while every live branch waits", () => {
    const simulation = simulate(
      define({
        steps: [
          parallel("fork", { a: [wait("w")], b: [{ stepId: "x", ...leadingTo("v") }, wait("v")] }),
        ],
      }),
    );
    simulation.start();
    expect(simulation.snapshot.status).toBe("RUNNING");

    simulation.succeed("x");
    expect(simulation.snapshot.status).toBe("WAITING_FOR_EVENT");

    simulation.publish("w.done");
    expect(simulation.snapshot.status).toBe("WAITING_FOR_EVENT");
    simulation.publish("v.done");
    expect(simulation.snapshot.status).toBe("COMPLETED");
  });
});

describe("a PARALLEL that joins some", () => {
  test("the first branch wins; the others lose their waits and timers in the same commit", () => {
    const simulation = simulate(
      define({
        steps: [
          parallel(
            "race",
            {
              event: [wait("w", { eventTimeout: { duration: "P1D" } })],
              clock: [{ stepId: "d", type: "DELAY", duration: "PT1S" }],
            },
            { join: "ANY" },
          ),
        ],
      }),
    );
    simulation.start();

    simulation.elapse("PT1S");

    expect(simulation.snapshot).toMatchObject({ status: "COMPLETED", output: { clock: null } });
    expect(simulation.statuses()).toMatchObject({ w: "CANCELLED", d: "COMPLETED" });
    expect([...simulation.waits, ...simulation.timers]).toEqual([]);
  });

  const two = define({
    retry: { maxAttempts: 1 },
    steps: [
      parallel(
        "vote",
        { a: [{ stepId: "x" }], b: [{ stepId: "y" }], c: [{ stepId: "z" }] },
        { join: { count: 2 } },
      ),
    ],
  });

  test("a count joins when so many have completed, whatever failed before", () => {
    const simulation = simulate(two);
    simulation.start();

    simulation.fail("x");
    simulation.succeed("y", 1);
    simulation.succeed("z", 2);

    expect(simulation.snapshot).toMatchObject({ status: "COMPLETED", output: { b: 1, c: 2 } });
  });

  test("a count fails as soon as it can no longer be reached", () => {
    const simulation = simulate(two);
    simulation.start();

    simulation.fail("x");
    simulation.fail("y", "Last");

    expect(simulation.snapshot).toMatchObject({ status: "FAILED", error: { type: "Last" } });
    expect(simulation.statuses()).toEqual({
      vote: "FAILED",
      x: "FAILED",
      y: "FAILED",
      z: "CANCELLED",
    });
  });

  test("a loser in flight that can be undone is given its grace, and is undone first if it succeeds", () => {
    const simulation = simulate(
      define({
        steps: [
          parallel(
            "race",
            { a: [{ stepId: "x" }], b: [{ stepId: "y" }] },
            { join: "ANY", ...leadingTo("after") },
          ),
          { stepId: "after" },
        ],
        compensationSteps: [
          { stepId: "undo_x", compensationFor: "x" },
          { stepId: "undo_y", compensationFor: "y" },
        ],
      }),
    );
    simulation.start();
    simulation.claim("y");

    simulation.succeed("x");
    expect(simulation.row("y")?.status).toBe("RUNNING");
    expect(simulation.row("after")?.status).toBe("PENDING");
    simulation.succeed("y", "late");
    simulation.cancel();

    expect(simulation.row("y")?.status).toBe("COMPLETED");
    expect(simulation.snapshot.compensation?.plan).toEqual(["undo_y", "undo_x"]);
  });

  test("a loser that keeps silent holds nothing up, and a compensation names it", () => {
    const simulation = simulate(
      define({
        steps: [
          parallel(
            "race",
            { a: [{ stepId: "x" }], b: [{ stepId: "y" }] },
            { join: "ANY", ...leadingTo("w") },
          ),
          wait("w"),
        ],
        compensationSteps: [{ stepId: "undo_y", compensationFor: "y" }],
      }),
    );
    simulation.start();
    simulation.claim("y");
    simulation.succeed("x");
    expect(simulation.snapshot.status).toBe("WAITING_FOR_EVENT");

    simulation.elapse("PT30S");
    expect(simulation.row("y")?.status).toBe("CANCELLED");
    simulation.cancel();

    expect(simulation.snapshot.compensation).toMatchObject({ uncertain: ["race.b.y"], plan: [] });
  });

  test("what a loser still came to is the default output where nothing completed after it (CONTRACT 1)", () => {
    const simulation = simulate(
      define({
        steps: [
          parallel(
            "race",
            { a: [{ stepId: "x" }], b: [{ stepId: "y" }] },
            { join: "ANY", ...leadingTo("pause") },
          ),
          { stepId: "pause", type: "DELAY", duration: "PT10S" },
        ],
        compensationSteps: [{ stepId: "undo_y", compensationFor: "y" }],
      }),
    );
    simulation.start();
    simulation.claim("y");

    simulation.succeed("x", 1);
    simulation.succeed("y", "late");
    simulation.elapse("PT10S");

    expect(simulation.snapshot).toMatchObject({ status: "COMPLETED", output: "late" });
  });

  test("an instance completes without waiting for a loser", () => {
    const simulation = simulate(
      define({
        steps: [parallel("race", { a: [{ stepId: "x" }], b: [{ stepId: "y" }] }, { join: "ANY" })],
        compensationSteps: [{ stepId: "undo_y", compensationFor: "y" }],
      }),
    );
    simulation.start();
    simulation.claim("y");

    simulation.succeed("x", 1);

    expect(simulation.snapshot).toMatchObject({ status: "COMPLETED", output: { a: 1 } });
    expect(simulation.row("y")?.status).toBe("CANCELLED");
  });
});
