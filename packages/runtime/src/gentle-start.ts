import { setFlagsFromString } from "node:v8";

/**
 * Puts off most of V8's optimizing for the first seconds of a process. Everything becomes hot at once
 * then, and the compiler's threads take the cores from Postgres and from the code itself, just when a
 * backlog waits for the process: a drain of two workers on two cores does a quarter more steps, 2,000
 * sleeps that come due together end in two thirds of the time (docs/performance.md). Code that stays hot
 * is optimized a little later.
 *
 * For Node 20 alone. V8 from 12 on counts invocations instead, complains on the standard error of a flag that
 * it does not know, and gains nothing by the like: from Node 24 on it has a quick compiler in between.
 */
export function startGently(v8Version = process.versions.v8, setFlag = setFlagsFromString): void {
  if (Number.parseInt(v8Version, 10) >= 12) return;
  setFlag(`--interrupt-budget=${gentleBudget}`);
  setTimeout(() => setFlag(`--interrupt-budget=${usualBudget}`), gentleMs).unref();
}

/** Bytes of bytecode that a function runs through before V8 asks whether to optimize it; its default. */
const usualBudget = 67_584;
const gentleBudget = 500_000;
const gentleMs = 10_000;
