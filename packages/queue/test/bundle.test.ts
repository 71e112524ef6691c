import fc from "fast-check";
import { expect, test } from "vitest";
import { type Addition, bundled, membersOf, returned } from "../src/bundle.ts";

const addition = (index: number, change: Partial<Addition> = {}): Addition => ({
  id: `i${index}.ship#0.1.0`,
  data: { instanceId: `i${index}` },
  priority: 1_001,
  delayMs: 0,
  ...change,
});
const additions = (count: number, change?: Partial<Addition>) =>
  Array.from({ length: count }, (_, index) => addition(index, change));

test("each addition travels in one job, whatever else is added with it", () => {
  const arbitrary = fc.array(
    fc.record({ priority: fc.integer({ min: 1, max: 3 }), delayMs: fc.constantFrom(0, 0, 5) }),
    { maxLength: 200 },
  );
  fc.assert(
    fc.property(arbitrary, fc.integer({ min: 1, max: 30 }), (changes, most) => {
      const given = changes.map((change, index) => addition(index, change));

      const jobs = bundled(given, most);

      const carried = jobs.flatMap(({ data }) => membersOf(data));
      expect(carried).toHaveLength(given.length);
      expect(new Set(carried)).toEqual(new Set(given.map(({ data }) => data)));
      const priorities = new Map(given.map(({ data, priority }) => [data, priority]));
      for (const { data, opts } of jobs) {
        const members = membersOf(data);
        expect(members.length).toBeLessThanOrEqual(most);
        for (const member of members) expect(priorities.get(member as object)).toBe(opts.priority);
      }
    }),
  );
});

test("a burst is shared by several jobs, and a lone addition keeps its own id", () => {
  expect(bundled(additions(40), 25).map(({ data }) => membersOf(data).length)).toEqual([
    10, 10, 10, 10,
  ]);
  expect(bundled(additions(500), 25)).toHaveLength(20);
  expect(bundled(additions(15), 25, 10).map(({ data }) => membersOf(data).length)).toEqual([10, 5]);
  expect(bundled(additions(1), 25)).toMatchObject([
    { data: addition(0).data, opts: { jobId: addition(0).id } },
  ]);
});

test("what is to come later travels alone, so that it can be removed", () => {
  const jobs = bundled(additions(40, { delayMs: 1_000 }), 25);
  expect(jobs.map(({ opts }) => opts.jobId)).toEqual(additions(40).map(({ id }) => id));
  expect(jobs.every(({ opts }) => opts.delay === 1_000)).toBe(true);
});

test("the same members make the same id, others another, and each is carried once", () => {
  const [first] = bundled([...additions(8), ...additions(8)], 25);
  const [again] = bundled(additions(8), 25);
  const [other] = bundled(additions(9), 25);
  expect(first).toEqual(again);
  expect(other?.opts.jobId).not.toBe(first?.opts.jobId);
});

test("what is put back has an id of its own, since the job that brought it is still kept", () => {
  const [job] = bundled(additions(4), 25);
  const members = membersOf(job?.data) as object[];
  const back = returned(members, job?.opts.jobId ?? "", 7);
  expect(back.opts.jobId).not.toBe(job?.opts.jobId);
  expect(back.opts.priority).toBe(7);
  expect(membersOf(back.data)).toEqual(members);
});

test("data that are no bundle are one member, whatever they are", () => {
  for (const data of [undefined, null, 7, "x", { bundle: 7 }, { instanceId: "i" }]) {
    expect(membersOf(data)).toEqual([data]);
  }
});
