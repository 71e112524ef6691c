import { describe, expect, test } from "vitest";
import { decide } from "../../src/decide/decide.ts";
import { isNeeds } from "../../src/decide/decide.ts";
import { checkConsistency } from "../../src/consistency/check.ts";
import { fold } from "../../src/fold.ts";
import { noReads } from "../../src/state/reads.ts";
import { calendar } from "../support/calendars.ts";
import { define } from "../support/definitions.ts";
import { evidenceOf } from "../support/evidence.ts";
import { created, noon, simulate } from "../support/simulation.ts";

/** Noon is that of Sunday, 1 March 2026. */
const mondayAtNine = "2026-03-02T08:00:00.000Z";
const rescue = { onError: [{ errors: ["BAD_VALUE"], to: "rescue" }] };

function delay(fields: object) {
  return define({
    steps: [{ stepId: "d", type: "DELAY", ...fields, ...rescue }, { stepId: "rescue" }],
  });
}

function started(fields: object, input: Record<string, string> = {}) {
  const simulation = simulate(delay(fields), input);
  const decision = simulation.start();
  const [timer] = simulation.timers.values();
  return { simulation, decision, dueAt: timer?.dueAt.toISOString() };
}

describe("a delay with a calendar", () => {
  test.each([
    ["PT1H", "2026-03-02T09:00:00.000Z"],
    ["PT8H", "2026-03-02T16:00:00.000Z"],
    ["PT8H1S", "2026-03-03T08:00:01.000Z"],
    ["P1D", "2026-03-03T08:00:00.000Z"],
    ["PT0S", mondayAtNine],
    ["${ input.window }", "2026-03-02T10:00:00.000Z"],
  ])("of %s is over after so much working time", (duration, expected) => {
    const { dueAt } = started({ duration, calendarId: "office" }, { window: "PT2H" });
    expect(dueAt).toBe(expected);
  });

  test.each([
    ["of a time outside of working hours", "2026-03-06T20:00:00Z", "2026-03-09T08:00:00.000Z"],
    ["of a time within them", "2026-03-06T10:00:00Z", "2026-03-06T10:00:00.000Z"],
    ["of a time that has passed", "2026-02-27T10:00:00Z", mondayAtNine],
    ["of the value of an expression", "input.at", "2026-03-03T08:00:00.000Z"],
  ])("until the first working moment, %s", (_, until, expected) => {
    const input = { at: "2026-03-03T06:00:00Z" };
    expect(started({ until, calendarId: "office" }, input).dueAt).toBe(expected);
  });

  test("goes on when that has come, and says in its history by which calendar it counts", () => {
    const { simulation, decision } = started({ duration: "PT1H", calendarId: "office" });

    expect(decision.entries).toContainEqual({
      type: "workflow.step.waiting",
      stepId: "d",
      data: { until: "2026-03-02T09:00:00.000Z", calendarId: "office", calendarVersion: 1 },
    });
    simulation.elapse("P1D");
    expect(simulation.statuses()).toEqual({ d: "COMPLETED" });
  });

  test("is ended by its timeout where that comes first", () => {
    const { simulation } = started({ duration: "PT1H", calendarId: "office", timeout: "PT2H" });
    simulation.elapse("PT2H");
    expect(simulation.row("d")).toMatchObject({ status: "FAILED", error: { type: "TIMEOUT" } });
  });

  test.each([
    ["does not exist", { duration: "PT1H", calendarId: "nowhere" }, {}],
    [
      'the duration "P0.5D" has a fraction',
      { duration: "${ input.window }", calendarId: "office" },
      { window: "P0.5D" },
    ],
    ["counts at most 30 years", { duration: "P9000D", calendarId: "office" }, {}],
    ["counts at most 30 years", { until: "${ '9999-12-31T00:00:00Z' }", calendarId: "office" }, {}],
  ])("that cannot be counted is an error, as %s says", (message, fields, input) => {
    const { simulation } = started(fields, input);
    const { error } = simulation.row("d") ?? {};
    expect(error).toMatchObject({ kind: "EXPRESSION", type: "BAD_VALUE" });
    expect(error?.message).toContain(message);
    expect(simulation.statuses()).toEqual({ d: "FAILED", rescue: "PENDING" });
  });
});

describe("which calendar it is", () => {
  const definition = delay({ duration: "PT1H", calendarId: "office" });
  const { snapshot } = created(definition).instance;
  const ask = (reads = noReads) => decide(definition, snapshot, [{ kind: "started" }], reads, noon);

  test("is asked for, once it is needed", () => {
    expect(ask()).toEqual({ needs: [{ kind: "calendar", calendarId: "office" }] });
    const plain = delay({ duration: "PT1H" });
    expect(isNeeds(decide(plain, snapshot, [{ kind: "started" }], noReads, noon))).toBe(false);
  });

  test("is kept with the decision, so that a replay needs none and heeds no other", () => {
    const { simulation } = started({ duration: "PT1H", calendarId: "office" });
    simulation.elapse("P1D");
    const { history } = simulation;

    expect(history[0]?.signals).toEqual([
      {
        kind: "calendarsAsked",
        workingTimes: {
          "d#1": {
            calendarId: "office",
            calendarVersion: 1,
            until: "2026-03-02T09:00:00.000Z",
          },
        },
      },
      { kind: "started" },
    ]);
    expect(fold(simulation.definition, snapshot, history).snapshot).toEqual(simulation.snapshot);
    const night = calendar({ workingHours: { sunday: [{ from: "22:00", to: "24:00" }] } });
    const reads = { ...noReads, calendars: new Map([["office", night]]) };
    expect(ask(reads)).toMatchObject({
      workingTimes: { "d#1": { until: "2026-03-01T23:00:00.000Z" } },
    });
  });

  test("is nothing that the check of consistency asks for", () => {
    const { simulation } = started({ duration: "PT1H", calendarId: "office" });
    const { instance, timers, waits, history, now } = simulation;
    const stored = {
      instance,
      timers,
      waits,
      children: new Set<string>(),
      held: new Set<string>(),
    };
    expect(checkConsistency(evidenceOf(simulation.definition, stored, history, now))).toEqual([]);
  });

  test("is kept of a failure, too", () => {
    const { simulation } = started({ duration: "PT1H", calendarId: "nowhere" });
    expect(simulation.history[0]?.signals[0]).toEqual({
      kind: "calendarsAsked",
      workingTimes: { "d#1": { calendarId: "nowhere", problem: "does not exist" } },
    });
    const folded = fold(simulation.definition, snapshot, simulation.history);
    expect(folded.snapshot).toEqual(simulation.snapshot);
  });
});

test("the items of a MAP ask for their calendar together", () => {
  const definition = define({
    steps: [
      {
        stepId: "m",
        type: "MAP",
        items: "[1, 2, 3]",
        steps: [{ stepId: "d", type: "DELAY", duration: "PT${ item }H", calendarId: "office" }],
      },
    ],
  });
  const simulation = simulate(definition);

  const { workingTimes } = simulation.start();

  expect(Object.values(workingTimes ?? {})).toMatchObject([
    { until: "2026-03-02T09:00:00.000Z" },
    { until: "2026-03-02T10:00:00.000Z" },
    { until: "2026-03-02T11:00:00.000Z" },
  ]);
});

test("DELAY waits for its time, to the millisecond, however far it is", () => {
  const simulation = simulate(
    define({ steps: [{ stepId: "a", type: "DELAY", duration: "P400DT0.5S" }] }),
  );
  simulation.start();
  expect(simulation.snapshot.status).toBe("WAITING_FOR_EVENT");

  simulation.elapse("P400DT0.499S");
  expect(simulation.snapshot.status).toBe("WAITING_FOR_EVENT");

  simulation.elapse("PT0.001S");
  expect(simulation.snapshot.status).toBe("COMPLETED");
});

test("DELAY until a time that has passed is over at once", () => {
  const simulation = simulate(
    define({ steps: [{ stepId: "a", type: "DELAY", until: "${ input.at }" }] }),
    { at: "2020-01-01T00:00:00Z" },
  );
  simulation.start();

  simulation.elapse("PT0S");

  expect(simulation.snapshot.status).toBe("COMPLETED");
});
