import { expect, test } from "vitest";
import { ask, broken, found, lastChange, timeOf, without } from "./forgery.ts";
import type { Forgeries, Loose } from "./forgery.ts";
import type { RequestRecord } from "../record.ts";

const forgeries: Forgeries = [
  [
    "P2",
    "a failed instance runs again, and nobody retried it",
    "mended",
    (f) => without(f, "retry"),
  ],
  [
    "P2",
    "it runs again, and the retry was refused",
    "mended",
    ({ request }) => void Object.assign(request("retry"), { status: 409, seen: [] }),
  ],
  [
    "P2",
    "it runs again twice, and was retried once",
    "mended",
    ({ requests }) => {
      const [first] = requests.filter(({ operation }) => operation === "retry");
      requests.splice(requests.indexOf(found(first, "retry")), 1);
    },
  ],
  [
    "P2",
    "it ran again before anybody retried it",
    "mended",
    (forgery) => {
      const retriedAt = timeOf(forgery, "RUNNING", 1);
      Object.assign(forgery.request("retry"), { sentAt: retriedAt + 50 });
    },
  ],
  [
    "P2",
    "it was seen FAILED, and RUNNING later, and was not retried in between",
    "abandoned",
    (forgery) => {
      const look = structuredClone(
        found(
          forgery.requests.findLast(({ seen }) => seen?.[0]?.status === "FAILED"),
          "sight of it",
        ),
      );
      const at = look.answeredAt + 1;
      const seen = look.seen?.map((each) => ({ ...each, status: "RUNNING" }));
      forgery.requests.push({ ...look, seen, sentAt: at, answeredAt: at } as Loose<RequestRecord>);
    },
  ],
  [
    "P2",
    "a retry long before does not let it leave FAILED",
    "abandoned",
    (forgery) => {
      const { history, view } = forgery;
      const failedAt = timeOf(forgery, "FAILED");
      without(forgery, "cancel");
      ask(forgery, "retry", 202, [failedAt - 500, failedAt - 400]);
      Object.assign(lastChange(history, "workflow.status"), {
        data: { from: "FAILED", to: "RUNNING" },
      });
      view.status = "RUNNING";
    },
  ],
  [
    "P2",
    "a failed instance is CANCELLED, and nobody cancelled it",
    "abandoned",
    (f) => without(f, "cancel"),
  ],
  [
    "P2",
    "a retry let it leave COMPLETED",
    "chain",
    (forgery) => {
      const { history } = forgery;
      const last = lastChange(history, "workflow.status");
      const at = timeOf(forgery, "COMPLETED");
      history.push({ ...last, data: { from: "COMPLETED", to: "RUNNING" } });
      history.push({ ...last, data: { from: "RUNNING", to: "COMPLETED" } });
      ask(forgery, "retry", 202, [at - 10, at + 10]);
    },
  ],
  [
    "P1",
    "an accepted retry was none",
    "mended",
    (forgery) => {
      const again = structuredClone(forgery.request("retry"));
      forgery.requests.push(again);
    },
  ],
  [
    "P1",
    "an accepted patch of a failed instance is gone",
    "mended",
    ({ view }) => void (view.state = { ...view.state, variables: { mended: false } }),
  ],
  [
    "P1",
    "what was mended and retried is still FAILED",
    "mended",
    ({ view, history }) => {
      view.status = "FAILED";
      lastChange(history, "workflow.status").data = { from: "RUNNING", to: "FAILED" };
    },
  ],
  [
    "P3",
    "a retry from where it failed runs what was completed once more",
    "mended",
    ({ entries, told }) => {
      const run = structuredClone(found(told("run", "before")[0], "run"));
      entries.push({ ...run, seq: 1_000_000, idempotencyKey: "another" });
    },
  ],
  [
    "P3",
    "a retry from a step runs more executions of it than there were retries",
    "mended",
    ({ entries, told }) => {
      const run = structuredClone(found(told("run", "before")[0], "run"));
      entries.push({ ...run, seq: 1_000_000, idempotencyKey: "another" });
    },
    1,
  ],
  [
    "P3",
    "an execution was retried that had attempts left",
    "mended",
    ({ entries, told }) => {
      const [failed] = told("failed", "breaks");
      entries.splice(entries.indexOf(found(failed, "failure")), 1);
    },
  ],
  [
    "P3",
    "after a retry a step sees the outcome of the execution before it",
    "mended",
    ({ told }) => {
      const [first] = told("outcome", "before");
      const last = found(told("run", "breaks").at(-1), "run");
      Object.assign(last.details ?? {}, { saw: found(first, "outcome").seq });
    },
    1,
  ],
  [
    "P3",
    "a second round has more attempts than it may",
    "parked",
    ({ step }) => void (step("flaky").attempts += 1),
  ],
  [
    "P1",
    "an event that was to start an instance has started none",
    "triggered",
    ({ instances, entries }) => {
      instances.splice(0);
      entries.splice(0);
    },
  ],
  [
    "P1",
    "an event has started two instances",
    "triggered",
    ({ instances, view, history }) => {
      const twin = { ...structuredClone(view), id: "a-twin" };
      instances.push({ view: twin, viewAgain: twin, history });
    },
  ],
  [
    "P1",
    "a start was not counted",
    "triggered",
    ({ request }) => {
      const { published } = request("publish");
      request("publish").published = { ...found(published, "answer"), started: 0 };
    },
  ],
  ["P1", "an accepted start is gone", "chain", ({ instances }) => void instances.splice(0)],
  [
    "P1",
    "one start has become two instances",
    "chain",
    ({ instances, view, history }) => {
      const twin = { ...structuredClone(view), id: "a-twin" };
      instances.push({ view: twin, viewAgain: twin, history });
    },
  ],
  [
    "P1",
    "a repeated start is answered with another instance",
    "chain",
    ({ requests, request }) => {
      const again = structuredClone(request("start"));
      again.seen = (again.seen ?? []).map((seen) => ({ ...seen, id: "another" }));
      requests.push(again);
    },
  ],
  [
    "P1",
    "an earlier state is seen again",
    "chain",
    ({ requests, request, view }) => {
      const look = structuredClone(request("look"));
      const seen = look.seen?.map((each) => ({ ...each, status: view.status, version: 2 }));
      const at = found(requests.at(-1), "request").answeredAt + 10;
      requests.push({ ...look, seen, sentAt: at, answeredAt: at + 1 } as Loose<RequestRecord>);
    },
  ],
  [
    "P1",
    "an accepted cancel has not cancelled",
    "cancelled",
    ({ view, history }) => {
      view.status = "COMPLETED";
      lastChange(history, "workflow.status").data = { from: "RUNNING", to: "COMPLETED" };
    },
  ],
  [
    "P1",
    "an event that was counted has had no effect",
    "wait_instance",
    ({ request, step, entries, told }) => {
      const { published } = request("publish");
      request("publish").published = { ...found(published, "answer"), delivered: 1 };
      step("wait").status = "CANCELLED";
      for (const entry of [...told("run", "met"), ...told("outcome", "met")]) {
        entries.splice(entries.indexOf(entry), 1);
      }
    },
  ],
  [
    "P2",
    "it was seen COMPLETED, and RUNNING later",
    "chain",
    ({ requests, request, view }) => {
      const at = found(requests.at(-1), "request").answeredAt + 10;
      const look = structuredClone(request("look"));
      const seen = look.seen?.map((each) => ({
        ...each,
        status: "RUNNING",
        version: view.version,
      }));
      requests.push({ ...look, seen, sentAt: at, answeredAt: at + 1 } as Loose<RequestRecord>);
    },
  ],
  [
    "P2",
    "history goes on after the end",
    "chain",
    ({ history }) => {
      const last = lastChange(history, "workflow.status");
      history.push({ ...last, data: { from: "COMPLETED", to: "RUNNING" } });
      history.push({ ...last, data: { from: "RUNNING", to: "COMPLETED" } });
    },
  ],
  [
    "P2",
    "a version is missing in history",
    "chain",
    ({ history }) => {
      const gone = history.filter(({ version }) => version === 2);
      for (const each of gone) history.splice(history.indexOf(each), 1);
    },
  ],
  [
    "P2",
    "it changed after it had come to rest",
    "chain",
    ({ instances, view }) => {
      Object.assign(found(instances[0], "instance"), {
        viewAgain: { ...view, version: view.version + 1 },
      });
    },
  ],
  [
    "P3",
    "the stored output is not that of a run of the step",
    "chain",
    ({ step, told }) => {
      step("three").output = { record: found(told("outcome", "two")[0], "outcome").seq };
    },
  ],
  [
    "P3",
    "a run under another key",
    "chain",
    ({ entries, told }) => {
      const run = structuredClone(found(told("run", "two")[0], "run"));
      entries.push({ ...run, seq: 1_000_000, idempotencyKey: "another" });
    },
  ],
  [
    "P3",
    "a step saw an outcome that is not stored",
    "chain",
    ({ told }) => {
      Object.assign(found(told("run", "three")[0], "run").details ?? {}, { saw: 1 });
    },
  ],
  [
    "P3",
    "a step ran before the one before it had an outcome",
    "chain",
    ({ told }) => {
      const outcome = found(told("outcome", "one")[0], "outcome");
      found(told("run", "two")[0], "run").receivedAt = outcome.receivedAt - 1;
    },
  ],
  [
    "P3",
    "an attempt is counted that nobody made",
    "retried",
    ({ step }) => {
      step("flaky").attempts += 1;
    },
  ],
  [
    "P3",
    "a retry of an attempt that has not failed",
    "retried",
    ({ entries, told }) => {
      for (const failed of told("failed", "flaky")) entries.splice(entries.indexOf(failed), 1);
    },
  ],
  [
    "P3",
    "an execution has ended twice",
    "chain",
    ({ history }) =>
      void history.push(structuredClone(lastChange(history, "workflow.step.completed"))),
  ],
  [
    "P13",
    "it went over to another version",
    "chain",
    ({ told }) =>
      void Object.assign(found(told("run", "two")[0], "run").details ?? {}, { marker: 7 }),
  ],
];

for (const [promise, what, scenario, tamper, index = 0] of forgeries) {
  test(`${promise}: ${what}`, () => {
    expect(broken(scenario, tamper, index)).toContain(promise);
  });
}
