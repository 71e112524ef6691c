import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { cyclicComponents, reachable } from "../../src/definition/graph.ts";

const graphs = fc.integer({ min: 1, max: 12 }).chain((size) =>
  fc.array(fc.uniqueArray(fc.nat(size - 1), { maxLength: 3 }), {
    minLength: size,
    maxLength: size,
  }),
);

/** `closure[a][b]`: a way of one edge or more leads from a to b (Warshall). */
function closureOf(graph: readonly (readonly number[])[]): boolean[][] {
  const closure = graph.map((targets) => graph.map((_, index) => targets.includes(index)));
  for (const [middle, from] of closure.entries()) {
    for (const row of closure) {
      if (!row[middle]) continue;
      for (const [index, leads] of from.entries()) if (leads) row[index] = true;
    }
  }
  return closure;
}

describe("a graph", () => {
  test("reaches what its closure says", () => {
    fc.assert(
      fc.property(graphs, (graph) => {
        const closure = closureOf(graph);

        const expected = graph.map((_, index) => index === 0 || closure[0]?.[index] === true);
        expect(reachable(graph, 0)).toEqual(expected);
      }),
    );
  });

  test("has as cyclic components the sets of nodes that lead to each other", () => {
    fc.assert(
      fc.property(graphs, (graph) => {
        const closure = closureOf(graph);
        const expected = new Map<string, number[]>();
        for (const node of graph.keys()) {
          if (!closure[node]?.[node]) continue;
          const members = [...graph.keys()].filter(
            (other) => closure[node]?.[other] && closure[other]?.[node],
          );
          expected.set(members.join(), members);
        }

        expect(cyclicComponents(graph)).toEqual([...expected.values()]);
      }),
    );
  });

  test("of a hundred thousand nodes in a row, or in a ring, is no deeper than any other", () => {
    const size = 100_000;
    const row = Array.from({ length: size }, (_, index) => (index + 1 < size ? [index + 1] : []));
    const ring = row.with(size - 1, [0]);

    expect(reachable(row, 0).every(Boolean)).toBe(true);
    expect(cyclicComponents(row)).toEqual([]);
    expect(cyclicComponents(ring)).toHaveLength(1);
  });
});
