import type { SimulationResult } from "@millrace/engine";
import { expect, test } from "vitest";
import { openSimulationThreads } from "../src/definitions/simulation-threads.ts";
import type { SimulationPlan } from "../src/definitions/simulation-threads.ts";
import { openSimulations } from "../src/definitions/simulations.ts";

const plan: SimulationPlan = {
  document: { id: "w", steps: [{ stepId: "a", type: "TASK", taskId: "a" }] } as never,
  version: 1,
  scenario: {},
  calendars: [],
};

/** Those that were begun, each to be ended by hand. */
function opened() {
  const ends: (() => void)[] = [];
  const simulations = openSimulations({
    run: () =>
      new Promise<SimulationResult | undefined>((resolve) => {
        ends.push(() => resolve(undefined));
      }),
    close: async () => {},
  });
  return { ends, simulations };
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

test("two run at once and eight wait, each for its turn; another one is refused", async () => {
  const { ends, simulations } = opened();
  const ten = Array.from({ length: 10 }, () => simulations.run(plan));
  await turn();

  await expect(simulations.run(plan)).rejects.toMatchObject({
    code: "BUSY",
    retryAfterSeconds: 5,
    message: expect.stringContaining("10 simulations"),
  });
  expect(ends).toHaveLength(2);
  for (let ended = 0; ended < 10; ended++) {
    ends[ended]?.();
    await turn();
    expect(ends).toHaveLength(Math.min(10, ended + 3));
  }
  await Promise.all(ten);
  void simulations.run(plan);
  await turn();
  expect(ends).toHaveLength(11);
});

test("at the close those that wait are refused, as are all that come later", async () => {
  const { ends, simulations } = opened();
  const three = Promise.allSettled([1, 2, 3].map(() => simulations.run(plan)));
  await turn();

  await simulations.close();
  for (const end of ends) end();

  expect((await three).map(({ status }) => status)).toEqual(["fulfilled", "fulfilled", "rejected"]);
  await expect(simulations.run(plan)).rejects.toMatchObject({ code: "BUSY" });
  expect(ends).toHaveLength(2);
});

test("a thread simulates one after the other, and ends where one has failed", async () => {
  const simulations = openSimulations();
  const outcome = async () => (await simulations.run(plan))?.outcome;

  expect([await outcome(), await outcome()]).toEqual(["SETTLED", "SETTLED"]);
  await expect(simulations.run({ ...plan, document: {} as never })).rejects.toThrow(TypeError);
  expect(await outcome()).toBe("SETTLED");
  await simulations.close();
});

test("a thread that stands still while it loads is given up, in words", async () => {
  const program = new URL("data:text/javascript,for (;;);");
  const threads = openSimulationThreads({ program, loadMs: 50 });

  await expect(threads.run(plan)).rejects.toMatchObject({
    code: "BUSY",
    message: expect.stringContaining("its thread did not load"),
  });
});

test("a result that is much larger than its scenario is none", async () => {
  const simulations = openSimulations();
  const step = { stepId: "a", type: "TASK", taskId: "a" };
  const steps = [{ stepId: "m", type: "MAP", items: "range(0, 200)", steps: [step] }];
  const answering = (output: string) =>
    simulations.run({
      ...plan,
      document: { id: "w", steps } as never,
      scenario: { tasks: { a: { output } } },
    });

  expect(await answering("y".repeat(100_000))).toBeUndefined();
  expect((await answering("y"))?.outcome).toBe("SETTLED");
  await simulations.close();
});
