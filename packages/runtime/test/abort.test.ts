import { expect, test } from "vitest";
import { openAbort } from "../src/worker/abort.ts";

test("a signal that is asked for before or after the abort carries its reason", () => {
  const early = openAbort();
  const late = openAbort();
  const reason = new Error("taken away");
  const before = early.signal;

  early.abort(reason);
  late.abort(reason);

  expect([before, early.signal, late.signal].map(({ aborted }) => aborted)).toEqual([
    true,
    true,
    true,
  ]);
  expect(before.reason).toBe(reason);
  expect(late.signal.reason).toBe(reason);
});

test("listeners hear of an abort once, those who come late at once", () => {
  const abort = openAbort();
  const heard: string[] = [];
  abort.onAbort(() => heard.push("early"));

  abort.abort(new Error("first"));
  abort.abort(new Error("second"));
  abort.onAbort(() => heard.push("late"));

  expect(heard).toEqual(["early", "late"]);
  expect((abort.signal.reason as Error).message).toBe("first");
});
