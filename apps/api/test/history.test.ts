import type { HistoryEntry } from "@millrace/contract";
import type { HistoryRow } from "@millrace/store";
import fc from "fast-check";
import { expect, test } from "vitest";
import { pageOfRows, placeOf } from "../src/history.ts";

/** Commits with so many entries each, their versions counted from 1. */
function commits(...sizes: readonly number[]): readonly HistoryRow[] {
  return sizes.map((size, index) => ({
    version: index + 1,
    at: new Date(index),
    engineRev: 1,
    actor: "ann",
    signals: [],
    changes: {} as HistoryRow["changes"],
    entries: Array.from({ length: size }, (_, n) => ({ type: `v${index + 1}.${n}` })),
    seq: index,
  }));
}

test("entries are numbered from 1 and say whose they are and when", () => {
  const { items, nextCursor } = pageOfRows(commits(2), 10);

  expect(nextCursor).toBeNull();
  expect(items[1]).toEqual({
    seq: 2,
    version: 1,
    at: "1970-01-01T00:00:00.000Z",
    type: "v1.1",
    stepId: null,
    actor: "ann",
    data: null,
  });
});

test("pages of any size tell every entry once, in order, also within a commit", () => {
  fc.assert(
    fc.property(
      fc.array(fc.nat(4), { maxLength: 12 }),
      fc.integer({ min: 1, max: 5 }),
      (sizes, limit) => {
        const all = commits(...sizes);

        const found: HistoryEntry[] = [];
        let cursor: string | null | undefined;
        do {
          const place = cursor === undefined ? undefined : placeOf(cursor ?? "");
          const rest = all.filter(({ version }) => version > (place?.version ?? 0));
          const page = pageOfRows(rest.slice(0, limit + 1), limit, place);
          expect(page.items.length).toBeLessThanOrEqual(limit);
          found.push(...page.items);
          cursor = page.nextCursor;
        } while (cursor !== null);

        expect(found.map(({ type }) => type)).toEqual(
          all.flatMap(({ entries }) => entries.map(({ type }) => type)),
        );
        expect(found.map(({ seq }) => seq)).toEqual(found.map((_, index) => index + 1));
      },
    ),
  );
});

test("a cursor of another list is refused", () => {
  expect(() => placeOf("bm90IG91cnM")).toThrow(expect.objectContaining({ code: "BAD_CURSOR" }));
});
