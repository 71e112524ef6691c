import { expect, test } from "vitest";
import { validateDefinition } from "../../src/definition/validate.ts";

// Documents as large as a body may be, made to cost the checker much. What is quadratic or worse takes
// many times the limit; all of these take a second at most.

const limitMs = 8_000;

const task = (stepId: string, next?: string, more: object = {}) => ({
  stepId,
  type: "TASK",
  taskId: "noop",
  ...(next !== undefined && { transitions: { default: next } }),
  ...more,
});

function many<T>(count: number, make: (index: number) => T): T[] {
  return Array.from({ length: count }, (_, index) => make(index));
}

/** One step after the other. */
function chain(count: number, more: (index: number) => object): object[] {
  return many(count, (index) =>
    task(`s${index}`, index + 1 < count ? `s${index + 1}` : undefined, more(index)),
  );
}

function choices(count: number, when: (index: number) => string): object[] {
  const next = (index: number): string => (index + 1 < count ? `c${index + 1}` : "end");
  const steps = many(count, (index) => ({
    stepId: `c${index}`,
    type: "CHOICE",
    choices: many(1_000, (each) => ({ when: when(each), to: next(index) })),
    default: next(index),
  }));
  return [...steps, task("end")];
}

/** Two hundred schemas, each of which refers to four others. */
const web = {
  $ref: "#/$defs/d0",
  $defs: Object.fromEntries(
    many(200, (index) => {
      const to = (step: number) => ({ $ref: `#/$defs/d${(index + step) % 200}` });
      return [`d${index}`, { anyOf: [to(1), to(2)], properties: { a: to(3), b: to(7) } }];
    }),
  ),
};

test.each([
  [
    "a step that reads another, 10,000 times",
    chain(10_000, (index) =>
      index === 0 ? {} : { input: { x: `\${ steps.s${(index * 7) % index}.output.a }` } },
    ),
  ],
  [
    "20,000 values that are known, and costly to find out",
    [
      {
        stepId: "set",
        type: "SET",
        variables: Object.fromEntries(
          many(20_000, (index) => [`v${index}`, "${ unique('a'.repeat(99999).split('')) }"]),
        ),
      },
    ],
  ],
  ["a choice among a thousand, 15 times", choices(15, (index) => `input.x === ${index}`)],
  [
    "long choices",
    choices(3, (index) => many(20, (each) => `input.x${each} === ${index}`).join(" || ")),
  ],
  [
    "a PARALLEL of ENDs, 3,000 times",
    many(3_000, (index) => ({
      stepId: `p${index}`,
      type: "PARALLEL",
      branches: [
        { name: "a", steps: [{ stepId: `a${index}`, type: "END", outcome: "COMPLETED" }] },
      ],
      transitions: { default: `p${(index + 1) % 3_000}` },
    })),
  ],
  [
    "a schema whose parts refer to one another",
    [task("s", undefined, { input: `input${".a.b".repeat(24)}` })],
    web,
  ],
])("%s is checked in little time", (_what, steps, inputSchema: unknown = true) => {
  const started = process.cpuUsage();

  const { problems = [], warnings } = validateDefinition({ id: "hostile", inputSchema, steps });

  expect(problems.length + warnings.length).toBeLessThanOrEqual(2_000);
  const { user, system } = process.cpuUsage(started);
  expect((user + system) / 1_000).toBeLessThan(limitMs);
});
