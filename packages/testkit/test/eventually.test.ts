import { eventually } from "@millrace/testkit";
import { expect, test } from "vitest";

test("the first truthy answer is returned", async () => {
  let asked = 0;

  const answer = await eventually("the third answer", () => (asked += 1) === 3 && "third", {
    intervalMs: 1,
  });

  expect(answer).toBe("third");
});

test("a check that keeps failing is reported with what it waited for and the last failure", async () => {
  const waiting = eventually(
    "the moon",
    () => {
      throw new Error("no moon");
    },
    { timeoutMs: 20, intervalMs: 5 },
  );

  await expect(waiting).rejects.toThrow(
    "waited 20 ms in vain for the moon; the last try failed: no moon",
  );
});
