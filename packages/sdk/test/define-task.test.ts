import { describe, expect, expectTypeOf, test } from "vitest";
import * as z from "zod";
import { defineTask, isTask, type Task, type TaskContext, taskFault } from "@millrace/sdk";

const run = () => 1;

describe("defineTask", () => {
  test("types input and output by their schemas", async () => {
    const reserve = defineTask({
      id: "inventory_reservation_task",
      input: z.object({ orderId: z.string() }),
      output: z.object({ reservationId: z.string() }),
      retry: { maxAttempts: 5 },
      timeout: "PT30S",
      async run(context, input) {
        expectTypeOf(context).toEqualTypeOf<TaskContext>();
        expectTypeOf(input).toEqualTypeOf<{ orderId: string }>();
        await Promise.resolve();
        return { reservationId: `r-${input.orderId}` };
      },
    });

    expectTypeOf(reserve).toEqualTypeOf<Task<{ orderId: string }, { reservationId: string }>>();
    expect(await reserve.run({} as TaskContext, { orderId: "1" })).toEqual({
      reservationId: "r-1",
    });
  });

  test("refuses an output of another type when it is compiled", () => {
    const task = defineTask({
      id: "t",
      output: z.object({ n: z.number() }),
      // @ts-expect-error n is a number
      run: () => ({ n: "1" }),
    });

    expect(isTask(task)).toBe(true);
  });

  test("does without schemas", () => {
    const task = defineTask({ id: "t", run: (_, input: { a: number }) => input.a });

    expectTypeOf(task).toEqualTypeOf<Task<{ a: number }, number>>();
    const any: Task = task;
    expect(any.id).toBe("t");
  });

  test.each([
    [{ id: "", run }, 'a task has a non-empty string "id"'],
    [{ id: "t" }, 'task t: "run" must be a function'],
    [{ id: "t", run, input: {} }, 'task t: "input" must be a schema with a safeParse method'],
    [{ id: "t", run, output: 1 }, 'task t: "output" must be a schema with a safeParse method'],
    [{ id: "t", run, isolated: "yes" }, 'task t: "isolated" must be true or false'],
    [{ id: "t", run, retry: 5 }, 'task t: "retry": expected an object, got the number 5'],
    [
      { id: "t", run, retry: { maxAttempts: "many", maxAttempt: 1 } },
      'task t: "retry/maxAttempts": expected a number, got a string; "retry/maxAttempt": a retry policy has no field "maxAttempt"; did you mean "maxAttempts"?',
    ],
    [
      { id: "t", run, retry: { maxAttempts: 3n } },
      'task t: "retry/maxAttempts": expected a number, got a bigint',
    ],
    [null, "a task is an object { id, run }"],
    ["t", "a task is an object { id, run }"],
  ])("says why a value is no task: %#", (value, fault) => {
    expect(taskFault(value)).toBe(fault);
    expect(isTask(value)).toBe(false);
    expect(() => defineTask(value as Task)).toThrow(new TypeError(fault));
  });

  test("a plain object that imports nothing is a task", () => {
    expect(isTask({ id: "t", run: () => 1, queue: "q" })).toBe(true);
  });
});
