import fc from "fast-check";
import { expect, test } from "vitest";
import {
  applyChanges,
  blankSnapshot,
  changesBetween,
  decodeSnapshot,
  encodeFrontier,
  restoredSignal,
  storedSignal,
} from "../../src/index.ts";
import type { LiveExecution, Signal, Snapshot, StoredSnapshot } from "../../src/index.ts";

const identity = {
  id: "018f0000-0000-7000-8000-000000000000",
  tenantId: "t",
  workflowId: "wf",
  workflowVersion: 1,
  correlationId: null,
  userId: "u",
  startEventId: null,
  parent: {
    instanceId: "018f0000-0000-7000-8000-000000000002",
    path: "m[3].sub",
    iteration: 1,
    attempt: 2,
    awaited: true,
    depth: 1,
  },
  createdAt: new Date("2026-01-01T00:00:00Z"),
  input: { a: 1 },
} as const;

const name = fc.constantFrom(
  "a",
  "b",
  "c",
  "x/0/y",
  "p#q",
  "p.left.a",
  "p.right.m[12].a",
  "__proto__",
  "constructor",
);
const json = fc.jsonValue({ maxDepth: 2 }) as fc.Arbitrary<Snapshot["input"]>;
const time = fc
  .date({ noInvalidDate: true, min: new Date(0), max: new Date(4e12) })
  .map((date) => new Date(Math.floor(date.getTime())));
const timers = fc.subarray(["wait", "delay", "total"] as const);
const waitKey = fc.oneof(fc.constant("NEVER" as const), fc.array(json, { maxLength: 2 }));

const liveExecution = (path: string, iteration: number): fc.Arbitrary<LiveExecution> =>
  fc.record(
    {
      stepId: fc.constantFrom(path, "s"),
      path: fc.constant(path),
      iteration: fc.constant(iteration),
      phase: fc.constantFrom("ACTIVE", "WAITING", "AWAITED", "READY", "OPEN"),
      attempt: fc.integer({ min: 1, max: 3 }),
      timers,
      waitKey,
      compensates: fc.constant("a#1"),
      child: fc.constant("018f0000-0000-7000-8000-000000000001"),
      branches: fc.constant({ completed: { left: "p.left.a#1", right: null }, failed: 1 }),
      items: fc.constant({
        count: 9,
        next: 7,
        completed: 4,
        failed: 1,
        failedItems: "04",
        after: 3,
      }),
      ...(path.includes(".") ? placeOf(path, iteration) : undefined),
    },
    {
      requiredKeys: ["stepId", "path", "iteration", "phase", "attempt", "timers", ...inside(path)],
    },
  );

const inside = (path: string) => (path.includes(".") ? (["within"] as const) : []);

/** A path says where it is; only the iteration and what came before are not in it. */
function placeOf(
  path: string,
  iteration: number,
): { readonly within: fc.Arbitrary<NonNullable<LiveExecution["within"]>> } {
  return {
    within: fc.record({
      path: fc.constant(path.endsWith("].a") ? "p.right.m" : "p"),
      iteration: fc.constantFrom(iteration, 7),
      at: fc.constant(path.endsWith("].a") ? 12 : "left"),
      last: fc.constantFrom(null, "p.left.z#1"),
    }),
  };
}

const liveMap = fc
  .uniqueArray(fc.tuple(name, fc.integer({ min: 1, max: 2 })), {
    maxLength: 4,
    selector: ([path, iteration]) => `${path}#${iteration}`,
  })
  .chain((keys) => fc.tuple(...keys.map(([path, iteration]) => liveExecution(path, iteration))))
  .map((all) => dictionary(all.map((each) => [`${each.path}#${each.iteration}`, each])));

const error = fc.record({
  kind: fc.constantFrom("TASK", "TIMEOUT"),
  type: fc.string(),
  message: fc.string(),
  stepId: fc.constantFrom("a", null),
  attempt: fc.constantFrom(1, null),
  details: json,
});

const snapshot: fc.Arbitrary<Snapshot> = fc.record({
  ...Object.fromEntries(Object.entries(identity).map(([key, value]) => [key, fc.constant(value)])),
  version: fc.constant(0),
  priority: fc.integer({ min: -3, max: 3 }),
  status: fc.constantFrom("CREATED", "RUNNING", "FAILED"),
  startedAt: fc.option(time),
  completedAt: fc.option(time),
  variables: fc.array(fc.tuple(name, json), { maxLength: 4 }).map(dictionary),
  output: json,
  error: fc.option(error),
  cancellation: fc.constant(null),
  compensation: fc.constant(null),
  live: liveMap,
  iterations: fc.array(fc.tuple(name, fc.nat(9)), { maxLength: 3 }).map(dictionary),
  entered: fc.nat(3),
  completions: fc.nat(3),
  completedSteps: fc.nat(3),
  countedSteps: fc.constantFrom([], ["a"], ["a", "fork.x.b"]),
  begunItems: fc.nat(2),
  lastOutput: fc.constantFrom(null, "a#1"),
  uncertain: fc.constantFrom([], ["a.b.c"]),
  timers,
  triggerKeys: fc.array(fc.tuple(fc.constantFrom("1", "2"), waitKey)).map(dictionary),
  interventions: fc.nat(3),
  reopened: fc.nat(3),
  limits: fc.option(fc.constant("tenant type:a")),
  slot: fc.constantFrom(null, "WANTED", "HELD"),
  slotRequests: fc.nat(2),
  slotWantedAt: fc.option(fc.constant("2026-03-01T12:00:00.000Z")),
  slotPromotedAt: fc.option(fc.constant("2026-03-01T12:30:00.000Z")),
  failedAt: fc.constantFrom(null, "a#2"),
  pause: fc.option(
    fc.record({
      from: fc.constantFrom("CREATED", "RUNNING"),
      at: fc.constant("2026-01-01T00:00:00.000Z"),
      by: fc.constant("user:ada"),
      reason: fc.option(fc.string()),
      until: fc.constantFrom(null, "2026-01-02T00:00:00.000Z"),
      cause: fc.constantFrom("REQUEST", "EXHAUSTED"),
    }),
  ),
}) as unknown as fc.Arbitrary<Snapshot>;

/** Keys as own properties, `__proto__` too. */
function dictionary<T>(entries: readonly (readonly [string, T])[]): Record<string, T> {
  return Object.fromEntries(entries);
}

/** Through JSON text and back, as everything stored goes. */
function throughText<T>(value: T): T {
  return JSON.parse(JSON.stringify(value)) as T;
}

test("changes applied to a snapshot give the next one, through JSON text", () => {
  fc.assert(
    fc.property(snapshot, snapshot, (previous, next) => {
      const changes = throughText(changesBetween(previous, next));

      const applied = applyChanges(previous, changes);

      expect(textOf(applied)).toBe(textOf({ ...next, version: previous.version + 1 }));
      expect(applied.startedAt).toEqual(next.startedAt);
    }),
    { numRuns: 500 },
  );
});

test("a snapshot comes back from its columns as it went in", () => {
  fc.assert(
    fc.property(snapshot, (original) => {
      const frontier = throughText<unknown>(encodeFrontier(original)) as StoredSnapshot["frontier"];

      expect(textOf(decodeSnapshot({ ...original, frontier }))).toBe(textOf(original));
    }),
    { numRuns: 300 },
  );
});

/** One text for equal values, whatever the order of their keys, `__proto__` among them. */
function textOf(value: unknown): string {
  if (typeof value !== "object" || value === null || value instanceof Date) {
    return JSON.stringify(value) ?? "undefined";
  }
  if (Array.isArray(value)) return `[${value.map(textOf).join()}]`;
  const members = Object.entries(value).map(([key, member]) => `${key}:${textOf(member)}`);
  return `{${members.toSorted().join()}}`;
}

test("what did not change is not in the changes", () => {
  const base: Snapshot = {
    ...blankSnapshot(identity),
    variables: { a: 1, b: { c: [1] }, gone: null },
    live: { "a#1": live("a"), "b#1": live("b") },
    output: { x: 1 },
  };
  const next: Snapshot = {
    ...base,
    variables: { a: null, b: { c: [1] } },
    live: { "b#1": live("b"), "c#1": live("c") },
    output: null,
  };

  expect(changesBetween(base, { ...base })).toEqual({});
  expect(changesBetween(base, next)).toEqual({
    variables: { set: { a: null }, removed: ["gone"] },
    live: { set: { "c#1": { phase: "ACTIVE" } }, removed: ["a#1"] },
    output: null,
  });
});

test("a signal comes back with its output from the step's row", () => {
  const signals: Signal[] = [
    { kind: "stepSucceeded", path: "a", iteration: 2, attempt: 1, output: { big: "x" } },
    { kind: "scheduled", startAt: new Date("2026-02-01T00:00:00Z") },
    { kind: "cancelRequested", reason: null, actor: "me", shouldCompensate: true },
  ];

  const stored = throughText(signals.map(storedSignal));

  expect(stored[0]).toEqual({ kind: "stepSucceeded", path: "a", iteration: 2, attempt: 1 });
  const restored = stored.map((each) =>
    restoredSignal(each, (key) => (key === "a#2" ? { big: "x" } : null)),
  );
  expect(restored).toEqual(signals);
});

test("a frontier of a later release is refused", () => {
  const later = { ...blankSnapshot(identity), frontier: { format: 5 } };
  expect(() => decodeSnapshot(later)).toThrow("format 5");
});

function live(path: string): LiveExecution {
  return { stepId: path, path, iteration: 1, phase: "ACTIVE", attempt: 1, timers: [] };
}

test("what a later release has added is read past, and kept", () => {
  const columns = {
    ...identity,
    priority: 0,
    version: 3,
    status: "RUNNING",
    startedAt: identity.createdAt,
    completedAt: null,
    variables: {},
    output: null,
    error: null,
    cancellation: null,
    compensation: null,
    frontier: {
      format: 1,
      live: { "a#1": { phase: "ACTIVE", attempt: 2, laterOfStep: { x: 1 } } },
      completions: 2,
      laterOfInstance: [1, null],
    },
  } as const satisfies StoredSnapshot;

  const decoded = decodeSnapshot(columns);
  const execution = decoded.live["a#1"] as LiveExecution;
  const next = { ...decoded, live: { "a#1": { ...execution, attempt: 3 } }, completions: 3 };

  expect(decoded).toMatchObject({ completions: 2, live: { "a#1": { attempt: 2, stepId: "a" } } });
  expect(encodeFrontier(next)).toMatchObject({
    completions: 3,
    live: { "a#1": { attempt: 3, laterOfStep: { x: 1 } } },
    laterOfInstance: [1, null],
  });
});
