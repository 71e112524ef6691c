import { expect, test } from "vitest";
import { newEventId } from "../src/ids.ts";

test("ids of events are UUIDv7s that sort in the order in which they were made", () => {
  const from = Date.now();
  const ids = Array.from({ length: 20_000 }, newEventId);
  const until = Date.now();

  const form = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
  expect(ids.filter((id) => !form.test(id))).toEqual([]);
  expect(ids.toSorted()).toEqual(ids);
  expect(new Set(ids).size).toBe(ids.length);
  const times = ids.map((id) => Number.parseInt(id.replaceAll("-", "").slice(0, 12), 16));
  expect(times.every((time) => time >= from && time <= until)).toBe(true);
});
