import fc from "fast-check";
import { expect, test } from "vitest";
import {
  advanceJobId,
  advanceQueue,
  jobPriority,
  queueName,
  type StepJob,
  stepJobId,
  stepJobSchema,
} from "../src/job.ts";

const job: StepJob = {
  tenantId: "default",
  instanceId: "0198c0de-0000-7000-8000-000000000001",
  path: "ship",
  iteration: 2,
  attempt: 3,
  fence: 4,
  taskId: "ship_order",
};

test("a step job's id names the execution, the attempt and the fence", () => {
  expect(stepJobId(job)).toBe("0198c0de-0000-7000-8000-000000000001.ship#2.3.4");
  expect(stepJobId({ ...job, fence: 5 })).not.toBe(stepJobId(job));
});

test("an advance job's id names the instance and the cause", () => {
  expect(advanceJobId({ ...job, cause: "wait.7" })).toBe(`${job.instanceId}.wait.7`);
});

test("no id or queue name has a colon, is an integer or meets another", () => {
  const text = fc.string({
    minLength: 1,
    unit: fc.constantFrom("a", ":", "%", "3", "A", "2", "5"),
  });
  fc.assert(
    fc.property(text, text, (one, other) => {
      for (const name of [stepJobId({ ...job, path: one }), queueName(one)]) {
        expect(name).not.toContain(":");
        expect(name).not.toMatch(/^\d+$/);
      }
      expect(queueName(one) === queueName(other)).toBe(one === other);
      expect(stepJobId({ ...job, path: one }) === stepJobId({ ...job, path: other })).toBe(
        one === other,
      );
    }),
  );
});

test("the queue of advance jobs is none that a task queue can have", () => {
  expect(queueName(advanceQueue)).toBe("advance");
  expect(queueName("advance")).toBe("steps.advance");
});

test("a higher priority is a lower one in BullMQ, and never none", () => {
  expect([1_000, 1, 0, -1, -1_000].map(jobPriority)).toEqual([1, 1_000, 1_001, 1_002, 2_001]);
  expect(jobPriority(5_000)).toBe(1);
  expect(jobPriority(-5_000)).toBe(2_001);
});

test("a job's data is ids and counts", () => {
  expect(stepJobSchema.parse(job)).toEqual(job);
  expect(stepJobSchema.safeParse({ ...job, fence: -1 }).success).toBe(false);
  expect(stepJobSchema.safeParse({ ...job, path: "" }).success).toBe(false);
  for (const foreign of [{ instanceId: "x" }, { path: "a\0b" }, { attempt: 2 ** 31 }]) {
    expect(stepJobSchema.safeParse({ ...job, ...foreign }).success).toBe(false);
  }
  expect(stepJobSchema.parse({ ...job, output: { secret: true } })).not.toHaveProperty("output");
});
