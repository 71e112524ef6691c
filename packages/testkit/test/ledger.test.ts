import { eventually, openLedger, type Ledger } from "@millrace/testkit";
import { afterEach, beforeEach, expect, test } from "vitest";

let ledger: Ledger;
beforeEach(async () => {
  ledger = await openLedger();
});
afterEach(() => ledger.close());

const charge = { instance: "i-1", step: "charge", attempt: 1, idempotencyKey: "k-1", amount: 5 };

test("an entry is kept in order of arrival, with what else the task sent", async () => {
  await post(charge);
  await post({ ...charge, step: "ship", branch: "b" });

  expect(ledger.entries).toMatchObject([
    { seq: 1, step: "charge", branch: undefined, details: { amount: 5 } },
    { seq: 2, step: "ship", branch: "b" },
  ]);
  const listed = await fetch(`${ledger.url}/entries`).then((response) => response.json());
  expect(listed).toMatchObject({ entries: [{ seq: 1 }, { seq: 2 }] });
});

test("a rule makes the entries it names fail, so many times, and they are kept all the same", async () => {
  ledger.answer({ when: { step: "charge" }, status: 503, times: 2 });

  const statuses = [await post(charge), await post(charge), await post(charge)];

  expect(statuses).toEqual([503, 503, 201]);
  expect(ledger.entries).toHaveLength(3);
});

test("a rule makes the ledger answer late, after the entry is kept", async () => {
  ledger.answer({ delayMs: 150 });

  const startedAt = performance.now();
  await post(charge);

  expect(performance.now() - startedAt).toBeGreaterThan(140);
  expect(Date.now() - (ledger.entries[0]?.receivedAt ?? 0)).toBeGreaterThan(140);
});

test("a rule holds the answer back until its promise settles", async () => {
  let open = () => {};
  const opened = new Promise<void>((resolve) => (open = resolve));
  ledger.answer({ until: () => opened });

  let answered = false;
  const posted = post(charge).then((status) => {
    answered = true;
    return status;
  });
  await eventually("the entry", () => ledger.entries.length === 1);

  expect(answered).toBe(false);
  open();
  expect(await posted).toBe(201);
});

test("what is not an entry is refused", async () => {
  expect(await post({ step: "charge" })).toBe(400);
  expect(ledger.entries).toEqual([]);
});

async function post(body: unknown): Promise<number> {
  const response = await fetch(`${ledger.url}/entries`, {
    method: "POST",
    body: JSON.stringify(body),
  });
  return response.status;
}
