import type {
  InstanceView,
  OverlapPolicy,
  ScheduleRunView,
  ScheduleView,
} from "@millrace/contract";
import { expect, test } from "vitest";
import { judge } from "../oracle.ts";
import type { RequestRecord, RunRecord } from "../record.ts";
import { tickedStep } from "../schedules.ts";
import type { ScheduledPlan } from "../schedules.ts";
import { found, type Loose } from "./forgery.ts";

// A schedule of ten ticks in whose record all is well, by what its client, the ledger and the API have of
// it; each forgery breaks one promise in it.

const second = 1_000;
const startAt = Date.parse("2026-06-01T12:00:00Z");
const everyMs = 4 * second;
const tickAt = (index: number) => startAt + index * everyMs;
const iso = (ms: number) => new Date(ms).toISOString();

interface World {
  readonly plan: ScheduledPlan;
  readonly requests: Loose<RequestRecord>[];
  readonly runs: Loose<ScheduleRunView>[];
  readonly instances: { view: Loose<InstanceView>; viewAgain: InstanceView; history: [] }[];
  readonly entries: Loose<RunRecord["entries"][number]>[];
  readonly view: Loose<ScheduleView>;
  /** Another run of a tick, all of whose traces are there. */
  run(index: number, kind?: ScheduleRunView["kind"], name?: string): void;
}

function worldOf(overlapPolicy: OverlapPolicy, what: ScheduledPlan["what"]): World {
  const endAt = tickAt(9);
  const plan = { id: "s", everyMs, startAt, endAt, overlapPolicy, isCron: false, taskMs: 50, what };
  const view = {
    status: "COMPLETED",
    counts: { started: 0, skipped: 0, missed: 0, failed: 0 },
  } as unknown as Loose<ScheduleView>;
  const world: World = {
    plan,
    requests: [],
    runs: [],
    instances: [],
    entries: [],
    view,
    run(index, kind = "TICK", name = `i-${index}-${kind}`) {
      const at = tickAt(index);
      const createdAt = iso(at + 20);
      const tick = iso(at);
      const started = { status: "STARTED", reason: null, message: null } as const;
      world.runs.push({
        kind,
        tickAt: tick,
        ...started,
        instanceId: name,
        startedAt: createdAt,
        createdAt,
      });
      const instance = {
        id: name,
        workflowId: "ticking",
        status: "COMPLETED",
        createdAt,
        completedAt: iso(at + 500),
        correlationId: null,
        metadata: { schedule: { id: plan.id, tickAt: tick, kind } },
        state: { steps: {} },
      } as unknown as Loose<InstanceView>;
      world.instances.push({ view: instance, viewAgain: instance, history: [] });
      const entry = {
        step: tickedStep,
        instance: name,
        branch: undefined,
        attempt: 1,
        idempotencyKey: name,
      };
      const seq = world.entries.length;
      world.entries.push(
        { ...entry, seq, receivedAt: at + 100, details: { kind: "run" } },
        { ...entry, seq: seq + 1, receivedAt: at + 150, details: { kind: "outcome" } },
      );
      view.counts = { ...view.counts, started: view.counts.started + 1 };
    },
  };
  ask(world, "schedule", 200, startAt - 3 * second);
  const isPaused = what === "paused" || what === "backfilled";
  if (isPaused) {
    ask(world, "schedule pause", 202, tickAt(3) + second);
    ask(world, "schedule resume", 202, tickAt(6) + second);
  }
  for (let index = 0; index < 10; index += 1) {
    const isHeld = isPaused && index > 3 && index <= 6;
    if (!isHeld) world.run(index);
    else if (what === "backfilled") world.run(index, "BACKFILL");
  }
  if (what === "backfilled") ask(world, "schedule backfill", 202, tickAt(7) + second);
  if (what === "triggered") {
    ask(world, "schedule trigger", 202, tickAt(2), "i-2-MANUAL");
    world.run(2, "MANUAL");
  }
  return world;
}

function ask(
  { requests, plan }: Pick<World, "requests" | "plan">,
  operation: RequestRecord["operation"],
  status: number | undefined,
  sentAt: number,
  triggered?: string,
): void {
  const answer = { status, sentAt, answeredAt: sentAt + 50, ...(triggered && { triggered }) };
  requests.push({ caseNumber: undefined, operation, subject: plan.id, ...answer });
}

function judged(world: World): readonly string[] {
  const { plan, view, runs, requests, instances, entries } = world;
  const record = { cases: [], faults: [], requests, instances, entries } as const;
  return judge({ ...record, schedules: [{ plan, view, runs }] }).map(({ promise }) => promise);
}

/** The tick comes to nothing, and nobody says why. */
function forget({ runs, instances, entries, view }: World, index: number): void {
  const id = found(runs[index]?.instanceId, "run");
  runs.splice(index, 1);
  instances.splice(index, 1);
  for (const entry of entries.filter(({ instance }) => instance === id)) {
    entries.splice(entries.indexOf(entry), 1);
  }
  view.counts = { ...view.counts, started: view.counts.started - 1 };
}

function skip(world: World, index: number, reason: string): void {
  const run = found(world.runs[index], "run");
  forget(world, index);
  const skipped = { ...run, status: "SKIPPED", reason, instanceId: null, startedAt: null } as const;
  world.runs.splice(index, 0, skipped);
}

test.each([
  ["ALLOW_ALL", "left alone"],
  ["ALLOW_ALL", "triggered"],
  ["ALLOW_ALL", "paused"],
  ["ALLOW_ALL", "backfilled"],
  ["SKIP", "left alone"],
  ["CANCEL_OTHER", "left alone"],
] as const)("all is well under %s, %s", (policy, what) => {
  expect(judged(worldOf(policy, what))).toEqual([]);
});

test("what nobody was promised may be missing: ticks before it was made, runs in doubt", () => {
  const late = worldOf("ALLOW_ALL", "triggered");
  Object.assign(found(late.requests[0], "request"), { answeredAt: tickAt(1) + 10 });
  forget(late, 0);
  forget(late, 0);
  ask(late, "schedule trigger", undefined, tickAt(5));
  const skipping = worldOf("SKIP", "left alone");
  found(skipping.instances[2], "instance").view.completedAt = iso(tickAt(3) + 100);
  skip(skipping, 3, "OVERLAP");

  expect([...judged(late), ...judged(skipping)]).toEqual([]);
});

type Forged = readonly [
  promise: string,
  what: string,
  policy: OverlapPolicy,
  how: ScheduledPlan["what"],
  tamper: (world: World) => void,
];

const forgeries: readonly Forged[] = [
  [
    "P7",
    "one tick started two instances",
    "ALLOW_ALL",
    "left alone",
    (world) => world.run(4, "TICK", "another"),
  ],
  [
    "P7",
    "a backfill repeated a tick that ran",
    "ALLOW_ALL",
    "backfilled",
    (world) => world.run(1, "BACKFILL"),
  ],
  ["P7", "a tick that was owed is lost", "ALLOW_ALL", "left alone", (world) => forget(world, 4)],
  [
    "P7",
    "so is one of a pause after its backfill",
    "ALLOW_ALL",
    "backfilled",
    (world) => forget(world, 5),
  ],
  [
    "P7",
    "a tick within the catch-up window is missed",
    "ALLOW_ALL",
    "left alone",
    (world) => skip(world, 4, "MISSED"),
  ],
  [
    "P7",
    "a run that is not there is listed",
    "ALLOW_ALL",
    "left alone",
    ({ instances }) => void instances.splice(4, 1),
  ],
  ["P7", "a run is not listed", "ALLOW_ALL", "left alone", ({ runs }) => void runs.splice(4, 1)],
  [
    "P7",
    "the ledger has a run that the API does not know",
    "ALLOW_ALL",
    "left alone",
    ({ entries }) => void entries.push({ ...found(entries[0], "entry"), instance: "nobody" }),
  ],
  [
    "P7",
    "it ran a tick that it does not have",
    "ALLOW_ALL",
    "left alone",
    (world) => world.run(4.5),
  ],
  [
    "P6",
    "a tick came early",
    "ALLOW_ALL",
    "left alone",
    ({ instances }) => void (found(instances[4], "instance").view.createdAt = iso(tickAt(4) - 5)),
  ],
  ["P7", "it ticked while it was paused", "ALLOW_ALL", "paused", (world) => world.run(5)],
  [
    "P7",
    "it ticked before it was made",
    "ALLOW_ALL",
    "left alone",
    (world) => {
      Object.assign(found(world.requests[0], "request"), {
        sentAt: tickAt(2),
        answeredAt: tickAt(3),
      });
    },
  ],
  [
    "P7",
    "ticks were skipped though nothing was live",
    "SKIP",
    "left alone",
    (world) => [3, 4, 5].forEach((index) => skip(world, index, "OVERLAP")),
  ],
  [
    "P7",
    "two runs were live at the same time",
    "SKIP",
    "left alone",
    ({ instances }) =>
      void (found(instances[4], "instance").view.completedAt = iso(tickAt(5) + 1_500)),
  ],
  [
    "P7",
    "a run began before the one before it had told its outcome",
    "BUFFER_ALL",
    "left alone",
    ({ entries }) => void (found(entries[9], "entry").receivedAt = tickAt(5) + 120),
  ],
  [
    "P1",
    "a run that was promised is not there",
    "ALLOW_ALL",
    "triggered",
    (world) => forget(world, 10),
  ],
  [
    "P7",
    "one run was asked for, and two were started",
    "ALLOW_ALL",
    "triggered",
    (world) => world.run(3, "MANUAL"),
  ],
  [
    "P1",
    "a run ended otherwise",
    "ALLOW_ALL",
    "left alone",
    ({ instances }) => void (found(instances[4], "instance").view.status = "FAILED"),
  ],
  [
    "P12",
    "it has not come to its end",
    "ALLOW_ALL",
    "left alone",
    ({ view }) => void (view.status = "ACTIVE"),
  ],
];

test.each(forgeries)("%s: %s", (promise, _what, policy, how, tamper) => {
  const world = worldOf(policy, how);

  tamper(world);

  expect(judged(world)).toContain(promise);
});

test("P1: a schedule that was answered 2xx is not there", () => {
  const { requests } = worldOf("ALLOW_ALL", "left alone");
  const record = { cases: [], faults: [], requests, instances: [], entries: [], schedules: [] };

  expect(judge(record).map(({ promise }) => promise)).toEqual(["P1"]);
});
