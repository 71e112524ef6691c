import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  candidatePatterns,
  eventNameProblem,
  parsePattern,
  patternFrom,
  patternMatches,
} from "../../src/definition/pattern.ts";
import { BadValueError } from "../../src/errors.ts";

describe("a pattern", () => {
  test.each([
    ["", "empty"],
    [".", "empty segment"],
    ["order..paid", "empty segment"],
    [".paid", "empty segment"],
    ["order.", "empty segment"],
    ["order.**.paid", "before its end"],
    ["**.paid", "before its end"],
    ["**.**", "before its end"],
    ["order.pa*", "inside the segment"],
    ["order.***", "inside the segment"],
    ["order. paid", "space"],
    ["order.\tpaid", "space"],
    ["order.\u0000", "control"],
    ["order.\ud800", "surrogate"],
    ["a.b.c.d.e.f.g.h.i.j.k.l.m", "more than 12 segments (13)"],
    ["*.*.*.*.*", 'more than 4 single "*"'],
    ["x".repeat(256), "255 characters"],
  ])("%j is refused: %s", (text, why) => {
    expect(parsePattern(text)).toEqual({ problem: expect.stringContaining(why) });
  });

  test.each(["order.paid", "order.*", "*", "**", "order.**", "*.*.*.*.**", "workflow.completed"])(
    "%s is accepted",
    (text) => {
      expect(parsePattern(text)).not.toHaveProperty("problem");
    },
  );

  test.each([
    ["order.paid", "order.paid", true],
    ["order.paid", "order.Paid", false],
    ["order.paid", "order.paid.late", false],
    ["order.*", "order.paid", true],
    ["order.*", "order", false],
    ["order.*", "order.line.added", false],
    ["*.paid", "order.paid", true],
    ["order.**", "order", true],
    ["order.**", "order.paid", true],
    ["order.**", "order.line.added", true],
    ["order.**", "orders.paid", false],
    ["order.*.**", "order", false],
    ["**", "order.paid", true],
    ["**", "workflow.completed", false],
    ["*.completed", "workflow.completed", false],
    ["workflow.completed", "workflow.completed", true],
    ["workflow.*", "workflow.completed", true],
    ["workflow.**", "workflow.step.completed", true],
    ["*", "workflow", true],
  ])("%s heard as %s: %s", (pattern, name, heard) => {
    expect(patternMatches(pattern, name)).toBe(heard);
  });
});

describe("the name of an event", () => {
  test.each([
    ["order.*", "wildcard"],
    ["**", "wildcard"],
    ["workflow.completed", "reserved"],
    ["workflow", "reserved"],
    ["order..paid", "empty segment"],
    ["", "empty"],
  ])("%j is refused: %s", (name, why) => {
    expect(eventNameProblem(name)).toContain(why);
  });

  test.each(["order.paid", "x.workflow", "workflows.done", "order.ü:1/2@x"])(
    "%s is accepted",
    (name) => {
      expect(eventNameProblem(name)).toBeUndefined();
    },
  );
});

describe("a pattern whose value is known only at run time", () => {
  test("is what its value says", () => {
    expect(patternFrom("order.*.paid")).toBe("order.*.paid");
  });

  test.each([[""], ["a..b"], [undefined], [7], [null], [{ a: 1 }]])(
    "fails with a BadValueError for %j",
    (value) => {
      expect(() => patternFrom(value)).toThrow(BadValueError);
    },
  );
});

describe("the candidates for a name", () => {
  test("are listed in full", () => {
    expect(candidatePatterns("order.paid")).toEqual([
      "order.paid",
      "order.*",
      "*.paid",
      "*.*",
      "**",
      "order.**",
      "*.**",
      "order.paid.**",
      "order.*.**",
      "*.paid.**",
      "*.*.**",
    ]);
  });

  test("of a lifecycle event all begin with its first segment", () => {
    expect(candidatePatterns("workflow.failed")).toEqual([
      "workflow.failed",
      "workflow.*",
      "workflow.**",
      "workflow.failed.**",
      "workflow.*.**",
    ]);
  });

  test("are bounded for the longest name, and none is there twice", () => {
    const candidates = candidatePatterns("a.b.c.d.e.f.g.h.i.j.k.l");

    expect(candidates).toHaveLength(2_379);
    expect(new Set(candidates).size).toBe(candidates.length);
  });

  test("of a name that no pattern can spell out are those with an open end", () => {
    const long = Array.from({ length: 400 }, (_, index) => `s${index}`).join(".");

    const candidates = candidatePatterns(long);

    expect(candidates.length).toBeLessThan(2_379);
    expect(candidates).toContain("s0.*.s2.**");
    expect(candidates.every((pattern) => pattern.endsWith("**"))).toBe(true);
  });

  const literal = fc.constantFrom("a", "b", "workflow");
  const name = fc.array(literal, { minLength: 1, maxLength: 12 }).map((parts) => parts.join("."));
  const shortName = fc
    .array(literal, { minLength: 1, maxLength: 4 })
    .map((parts) => parts.join("."));
  const anyPattern = (maxLength: number) =>
    fc
      .tuple(
        fc.array(fc.oneof(literal, fc.constant("*")), { maxLength }),
        fc.constantFrom([], ["**"]),
      )
      .map(([segments, tail]) => [...segments, ...tail].join("."))
      .filter((text) => !("problem" in parsePattern(text)));

  test("contain a pattern if and only if it matches", () => {
    fc.assert(
      fc.property(shortName, anyPattern(5), (event, pattern) => {
        expect(candidatePatterns(event).includes(pattern)).toBe(patternMatches(pattern, event));
      }),
      { numRuns: 3_000 },
    );
  });

  test("contain every pattern made of the name by putting wildcards in", () => {
    const derived = name.chain((event) => {
      const segments = event.split(".");
      return fc.record({
        event: fc.constant(event),
        cut: fc.integer({ min: 0, max: segments.length }),
        stars: fc.array(fc.boolean(), { minLength: segments.length, maxLength: segments.length }),
        open: fc.boolean(),
      });
    });
    fc.assert(
      fc.property(derived, ({ event, cut, stars, open }) => {
        const segments = event.split(".").map((text, index) => (stars[index] ? "*" : text));
        const pattern = (open ? [...segments.slice(0, cut), "**"] : segments).join(".");
        fc.pre(!("problem" in parsePattern(pattern)));

        expect(candidatePatterns(event).includes(pattern)).toBe(patternMatches(pattern, event));
      }),
      { numRuns: 300 },
    );
  });

  test("are all well formed and all match", () => {
    fc.assert(
      fc.property(name, (event) => {
        for (const pattern of candidatePatterns(event)) {
          expect(parsePattern(pattern)).not.toHaveProperty("problem");
          if (!patternMatches(pattern, event))
            throw new Error(`${pattern} does not match ${event}`);
        }
      }),
      { numRuns: 20 },
    );
  });
});
