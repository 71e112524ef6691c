import { setFlagsFromString } from "node:v8";

/**
 * Puts off most of V8's optimizing for the first seconds of a process. Everything becomes hot at once
 * then, and the compiler's threads take the cores from Postgres and from the code itself, just when a
 * backlog waits for the process: a drain of two workers on two cores does a quarter more steps, 2,000
 * sleeps that come due together end in two thirds of the time (docs/performance.md). Code that stays hot
 * is optimized a little later. To set a flag while V8 runs does nothing where it is not known.
 */
export function startGently(): void {
  setFlagsFromString(`--interrupt-budget=${gentleBudget}`);
  setTimeout(() => setFlagsFromString(`--interrupt-budget=${usualBudget}`), gentleMs).unref();
}

/** Bytes of bytecode that a function runs through before V8 asks whether to optimize it; its default. */
const usualBudget = 67_584;
const gentleBudget = 500_000;
const gentleMs = 10_000;
