import { expect, test } from "vitest";
import { explainCondition } from "../src/explain.ts";
import { parseExpression } from "../src/expression.ts";

const roots = ["workflow", "input", "variables", "steps", "event"];
const condition = (source: string) => parseExpression(source, { roots, undefinedNeverEqual: true });
const scope = {
  now: "2026-01-31T12:00:00.000Z",
  input: { order: "o-1", limit: 10 },
  workflow: { input: { order: "o-1" } },
};

test("without an event the instance's side is filled in, and what the event decides stays open", () => {
  const source =
    "event.payload.order === workflow.input.order && (event.payload.n + 1) > input.limit && input.limit < 5";

  const explained = explainCondition(condition(source), scope);

  expect(explained.filledIn).toBe(
    'event.payload.order === "o-1" && (event.payload.n + 1) > 10 && 10 < 5',
  );
  expect(explained.conjuncts.map(({ holds }) => holds)).toEqual([undefined, undefined, false]);
});

test("with an event each part says whether it holds, and by which values", () => {
  const event = { payload: { order: "o-1", n: 3 } };
  const source = "event.payload.order === input.order && event.payload.n > input.limit";

  const { conjuncts } = explainCondition(condition(source), { ...scope, event });

  expect(conjuncts).toEqual([
    {
      source: "event.payload.order === input.order",
      filledIn: '"o-1" === "o-1"',
      holds: true,
    },
    { source: "event.payload.n > input.limit", filledIn: "3 > 10", holds: false },
  ]);
});

test("what is missing reads undefined and equals nothing; what fails says why", () => {
  const event = { payload: { text: "oops" } };
  const source = "event.payload.order === input.nothing && parseJson(event.payload.text) === 1";

  const { conjuncts } = explainCondition(condition(source), { ...scope, event });

  expect(conjuncts.map(({ filledIn, holds }) => [filledIn, holds])).toEqual([
    ["undefined === undefined", false],
    ['parseJson("oops") === 1', false],
  ]);
  expect(conjuncts[1]?.problem).toMatch(/\w/);
});

test("calls, methods, templates and lists keep their shape around the values", () => {
  const source =
    "[input.order, ...['x']].includes(`o-${ event.payload.n }`) || size(input.order) > 2";

  const { filledIn } = explainCondition(condition(source), scope);

  expect(filledIn).toBe(
    `["o-1", ...['x']].includes(\`o-\${ event.payload.n }\`) || size("o-1") > 2`,
  );
});
