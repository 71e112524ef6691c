import fc from "fast-check";
import { expect, test } from "vitest";
import { equalityConjuncts, parseExpression, readPath } from "../src/index.ts";
import type { Expression } from "../src/index.ts";
import { allRoots, scope } from "./scope.ts";

test.each([
  [
    "event.payload.orderId === workflow.input.orderId",
    [["payload.orderId", "workflow.input.orderId"]],
  ],
  [
    "workflow.input.orderId === event.payload.orderId",
    [["payload.orderId", "workflow.input.orderId"]],
  ],
  ["event.payload['orderId'] === input['orderId']", [["payload.orderId", "input['orderId']"]]],
  ["event?.payload?.a === input.a", [["payload.a", "input.a"]]],
  ["(event.payload.a) === (input.a)", [["payload.a", "input.a"]]],
  ["event.id === 'e-1'", [["id", "'e-1'"]]],
  [
    "event.payload.lines[0].sku === lower(input.sku)",
    [["payload.lines.0.sku", "lower(input.sku)"]],
  ],
  ["event.payload.a === input.a && event.payload.b > 3", [["payload.a", "input.a"]]],
  [
    "event.payload.a === input.a && (event.payload.b === variables.b && steps.s.output === event.payload.c)",
    [
      ["payload.a", "input.a"],
      ["payload.b", "variables.b"],
      ["payload.c", "steps.s.output"],
    ],
  ],
  ["event.payload.kind == 'paid'", [["payload.kind", "'paid'"]]],
  ["null == event.payload.parent", [["payload.parent", "null"]]],
])("%s has the equalities an index needs", (source, equalities) => {
  const found = equalityConjuncts(condition(source));

  expect(found.map(({ eventPath, value }) => [eventPath.join("."), value.source])).toEqual(
    equalities,
  );
});

test.each([
  ["two event paths", "event.payload.a === event.payload.b"],
  ["a side that mixes in the event", "event.payload.a === input.a + event.payload.b"],
  ["a side that depends on the clock", "event.payload.at === now()"],
  ["the event itself", "event === input.a"],
  ["a computed path", "event.payload[input.key] === input.a"],
  ["a value made of the event", "lower(event.payload.a) === input.a"],
  ["an alternative", "event.payload.a === input.a || event.payload.b === input.b"],
  ["a negation", "!(event.payload.a === input.a)"],
  ["an inequality", "event.payload.a !== input.a"],
  ["a choice", "input.x ? event.payload.a === input.a : true"],
  ["== that may convert", "event.payload.a == input.a"],
  ["== with a number", "event.payload.a == 42"],
  ["== with a text that is a number", "event.payload.a == '42'"],
  ["== with a blank text", "event.payload.a == ''"],
])("%s gives no equality", (_name, source) => {
  expect(equalityConjuncts(condition(source))).toEqual([]);
});

test("== null is no equality where a missing value equals null", () => {
  const loose = parseExpression("event.payload.a == null", { roots: allRoots });

  expect(equalityConjuncts(loose)).toEqual([]);
});

test("the other side is an expression of its own, with its own reads", () => {
  const [conjunct] = equalityConjuncts(
    condition("event.payload.a === steps.s.output.id && input.x > 1"),
  );

  expect(conjunct?.value.reads).toMatchObject({ steps: ["s"], input: false, event: false });
  expect(conjunct?.value.evaluate({ ...scope, steps: { s: { output: { id: 9 } } } })).toBe(9);
});

test("where a condition holds, the event has all the values of its equalities", () => {
  const value = fc.constantFrom<unknown>(1, "1", null, undefined, "a");
  const side = fc.constantFrom(
    "event.payload.a",
    "event.payload.b",
    "input.a",
    "input.b",
    "'a'",
    "null",
    "1",
    "now()",
  );
  const operator = fc.constantFrom("===", "===", "==", "!==");
  const equality = fc.tuple(side, operator, side).map((parts) => parts.join(" "));
  const source = fc.array(equality, { minLength: 1, maxLength: 3 }).map((all) => all.join(" && "));
  let held = 0;

  fc.assert(
    fc.property(source, fc.tuple(value, value, value, value), (text, [a, b, c, d]) => {
      const values = { now: scope.now, event: { payload: { a, b } }, input: { a: c, b: d } };
      const whole = condition(text);
      if (!whole.evaluate(values)) return;
      for (const conjunct of equalityConjuncts(whole)) {
        held += 1;
        expect(readPath(values.event, conjunct.eventPath)).toBe(conjunct.value.evaluate(values));
        expect(conjunct.value.evaluate(values)).not.toBeUndefined();
      }
    }),
    { seed: 20_260_101, numRuns: 10_000 },
  );

  expect(held).toBeGreaterThan(200);
});

test("an expression of another making is refused", () => {
  const forged = { ...condition("event.id === input.a") };

  expect(() => equalityConjuncts(forged)).toThrow(TypeError);
});

function condition(source: string): Expression {
  return parseExpression(source, { roots: allRoots, undefinedNeverEqual: true });
}
