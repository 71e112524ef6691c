import { MillraceApiError, MillraceConnectionError } from "@millrace/client";
import { expect, test } from "vitest";
import { gate, patiently } from "../src/demo/patience.ts";

function problem(status: number): MillraceApiError {
  return new MillraceApiError({ type: "x", title: "x", status, detail: "x", code: "X" });
}

test("a busy API and one that is being replaced are asked again", async () => {
  const failures = [
    problem(503),
    new MillraceConnectionError("POST", "/", "refused"),
    problem(429),
  ];

  const answer = await patiently(async (attempt) => {
    const failure = failures[attempt - 1];
    if (failure) throw failure;
    return attempt;
  });

  expect(answer).toBe(4);
});

test("a refusal is final", async () => {
  let calls = 0;
  const call = patiently(async () => {
    calls += 1;
    throw problem(422);
  });

  await expect(call).rejects.toThrow(MillraceApiError);
  expect(calls).toBe(1);
});

test("a gate never lets more through at a time than it is wide, and all of them in the end", async () => {
  const through = gate(3);
  let inside = 0;
  let most = 0;

  const results = await Promise.all(
    Array.from({ length: 20 }, (_, index) =>
      through(async () => {
        inside += 1;
        most = Math.max(most, inside);
        await new Promise((resolve) => setTimeout(resolve, index % 4));
        inside -= 1;
        if (index === 5) throw new Error("one fails");
        return index;
      }).catch(() => -1),
    ),
  );

  expect(most).toBe(3);
  expect(results).toEqual(Array.from({ length: 20 }, (_, index) => (index === 5 ? -1 : index)));
});
