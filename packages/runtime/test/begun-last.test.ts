import { expect, test } from "vitest";
import { begunLast } from "../src/scheduler/begun-last.ts";

const one = "01a22877-0000-7000-8000-000000000001";
const other = "01a22877-0000-7000-8000-000000000002";

const held = (name: string, ms: number, { heldBy = one, lapses = 1 } = {}) => ({
  name,
  heldBy,
  lapses,
  startedAt: new Date(Date.parse("2026-01-31T12:00:00Z") + ms),
});

test.each([
  ["what began last", [held("a", 0), held("b", 900), held("c", 400)], ["b"]],
  [
    "two that began about when the last one did",
    [held("a", 0), held("b", 900), held("c", 990)],
    ["b", "c"],
  ],
  ["none of three that did", [held("a", 950), held("b", 900), held("c", 990)], []],
  [
    "of each worker its own",
    [held("a", 0), held("b", 900), held("c", 5, { heldBy: other })],
    ["b", "c"],
  ],
  ["none under which a worker has died before", [held("a", 0), held("b", 900, { lapses: 2 })], []],
  ["nothing of nothing", [], []],
])("likeliest to have ended its worker is %s", (_which, steps, likely) => {
  expect([...begunLast(steps)].map(({ name }) => name)).toEqual(likely);
});
