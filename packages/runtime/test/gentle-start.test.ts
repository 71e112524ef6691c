import { afterEach, expect, test, vi } from "vitest";
import { startGently } from "../src/gentle-start.ts";

afterEach(() => vi.useRealTimers());

test("V8 optimizes later for the first seconds of a process, and as always after them", () => {
  vi.useFakeTimers();
  const setFlag = vi.fn<(flag: string) => void>();
  startGently("11.3.244.8-node.38", setFlag);
  expect(setFlag.mock.calls).toEqual([["--interrupt-budget=500000"]]);
  vi.runAllTimers();
  expect(setFlag.mock.lastCall).toEqual(["--interrupt-budget=67584"]);
});

test.each(["12.4.254.21-node.57", "13.6.233.17-node.53", "14.6.202.34-node.34"])(
  "V8 %s, which complains of a flag that it does not know, is told none",
  (version) => {
    vi.useFakeTimers();
    const setFlag = vi.fn<(flag: string) => void>();
    startGently(version, setFlag);
    vi.runAllTimers();
    expect(setFlag).not.toHaveBeenCalled();
  },
);
