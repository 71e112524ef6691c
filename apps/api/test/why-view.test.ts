import type { Reason } from "@millrace/runtime";
import type { Snapshot } from "@millrace/engine";
import { expect, test } from "vitest";
import { whyView } from "../src/why-view.ts";

const at = new Date("2026-03-01T12:00:00Z");
const alone = {
  kind: "QUEUED_ALONE",
  stepId: "charge",
  executionId: "charge#1",
  isCompensation: false,
  taskId: "pay",
  queue: "default",
  since: at,
  deliveries: 3,
  deaths: 3,
  handOvers: 0,
  failure: null,
  workers: ["w1"],
  cells: 2,
  taken: 1,
  running: [],
} as const satisfies Reason;

const awaited = {
  kind: "AWAITED",
  stepId: "charge",
  executionId: "charge#1",
  isCompensation: false,
  taskId: "pay",
  since: at,
  deliveries: 1,
  workerId: "w1",
  host: null,
  beatAt: at,
  attempt: 1,
  until: at,
} as const satisfies Reason;

test("a step that waits to run alone says why, and what there is to run it", () => {
  const { message, ...facts } = reasonOf(alone);

  expect(message).toBe(
    "Step charge is queued on default to run alone, in a process of its own, since 3 of its runs have come to no end, as they do when workers die under it. The live worker that can take it has at most 2 such processes, of which 1 is taken.",
  );
  expect(facts).toEqual({ ...alone, since: "2026-03-01T12:00:00.000Z" });
});

test("a step whose task is isolated says so until a worker has died under it", () => {
  const reasons = [0, 1].map((deaths) => reasonOf({ ...alone, deliveries: 1, deaths }).message);

  expect(reasons).toEqual([
    expect.stringContaining("in a process of its own, since its task is isolated. The live worker"),
    expect.stringContaining("since one of its runs has come to no end, as they do when workers"),
  ]);
});

test("where others run in all such processes it names those of its own tenant, and what would help", () => {
  const running = [{ stepId: "crunch", instanceId: "i1" }];

  const { message } = reasonOf({ ...alone, workers: ["w1", "w2"], cells: 4, taken: 4, running });

  expect(message).toContain(
    "The 2 live workers that can take it have at most 4 such processes, all taken by crunch of instance i1 and others: it waits for one of them. With a higher MILLRACE_CELLS, or with more workers, more such steps run at a time.",
  );
});

test("a step that is awaited says what for: a compensation, or its own, should it come to that", () => {
  expect(reasonOf(awaited, "CANCELLED").message).toBe(
    "Step charge was running when the instance ended as CANCELLED; it is awaited until 2026-03-01T12:00:00.000Z before the compensation is planned.",
  );
  expect(reasonOf(awaited, "WAITING_FOR_EVENT").message).toBe(
    "Step charge was running when its branch was given up; it is awaited until 2026-03-01T12:00:00.000Z, so that what it does can be undone. Nothing else waits for it.",
  );
});

test("a step that is run again does not claim the time of its first run, or of its first queue", () => {
  const common = { stepId: "charge", executionId: "charge#1", isCompensation: false } as const;
  const task = { ...common, taskId: "pay", since: at, deliveries: 2 };
  const run = { ...task, workerId: "w1", host: null, attempt: 1, until: null, beatAt: at };

  expect(reasonOf({ ...run, kind: "RUNNING" }).message).toBe(
    "Step charge runs on worker w1, attempt 1, run 2 of it; the step first began at 2026-03-01T12:00:00.000Z. The worker was last heard of at 2026-03-01T12:00:00.000Z.",
  );
  expect(reasonOf({ ...run, kind: "RUNNING", deliveries: 1 }).message).toBe(
    "Step charge runs on worker w1 since 2026-03-01T12:00:00.000Z, attempt 1. The worker was last heard of at 2026-03-01T12:00:00.000Z.",
  );
  const slots = { workers: ["w1"], taken: 1, limit: 2, isBlocked: false, failure: null, until: at };
  const queued = { ...task, ...slots, kind: "QUEUED", queue: "default" } as const;
  expect(reasonOf(queued).message).toBe(
    "Step charge is queued on default again, after 2 runs that came to no end; 1 live worker can take it, with 1 of 2 slots taken.",
  );
});

test("a step whose worker is silent is another one's within seconds, where a scheduler runs", () => {
  const lost = { ...awaited, kind: "WORKER_LOST", beatAt: null, until: null } as const;

  expect(reasonOf(lost)).toMatchObject({
    lastBeatAt: null,
    message:
      "Step charge was taken by worker w1, which is silent or has ended; a scheduler gives it to another one within seconds: is one running?",
  });
});

test("of a step that ended its workers, and has no process, it says both", () => {
  const failure = "exit code 1, Error: the port is taken";

  const { message } = reasonOf({ ...alone, deaths: 0, handOvers: 5, failure });

  expect(message).toContain(
    "since its workers were asked to end soon after it had begun, 5 times in a row. The last try came to nothing, and another one follows: exit code 1, Error: the port is taken.",
  );
});

test("what is left to do without a definition depends on whether the instance is being undone", () => {
  const lost = { kind: "DEFINITION_MISSING", workflowId: "order", workflowVersion: 2 } as const;

  const [stays, isUndone] = [false, true].map(
    (isUndoing) => reasonOf({ ...lost, isUndoing }).message,
  );

  expect(stays).toContain("give the instance up by a cancel with shouldCompensate false");
  expect(isUndone).toContain("discarding that ends the compensation");
});

function reasonOf(reason: Reason, status: Snapshot["status"] = "RUNNING") {
  const snapshot = { id: "i", version: 1, status } as Snapshot;
  const [view] = whyView({ snapshot, at, reasons: [reason] }).reasons;
  if (view === undefined) throw new Error("no reason");
  return view;
}
