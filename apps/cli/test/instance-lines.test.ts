import { Writable } from "node:stream";
import { expect, test } from "vitest";
import { executionLines, instanceLines } from "../src/instance-lines.ts";
import { openOutput } from "../src/output.ts";
import { instance, step } from "./instances.ts";

const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
const output = openOutput({ stdout: nowhere, stderr: nowhere, isJson: false, isColoured: false });

test("a cancelled order reads like a story", () => {
  const error = {
    kind: "TASK" as const,
    type: "BankDown",
    message: "no\nanswer",
    stepId: "pay",
    attempt: 2,
    details: null,
  };
  const view = instance({
    status: "CANCELLED",
    correlationId: "c-1",
    input: { orderId: "42" },
    completedAt: "2026-01-31T12:00:07.500Z",
    progress: { completed: 1, total: 3 },
    cancellation: {
      reason: "ordered twice",
      requestedBy: "anna",
      requestedAt: "2026-01-31T12:00:05.000Z",
      source: "API",
      shouldCompensate: true,
    },
    state: {
      variables: { paid: false },
      waitingFor: [],
      steps: {
        pay: step("CANCELLED", {
          type: "TASK",
          error,
          attempts: 2,
          startedAt: "2026-01-31T12:00:03.000Z",
          completedAt: "2026-01-31T12:00:05.000Z",
        }),
        reserve: step("COMPLETED", { type: "TASK", output: { id: "r-1" } }),
      },
    },
    compensation: {
      status: "COMPLETED",
      plan: ["release"],
      completed: ["release"],
      failed: [],
      uncertain: [],
      startedAt: "2026-01-31T12:00:05.000Z",
      completedAt: "2026-01-31T12:00:07.500Z",
      steps: {
        release: {
          status: "COMPLETED",
          attempts: 1,
          output: null,
          error: null,
          compensationFor: "reserve",
          startedAt: "2026-01-31T12:00:06.000Z",
          completedAt: "2026-01-31T12:00:07.500Z",
        },
      },
    },
  });

  expect(instanceLines(output, view)).toEqual([
    "order_processing version 1  CANCELLED  0198c1de-0000-7000-8000-000000000001",
    "  created     2026-01-31 12:00:00 UTC, settled 12:00:07.500 (7.5 s)",
    "  correlation c-1",
    '  input       {"orderId":"42"}',
    '  variables   {"paid":false}',
    "  cancelled   ordered twice (API, by anna)",
    "steps (1 of 3 completed)",
    "  ├─ ✔  reserve  COMPLETED  TASK  12:00:01.000  1.0 s",
    '  │     → {"id":"r-1"}',
    "  └─ ■  pay      CANCELLED  TASK  12:00:03.000  2.0 s  2 attempts",
    "        TASK BankDown: no\\nanswer",
    "compensation COMPLETED",
    "  └─ ✔  release  COMPLETED  for reserve  12:00:06.000  1.5 s",
  ]);
});

test("a wait says what it waits for, since when and until when", () => {
  const view = instance({
    status: "WAITING_FOR_EVENT",
    state: {
      variables: {},
      steps: { wait: step("WAITING") },
      waitingFor: [
        {
          stepId: "wait",
          kind: "EVENT",
          eventPattern: "payment.received",
          eventCondition: "event.payload.orderId === workflow.input.orderId",
          since: "2026-01-31T12:00:01.000Z",
          until: "2026-02-03T12:00:01.000Z",
        },
      ],
    },
  });

  expect(instanceLines(output, view, 200).at(-1)).toBe(
    "        waits for payment.received since 12:00:01.000, until 2026-02-03 12:00:01 " +
      "where event.payload.orderId === workflow.input.orderId",
  );
});

test("a step that no worker takes says so", () => {
  const view = instance({
    state: {
      variables: {},
      steps: { a: step("PENDING", { blocked: "task:unknown", startedAt: null, attempts: 0 }) },
      waitingFor: [],
    },
  });

  expect(instanceLines(output, view).at(-1)).toContain("no worker takes it: task:unknown");
});

test("steps in branches and items stand below their step, each once, by what comes after its path", () => {
  const at = (second: number) => ({
    startedAt: `2026-01-31T12:00:0${second}.000Z`,
    completedAt: `2026-01-31T12:00:0${second + 1}.000Z`,
  });
  const label = (index: number, more: object = {}) =>
    step("COMPLETED", { type: "TASK", path: `both.rest.ship[${index}].label`, ...more });
  const view = instance({
    state: {
      variables: {},
      waitingFor: [],
      steps: {
        after: step("PENDING", { startedAt: null, type: "TASK" }),
        label: label(1, at(4)),
        "both.rest.ship[1].label": label(1, at(4)),
        "both.rest.ship[0].label": label(0, at(3)),
        ship: step("RUNNING", {
          type: "MAP",
          path: "both.rest.ship",
          items: { count: 9, completed: 2, failed: 1, active: 4 },
          startedAt: at(2).startedAt,
        }),
        both: step("RUNNING", { type: "PARALLEL" }),
      },
    },
  });

  const lines = instanceLines(output, view);

  expect(lines.slice(lines.findIndex((line) => line.startsWith("steps")) + 1)).toEqual([
    "  ├─ ▶  both           RUNNING    PARALLEL  12:00:01.000",
    "  ├─ ▶    rest.ship    RUNNING    MAP       12:00:02.000",
    "  │     2 of 9 items completed, 1 failed, 4 active",
    "  ├─ ✔      [0].label  COMPLETED  TASK      12:00:03.000  1.0 s",
    "  ├─ ✔      [1].label  COMPLETED  TASK      12:00:04.000  1.0 s",
    "  └─ ·  after          PENDING    TASK",
  ]);
});

test("executions of a path are listed with the passes of their loops", () => {
  const lines = executionLines(output, [
    { ...step("COMPLETED"), stepId: "a", path: "a", iteration: 1, input: null, compensates: null },
    { ...step("FAILED"), stepId: "a", path: "a", iteration: 2, input: null, compensates: null },
  ]);

  expect(lines.map((line) => line.replaceAll(/ {2,}/g, " "))).toEqual([
    " ├─ ✔ a COMPLETED 12:00:01.000 1.0 s",
    " └─ ✘ a #2 FAILED 12:00:01.000 1.0 s",
  ]);
  expect(executionLines(output, [])).toEqual(["nothing has run there"]);
});

test("a parent and its child name each other", () => {
  const childId = "01890a5d-ac96-774b-bcce-b302099a8057";
  const view = instance({
    status: "WAITING_FOR_EVENT",
    parent: {
      instanceId: "01890a5d-ac96-774b-bcce-b302099a8058",
      path: "ship[3].parcel",
      executionId: "ship[3].parcel#1",
      detached: false,
    },
    state: {
      variables: {},
      waitingFor: [],
      steps: { pay: step("WAITING", { type: "SUB_WORKFLOW", childId }) },
    },
  });

  const lines = instanceLines(output, view);

  expect(lines).toContain("  child of    01890a5d-ac96-774b-bcce-b302099a8058 at ship[3].parcel");
  expect(lines.at(-1)).toContain(`child ${childId}`);
});
