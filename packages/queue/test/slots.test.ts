import { expect, test, vi } from "vitest";
import { openSlots } from "../src/slots.ts";

const patienceMs = 1_000;

test("no more are taken than there are, and who waits gets the next one", async () => {
  const slots = openSlots(2);
  expect(await Promise.all([slots.take(patienceMs), slots.take(patienceMs)])).toEqual([true, true]);
  const order: number[] = [];
  const third = slots.take(patienceMs).then(() => order.push(3));
  const fourth = slots.take(patienceMs).then(() => order.push(4));
  expect(slots.free).toBe(0);

  slots.give();
  await third;
  expect(slots.taken).toBe(2);
  slots.give();
  await fourth;

  expect(order).toEqual([3, 4]);
});

test("patience ends, and a shut one has none", async () => {
  const slots = openSlots(1);
  await slots.take(patienceMs);
  expect(await slots.take(1)).toBe(false);

  const waiting = slots.take(60_000);
  const room = slots.room(1, 60_000);
  slots.shut();

  expect(await waiting).toBe(false);
  await room;
  expect(await slots.take(60_000)).toBe(false);
});

test("room is there when enough are free, or some for a while", async () => {
  vi.useFakeTimers();
  try {
    const slots = openSlots(3);
    for (let taken = 0; taken < 3; taken++) await slots.take(patienceMs);
    let hasRoom = false;
    const room = slots.room(2, 50).then(() => (hasRoom = true));

    await vi.advanceTimersByTimeAsync(1_000);
    expect(hasRoom).toBe(false);
    slots.give();
    await vi.advanceTimersByTimeAsync(49);
    expect(hasRoom).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    await room;

    await slots.take(patienceMs);
    const both = slots.room(2, 50);
    slots.give();
    slots.give();
    await both;
  } finally {
    vi.useRealTimers();
  }
});

test("it is idle when all are given back", async () => {
  const slots = openSlots(2);
  await slots.take(patienceMs);
  let isIdle = false;
  const idle = slots.idle().then(() => (isIdle = true));
  await Promise.resolve();
  expect(isIdle).toBe(false);
  slots.give();
  await idle;
  await slots.idle();
});
