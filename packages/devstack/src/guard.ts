import { spawn } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";

/**
 * Ends the process `pid` when this one dies without having ended it: a crash, or kill -9.
 *
 * A shell waits on a pipe that only this process holds. As long as this process lives nothing
 * arrives; when it dies the system closes the pipe, and the shell sends `signal` and, ten seconds
 * later, KILL. The shell has a session of its own, so that Ctrl-C in a terminal does not reach it.
 *
 * @returns A function that calls the guard off; call it when the process has ended.
 */
export function guard(pid: number, signal: "INT" | "TERM" | "KILL"): () => void {
  // There is no such shell on Windows; there, children of a killed parent stay behind.
  if (process.platform === "win32") return () => {};

  const shell = spawn("/bin/sh", ["-c", waitAndEnd, "millrace-guard", String(pid), signal], {
    stdio: ["pipe", "ignore", "ignore"],
    detached: true,
  });
  // A guard that cannot start, or that somebody ended, only means that there is no guard.
  shell.on("error", () => {});
  shell.stdin.on("error", () => {});
  shell.unref();
  if ("unref" in shell.stdin && typeof shell.stdin.unref === "function") shell.stdin.unref();
  return () => shell.stdin.end("done\n");
}

/** Where nobody collects orphans, as in some containers, an ended process stays as a zombie. */
const waitAndEnd = `
trap "" INT TERM HUP
read -r _ && exit 0
kill -s "$2" "$1" && kill -s CONT "$1" || exit 0
n=0
while [ $n -lt 100 ]; do
  kill -0 "$1" || exit 0
  if grep -q "^State:.Z" "/proc/$1/status"; then exit 0; fi
  sleep 0.1
  n=$((n + 1))
done
kill -s KILL "$1"
`;

/** Waits until `isDone`, looking every 20 ms; answers whether it came true in time. */
export async function waitUntil(isDone: () => boolean, timeoutMs: number): Promise<boolean> {
  const end = performance.now() + timeoutMs;
  while (!isDone()) {
    if (performance.now() > end) return false;
    await sleep(20);
  }
  return true;
}
