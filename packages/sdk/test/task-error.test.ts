import { describe, expect, test } from "vitest";
import {
  errorDetailsOf,
  errorMessageOf,
  errorNameOf,
  isTaskError,
  retryableOf,
  TaskError,
} from "@millrace/sdk";

describe("TaskError", () => {
  test("carries its name, whether to retry, details and cause", () => {
    const cause = new Error("below");
    const error = new TaskError("PaymentDeclined", "card was declined", {
      retryable: false,
      details: { code: 51 },
      cause,
    });

    expect(error).toBeInstanceOf(Error);
    expect(error).toMatchObject({
      type: "PaymentDeclined",
      message: "card was declined",
      retryable: false,
      details: { code: 51 },
      cause,
    });
    expect(isTaskError(error)).toBe(true);
  });

  test("is retried unless it says otherwise, and has no cause of its own making", () => {
    const error = new TaskError("X", "m");

    expect(error.retryable).toBe(true);
    expect(Object.hasOwn(error, "cause")).toBe(false);
  });

  test("of a second copy of the SDK is recognised", () => {
    const foreign = Object.assign(new Error("m"), { [Symbol.for("millrace.TaskError")]: true });

    expect(foreign).not.toBeInstanceOf(TaskError);
    expect(isTaskError(foreign)).toBe(true);
    expect(isTaskError(new Error("m"))).toBe(false);
  });
});

describe("whatever a task throws has a name, a message and an answer to retrying", () => {
  const hostile = new Proxy(new Error("m"), {
    get() {
      throw new Error("never mind");
    },
  });
  const circular: Record<string, unknown> = {};
  circular["self"] = circular;

  test.each([
    [new TaskError("Declined", "m", { retryable: false }), "Declined", "m", false],
    [new RangeError("m"), "RangeError", "m", true],
    [Object.assign(new Error("m"), { type: "Named" }), "Named", "m", true],
    [Object.assign(new Error("m"), { type: "" }), "Error", "m", true],
    [Object.assign(new Error("m"), { type: 7 }), "Error", "m", true],
    [{ name: "Plain", message: "m", retryable: false }, "Plain", "m", false],
    [{ code: 1 }, "Error", '{"code":1}', true],
    ["text", "Error", "text", true],
    [undefined, "Error", "undefined", true],
    [null, "Error", "null", true],
    [Symbol("s"), "Error", "Symbol(s)", true],
    [circular, "Error", "an error that cannot be shown", true],
    [hostile, "Error", "an error that cannot be shown", true],
  ])("%#", (thrown, name, message, retryable) => {
    expect(errorNameOf(thrown)).toBe(name);
    expect(errorMessageOf(thrown)).toBe(message);
    expect(retryableOf(thrown)).toBe(retryable);
  });

  test("details are read from any object", () => {
    expect(errorDetailsOf({ details: { a: 1 } })).toEqual({ a: 1 });
    expect(errorDetailsOf("text")).toBeUndefined();
    expect(errorDetailsOf(hostile)).toBeUndefined();
  });
});
