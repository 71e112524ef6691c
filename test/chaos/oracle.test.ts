import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { HistoryEntry, InstanceView, StepView } from "@millrace/contract";
import { expect, test } from "vitest";
import type { CasePlan, Scenario } from "./load-plan.ts";
import { judge } from "./oracle.ts";
import type { FaultRecord, RequestRecord, RunRecord } from "./record.ts";

// An oracle that finds nothing proves nothing unless it can find something. The fixture is the record
// of a real run in which all was well, one case of each kind; each forgery breaks one promise in it.

/** A case of the fixture, to be tampered with. */
interface Forgery {
  readonly plan: Loose<CasePlan>;
  readonly requests: Loose<RequestRecord>[];
  readonly entries: Loose<RunRecord["entries"][number]>[];
  readonly faults: FaultRecord[];
  readonly instances: { view: View; viewAgain: View; history: Loose<HistoryEntry>[] }[];
  readonly view: View;
  readonly history: Loose<HistoryEntry>[];
  step(stepId: string): Loose<StepView>;
  request(operation: RequestRecord["operation"]): Loose<RequestRecord>;
  told(kind: string, step: string): Loose<RunRecord["entries"][number]>[];
}

type Loose<T> = { -readonly [Key in keyof T]: T[Key] } & { details?: Record<string, unknown> };
type View = Loose<InstanceView>;

const quiet = JSON.parse(
  readFileSync(join(import.meta.dirname, "../fixtures/chaos/quiet.json"), "utf8"),
) as RunRecord;

/** The n-th case of that scenario, alone, as a record of its own. */
function forge(scenario: Scenario, index: number, tamper: (forgery: Forgery) => void): RunRecord {
  const plan = structuredClone(quiet.cases.filter((each) => each.scenario === scenario)[index]);
  if (!plan) throw new Error(`the fixture has no ${scenario} ${index}`);
  const instances = quiet.instances
    .filter(({ view }) => view.correlationId === plan.key)
    .map(({ view, history }) => structuredClone({ view, viewAgain: view, history }));
  // Children bear its correlation id, too.
  const own = instances.find(({ view: { workflowId } }) => workflowId === plan.workflowId);
  const { view, history } = own ?? {};
  const ids = new Set(instances.map(({ view: { id } }) => id));
  if (!view || !history) throw new Error(`the fixture has no instance of ${plan.key}`);
  const record = structuredClone({
    cases: [plan],
    requests: quiet.requests.filter(({ caseNumber }) => caseNumber === plan.number),
    entries: quiet.entries.filter(({ instance }) => ids.has(instance)),
    faults: [],
  });
  const forgery = {
    ...record,
    instances,
    plan,
    view,
    history,
    step: (stepId: string) => found(view.state.steps[stepId], stepId),
    request: (operation: string) =>
      found(
        record.requests.find((each) => each.operation === operation),
        operation,
      ),
    told: (kind: string, step: string) =>
      record.entries.filter((each) => each.details["kind"] === kind && each.step === step),
  };
  tamper(forgery as unknown as Forgery);
  return { ...record, instances };
}

function found<T>(value: T | undefined, name: string): T {
  if (value === undefined) throw new Error(`the fixture has no ${name}`);
  return value;
}

test("a record in which all is well is without a finding, alone and with the others", () => {
  const alone = quiet.cases.map(({ scenario, number }) => {
    const index = quiet.cases
      .filter((each) => each.scenario === scenario)
      .findIndex((each) => each.number === number);
    return judge(forge(scenario, index, () => {}));
  });
  const whole = judge({
    ...quiet,
    instances: quiet.instances.map((each) => ({ ...each, viewAgain: each.view })),
  });

  expect(alone.flat()).toEqual([]);
  expect(whole).toEqual([]);
});

type Case = readonly [
  promise: string,
  what: string,
  scenario: Scenario,
  tamper: (forgery: Forgery) => void,
  index?: number,
];

const lastChange = (history: Loose<HistoryEntry>[], type: string) =>
  found(
    history.findLast((each) => each.type === type),
    type,
  );

/** One more answer of that operation, with such a status, between `sentAt` and `answeredAt`. */
function ask(
  { requests, plan, view }: Forgery,
  operation: RequestRecord["operation"],
  status: number | undefined,
  [sentAt, answeredAt]: readonly [number, number],
): void {
  requests.push({
    caseNumber: plan.number,
    operation,
    subject: view.id,
    status,
    sentAt,
    answeredAt,
  });
}

/** When it became so, by the history: the n-th time. */
function timeOf({ history }: Forgery, status: string, index = 0): number {
  const changes = history.filter(
    ({ type, data }) => type === "workflow.status" && (data as { to: string }).to === status,
  );
  return Date.parse(found(changes[index], status).at);
}

function without({ requests }: Forgery, operation: RequestRecord["operation"]): void {
  const gone = requests.filter((each) => each.operation === operation);
  for (const each of gone) requests.splice(requests.indexOf(each), 1);
}

/** Forged records of what a client that is in doubt may see, in which nothing is wrong. */
const permitted: readonly [what: string, Scenario, (forgery: Forgery) => void][] = [
  [
    "a retry without an answer may have been one",
    "mended",
    ({ requests }) => {
      const retry = found(
        requests.find(({ operation }) => operation === "retry"),
        "retry",
      );
      Object.assign(retry, { status: undefined, seen: [] });
    },
  ],
  [
    "so may a retry that was answered 503",
    "mended",
    ({ requests }) => {
      const retry = found(
        requests.findLast(({ operation }) => operation === "retry"),
        "retry",
      );
      Object.assign(retry, { status: 503, seen: [] });
    },
  ],
  [
    "so may a cancel of a failed instance",
    "abandoned",
    ({ request }) => void Object.assign(request("cancel"), { status: undefined, seen: [] }),
  ],
];

test.each(permitted)("in doubt is no violation: %s", (_what, scenario, tamper) => {
  expect(judge(forge(scenario, 0, tamper))).toEqual([]);
});

const forgeries: readonly Case[] = [
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
    "P6",
    "an attempt of a retried execution came before its time",
    "mended",
    ({ told }) => {
      const failed = found(told("failed", "breaks")[0], "failure");
      const again = told("run", "breaks").find(({ attempt }) => attempt === 2);
      found(again, "retry").receivedAt = failed.receivedAt + 50;
    },
  ],
  [
    "P9",
    "what failed was undone, and nobody had cancelled it",
    "abandoned",
    (forgery) => {
      const { history, view } = forgery;
      const last = lastChange(history, "workflow.status");
      history.splice(history.indexOf(last), 1);
      without(forgery, "cancel");
      view.status = "FAILED";
    },
  ],
  [
    "P9",
    "what was abandoned is not undone",
    "abandoned",
    ({ view }) => void (view.compensation = null),
  ],
  [
    "P11",
    "what is parked goes on before its operator has spoken",
    "parked",
    ({ told, request }) => {
      const fourth = told("run", "flaky").find(({ attempt }) => attempt === 4);
      found(fourth, "run").receivedAt = request("retry").sentAt - 50;
    },
  ],
  [
    "P11",
    "what is parked goes on, though nobody ever resumed it",
    "parked",
    (f) => without(f, "resume"),
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
  [
    "P5",
    "an event for one alone is in two hands",
    "rival",
    ({ instances, view, history }) => {
      const other = { ...structuredClone(view), id: "a-rival", correlationId: "another" };
      instances.push({ view: other, viewAgain: other, history });
    },
  ],
  [
    "P5",
    "it went on with another event than the one it took",
    "rival_too",
    ({ told }) =>
      void Object.assign(found(told("run", "met")[0], "run").details ?? {}, { saw: "event-x" }),
  ],
  [
    "P4",
    "it took an event of another round",
    "rival",
    ({ step }) => {
      const output = step("wait").output as Record<string, unknown>;
      step("wait").output = { ...output, payload: { round: 77 } } as never;
    },
  ],
  [
    "P12",
    "a rival goes without an event",
    "rival",
    ({ view }) => void (view.status = "WAITING_FOR_EVENT"),
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
    "P4",
    "an event that was published to an open wait is lost",
    "wait",
    ({ request, step, entries, told, view }) => {
      const { published } = request("publish");
      request("publish").published = { ...found(published, "answer"), delivered: 0 };
      step("wait").status = "WAITING";
      view.status = "WAITING_FOR_EVENT";
      for (const entry of [...told("run", "met"), ...told("outcome", "met")]) {
        entries.splice(entries.indexOf(entry), 1);
      }
    },
  ],
  [
    "P4",
    "an event within the lookback is not found",
    "wait_lookback",
    ({ step, view }) => {
      step("wait").status = "WAITING";
      view.status = "WAITING_FOR_EVENT";
    },
  ],
  [
    "P4",
    "an event from before the wait meets it by luck",
    "stale",
    ({ step, plan, told }) => {
      Object.assign(step("wait"), { status: "COMPLETED", output: { id: `event-${plan.key}` } });
      for (const run of told("run", "late")) Object.assign(run, { step: "met" });
    },
  ],
  [
    "P4",
    "the wait took somebody else's event",
    "wait",
    ({ step }) => void (step("wait").output = { id: "event-of-another" }),
  ],
  [
    "P5",
    "event and timeout have both won",
    "race",
    ({ entries, told }) => {
      const run = structuredClone(found(told("run", "met")[0], "run"));
      entries.push({ ...run, seq: 1_000_000, step: "late", idempotencyKey: "late" });
    },
  ],
  [
    "P5",
    "the event was counted, and the timeout won",
    "race",
    ({ request }) => {
      const { published } = request("publish");
      request("publish").published = { ...found(published, "answer"), delivered: 1 };
    },
    1,
  ],
  [
    "P5",
    "the event was counted as missed, and won",
    "race",
    ({ request }) => {
      const { published } = request("publish");
      request("publish").published = { ...found(published, "answer"), delivered: 0 };
    },
  ],
  [
    "P6",
    "a delay ended early, by the ledger's clock",
    "delay",
    ({ told }) => {
      const outcome = found(told("outcome", "before")[0], "outcome");
      found(told("run", "after")[0], "run").receivedAt = outcome.receivedAt + 100;
    },
  ],
  [
    "P6",
    "a delay ended early, by the product's word",
    "delay",
    ({ step }) => {
      step("rest").completedAt = step("rest").startedAt;
    },
  ],
  [
    "P6",
    "a timer was forgotten until much later",
    "delay",
    ({ told }) => {
      found(told("run", "after")[0], "run").receivedAt += 120_000;
    },
  ],
  [
    "P6",
    "a timeout came early",
    "stale",
    ({ told }) => {
      const outcome = found(told("outcome", "before")[0], "outcome");
      found(told("run", "late")[0], "run").receivedAt = outcome.receivedAt + 100;
    },
  ],
  [
    "P6",
    "a retry came before its time",
    "retried",
    ({ told }) => {
      const failed = found(told("failed", "flaky")[0], "failure");
      const again = told("run", "flaky").find(({ attempt }) => attempt === 2);
      found(again, "retry").receivedAt = failed.receivedAt + 50;
    },
  ],
  [
    "P8",
    "the join did not wait for all",
    "parallel_all",
    ({ told }) => {
      found(told("outcome", "r2")[0], "outcome").seq += 1_000_000;
    },
  ],
  [
    "P8",
    "the join did not wait for two",
    "parallel_two",
    ({ told }) => {
      for (const name of ["p", "q"]) {
        for (const outcome of told("outcome", `${name}2`)) outcome.seq += 1_000_000;
      }
    },
  ],
  [
    "P8",
    "the join fired twice",
    "parallel_all",
    ({ history }) => {
      const fired = history.find(({ stepId }) => stepId === "after");
      history.push(structuredClone(found(fired, "after")));
    },
  ],
  [
    "P8",
    "a branch went on after the join",
    "parallel_all",
    ({ told }) => {
      found(told("outcome", "q1")[0], "outcome").seq += 1_000_000;
    },
  ],
  [
    "P8",
    "the output of a MAP is not in the order of its items",
    "map",
    ({ step }) => {
      step("items").output = (step("items").output as InstanceView[]).toReversed() as never;
    },
  ],
  [
    "P9",
    "compensations in the wrong order",
    "saga",
    ({ view }) => {
      Object.assign(view.compensation ?? {}, { plan: view.compensation?.plan.toReversed() });
    },
  ],
  [
    "P9",
    "a completed step is not undone",
    "saga",
    ({ view }) => {
      Object.assign(view.compensation ?? {}, { plan: view.compensation?.plan.slice(1) });
    },
  ],
  [
    "P9",
    "a compensation ran before the one before it had ended",
    "saga",
    ({ told }) => {
      found(told("run", "undo_a")[0], "run").seq = 0;
    },
  ],
  [
    "P9",
    "a failed compensation is not recorded",
    "saga",
    ({ view }) => {
      const { completed = [] } = view.compensation ?? {};
      Object.assign(view.compensation ?? {}, { failed: [], completed: [...completed, "undo_b"] });
    },
  ],
  [
    "P9",
    "the rest is not undone after a failed compensation",
    "saga",
    ({ view }) => {
      const { completed = [] } = view.compensation ?? {};
      const left = completed.filter((step) => step !== "undo_a");
      Object.assign(view.compensation ?? {}, { completed: left });
    },
  ],
  [
    "P9",
    "a step that never ran is called uncertain, and no worker had died",
    "saga",
    ({ view }) => void Object.assign(view.compensation ?? {}, { uncertain: ["d"] }),
  ],
  [
    "P9",
    "nothing is compensated",
    "saga_of_branches",
    ({ view }) => void (view.compensation = null),
  ],
  [
    "P9",
    "what was completed is undone",
    "retried",
    ({ entries, told }) => {
      const run = structuredClone(found(told("run", "before")[0], "run"));
      entries.push({ ...run, seq: 1_000_000, step: "undo_before", idempotencyKey: "undo" });
    },
  ],
  [
    "P10",
    "a MAP runs more items at once than it may",
    "map",
    ({ told }) => {
      const first = found(told("run", "item")[0], "run").seq;
      for (const [index, outcome] of told("outcome", "item").entries()) {
        Object.assign(outcome.details ?? {}, { run: first });
        if (index === 0) outcome.seq = first;
      }
    },
  ],
  [
    "P11",
    "a step began long after the cancel",
    "cancelled",
    ({ entries, told, request }) => {
      const run = structuredClone(found(told("run", "before")[0], "run"));
      const receivedAt = request("cancel").answeredAt + 30_000;
      entries.push({ ...run, seq: 1_000_000, receivedAt });
    },
  ],
  [
    "P11",
    "a late result moved the workflow on",
    "cancelled",
    ({ entries, told, request }) => {
      const run = structuredClone(found(told("run", "long")[0], "run"));
      const at = request("cancel").answeredAt;
      const outcome = { ...run.details, kind: "outcome" };
      entries.push({ ...run, seq: 1_000_000, receivedAt: at + 10, details: outcome });
      entries.push({
        ...run,
        seq: 1_000_001,
        receivedAt: at + 20,
        step: "after",
        idempotencyKey: "after",
        details: { ...run.details, saw: 1_000_000 },
      });
    },
  ],
  [
    "P11",
    "what ran was never told of the cancel",
    "cancelled",
    ({ entries, told }) => {
      for (const entry of told("aborted", "long")) entries.splice(entries.indexOf(entry), 1);
    },
  ],
  ["P12", "it stands still", "chain", ({ view }) => void (view.status = "RUNNING")],
  [
    "P12",
    "its compensation never ends",
    "saga",
    ({ view }) => void Object.assign(view.compensation ?? {}, { status: "IN_PROGRESS" }),
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
    const violations = judge(forge(scenario, index, tamper));

    expect(violations.map((violation) => violation.promise)).toContain(promise);
  });
}

test("a step may be uncertain that ran in a branch, or whose worker died before it told anybody", () => {
  const inBranch = forge("saga_of_branches", 0, ({ view }) => {
    Object.assign(view.compensation ?? {}, { uncertain: ["fork.x.x1"] });
  });
  const killed = forge("saga", 0, ({ view, faults }) => {
    Object.assign(view.compensation ?? {}, { uncertain: ["d"] });
    const at = Date.parse(view.createdAt);
    faults.push({ kind: "process killed", at, healedAt: at, about: "worker 1" });
  });

  expect([...judge(inBranch), ...judge(killed)]).toEqual([]);
});
