import fc from "fast-check";
import { expect, test } from "vitest";
import { chooseAdmissions, compareWaiting, foremost } from "../src/admission.ts";
import type { QueueOrder, Room, Waiting, WaitingQueue } from "../src/admission.ts";

const kinds = ["global", "tenant", "type:a", "type:b", "user:x", "user:y"];
const sets = [
  ["type:a"],
  ["tenant", "type:a"],
  ["tenant", "type:a", "user:x"],
  ["tenant", "type:b", "user:x"],
  ["global", "tenant", "user:y"],
  ["global", "type:b"],
];

const order: fc.Arbitrary<QueueOrder> = fc.constantFrom("FIFO", "PRIORITY", "DEADLINE");
const waiting = fc.record({
  instanceId: fc.uuid(),
  hasRun: fc.boolean(),
  promotedAt: fc.constantFrom(Number.NEGATIVE_INFINITY, 1, 2),
  priority: fc.nat(2),
  deadline: fc.constantFrom(1, 2, Number.POSITIVE_INFINITY),
  wantedAt: fc.nat(9),
});
const world = fc
  .tuple(
    fc.tuple(...kinds.map((name) => fc.tuple(fc.constant(name), fc.nat(4), order))),
    fc.tuple(...sets.map(() => fc.array(waiting, { maxLength: 5 }))),
  )
  .map(([limits, all]) => {
    const rooms = new Map(limits.map(([name, free, each]) => [name, { free, order: each }]));
    const queues = sets.map((names, index) => ({
      limits: names,
      waiting: (all[index] ?? []).toSorted((one, other) =>
        compareWaiting(rooms.get(names.at(-1) ?? "")?.order ?? "FIFO", one, other),
      ),
    }));
    return { rooms, queues };
  });

test("no limit is exceeded, nobody who has room under each is left out, and within a queue nobody is passed over", () => {
  fc.assert(
    fc.property(world, ({ rooms, queues }) => {
      const chosen = new Set(chooseAdmissions(queues, rooms, 100));

      const left = leftOf(queues, rooms, chosen);
      expect([...left.values()].filter((free) => free < 0)).toEqual([]);
      for (const { limits, waiting: all } of queues) {
        const some = all.filter((each) => chosen.has(each));
        expect(some).toEqual(all.slice(0, some.length));
        const isFull = limits.some((name) => left.get(name) === 0);
        expect(some.length === all.length || isFull).toBe(true);
      }
    }),
  );
});

test("of more queues than are read none is left out whose head comes first, and each widest limit has its turn", () => {
  const rooms = new Map<string, Room>([
    ["tenant", { free: 9, order: "PRIORITY" }],
    ["type:a", { free: 9, order: "FIFO" }],
  ]);
  const queueOf = (id: string, widest: string, more: Partial<Waiting>) => ({
    limits: [widest, `user:${id}`],
    waiting: [entry(id, more)],
  });
  const many = Array.from({ length: 9 }, (_, ix) => queueOf(`${ix}`, "tenant", { wantedAt: ix }));
  const queues = [
    { limits: ["tenant"], waiting: [] },
    ...many,
    queueOf("late", "tenant", { wantedAt: 99, promotedAt: 1 }),
    queueOf("other", "type:a", { wantedAt: 98 }),
    queueOf("another", "type:a", { wantedAt: 100, priority: 1 }),
  ];

  const read = foremost(queues, rooms, 3);

  expect(read.map(({ waiting: [head] }) => head?.instanceId)).toEqual(["other", "late", "0"]);
});

test("no more are admitted than are asked for, and the widest limit that they share says who", () => {
  const one = entry("one", { priority: 1, wantedAt: 2 });
  const other = entry("other", { wantedAt: 1 });
  const queues = [
    { limits: ["tenant", "type:a"], waiting: [one] },
    { limits: ["tenant", "user:x"], waiting: [other] },
  ];
  const choose = (tenant: QueueOrder, free: number, most: number) => {
    const rooms = new Map<string, Room>([
      ["tenant", { free, order: tenant }],
      ["type:a", { free: 9, order: "FIFO" }],
      ["user:x", { free: 9, order: "FIFO" }],
    ]);
    return chooseAdmissions(queues, rooms, most).map(({ instanceId }) => instanceId);
  };

  expect(choose("PRIORITY", 1, 100)).toEqual(["one"]);
  expect(choose("FIFO", 1, 100)).toEqual(["other"]);
  expect(choose("FIFO", 9, 1)).toEqual(["other"]);
  expect(choose("FIFO", 9, 100)).toEqual(["other", "one"]);
});

test("who is held up by one limit holds up nobody under another", () => {
  const queues = [
    { limits: ["tenant", "user:x"], waiting: [entry("first", { priority: 9 })] },
    { limits: ["tenant", "user:y"], waiting: [entry("second", {})] },
  ];
  const rooms = new Map<string, Room>([
    ["tenant", { free: 1, order: "PRIORITY" }],
    ["user:x", { free: 0, order: "PRIORITY" }],
    ["user:y", { free: 1, order: "PRIORITY" }],
  ]);

  const chosen = chooseAdmissions(queues, rooms, 100);

  expect(chosen.map(({ instanceId }) => instanceId)).toEqual(["second"]);
});

test("those that have run come first, then who was promoted last, then the order says", () => {
  const all = [
    entry("ran", { hasRun: true, priority: -5 }),
    entry("promoted later", { promotedAt: 2, priority: -4 }),
    entry("promoted", { promotedAt: 1, priority: -3 }),
    entry("urgent", { deadline: 5, priority: 1, wantedAt: 3 }),
    entry("high", { priority: 2, wantedAt: 2 }),
    entry("old", { wantedAt: 1 }),
  ];
  const inOrder = (each: QueueOrder) =>
    all.toSorted((one, other) => compareWaiting(each, one, other)).map((it) => it.instanceId);
  const first = ["ran", "promoted later", "promoted"];

  expect(inOrder("FIFO")).toEqual([...first, "old", "high", "urgent"]);
  expect(inOrder("PRIORITY")).toEqual([...first, "high", "urgent", "old"]);
  expect(inOrder("DEADLINE")).toEqual([...first, "urgent", "high", "old"]);
});

function entry(instanceId: string, more: Partial<Waiting>): Waiting {
  return {
    instanceId,
    hasRun: false,
    promotedAt: Number.NEGATIVE_INFINITY,
    priority: 0,
    deadline: Number.POSITIVE_INFINITY,
    wantedAt: 0,
    ...more,
  };
}

function leftOf(
  queues: readonly WaitingQueue<Waiting>[],
  rooms: ReadonlyMap<string, Room>,
  chosen: ReadonlySet<Waiting>,
): ReadonlyMap<string, number> {
  const left = new Map([...rooms].map(([name, { free }]) => [name, free]));
  for (const { limits, waiting: all } of queues) {
    for (const each of all) {
      if (!chosen.has(each)) continue;
      for (const name of limits) left.set(name, (left.get(name) ?? 0) - 1);
    }
  }
  return left;
}
