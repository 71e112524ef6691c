import { once } from "node:events";

// Loaded into a worker by `--import`: loads what a worker loads, says so, and waits for the word to begin.
// Of several workers that are to begin together none then works while others still load on the same cores.

/** A signal that is waited for does not keep a process alive. */
const alive = setInterval(() => {}, 60_000);
await import("@millrace/runtime");
const begin = once(process, "SIGUSR2");
process.send?.({ kind: "loaded" });
await begin;
clearInterval(alive);
