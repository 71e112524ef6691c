import { setImmediate as endOfTurn } from "node:timers/promises";
import { expect, test } from "vitest";
import { shareCalls } from "../src/share-calls.ts";

test("who asks while a call runs gets the answer of one that began afterwards, shared by all", async () => {
  const share = shareCalls<number>();
  let begun = 0;
  const ends: (() => void)[] = [];
  const act = () => {
    const number = ++begun;
    return new Promise<number>((resolve) => ends.push(() => resolve(number)));
  };

  const first = share("a", act);
  await endOfTurn();
  const later = [share("a", act), share("a", act)];
  const other = share("b", act);
  await endOfTurn();
  expect(begun).toBe(2);
  ends[0]?.();
  await first;
  await endOfTurn();
  ends[1]?.();
  ends[2]?.();

  expect(await Promise.all([first, ...later, other])).toEqual([1, 3, 3, 2]);
});

test("those who ask in one turn share one call, which begins after all of them have asked", async () => {
  const share = shareCalls<number>();
  let begun = 0;
  const act = () => Promise.resolve(++begun);

  const answers = [share("a", act), share("a", act), share("a", act)];
  expect(begun).toBe(0);

  expect(await Promise.all(answers)).toEqual([1, 1, 1]);
});

test("a call that fails fails those who share it, and not those who come later", async () => {
  const share = shareCalls<string>();
  const refuse = async () => {
    throw new Error("away");
  };

  const failed = await Promise.allSettled([share("a", refuse), share("a", refuse)]);
  const after = await share("a", async () => "back");

  expect(failed.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  expect(after).toBe("back");
});
