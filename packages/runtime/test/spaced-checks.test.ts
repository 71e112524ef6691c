import { expect, test } from "vitest";
import { openSpacing } from "../src/definitions/spaced-checks.ts";

const tooCostly = [{ path: "/input", code: "TOO_COSTLY", message: "took too long" }];

test("between two checks that take long there is time for others", async () => {
  const served: string[] = [];
  const others = setInterval(() => served.push("other"), 1);
  const check = openSpacing()(() => {
    for (const end = performance.now() + 40; performance.now() < end;);
    served.push("check");
    return tooCostly;
  });

  const found = await Promise.all(["a", "b", "c"].map((input) => check(input)));
  clearInterval(others);

  expect(found).toEqual([tooCostly, tooCostly, tooCostly]);
  const runs = served.filter((each, index) => each !== served[index - 1]);
  expect(runs.slice(0, 5)).toEqual(["check", "other", "check", "other", "check"]);
});

test("one that would wait too long is refused, and one of another schema does not wait", async () => {
  const inTurn = openSpacing();
  const slow = inTurn(() => {
    for (const end = performance.now() + 40; performance.now() < end;);
    return tooCostly;
  });
  const brief = inTurn(() => []);

  const first = slow("a", 0);
  const second = slow("b", 0);
  const third = brief("c", 0);

  await expect(second).rejects.toMatchObject({ code: "BUSY", retryAfterSeconds: 5 });
  expect([await first, await third]).toEqual([tooCostly, []]);
});
