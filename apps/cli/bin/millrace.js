#!/usr/bin/env node
import { existsSync } from "node:fs";

// A server that is asked to end before it has loaded exits 0, as it does later, by what it then listens with.
if (["api", "worker", "scheduler"].includes(process.argv[2])) {
  for (const signal of ["SIGTERM", "SIGINT"]) {
    process.on(signal, () => process.listenerCount(signal) === 1 && process.exit(0));
  }
}

if (existsSync(new URL("../bundle/main.js", import.meta.url))) {
  await import("@millrace/cli/main");
} else {
  console.error(
    "millrace is not built yet. In the root of the clone: npm install && npm run build",
  );
  console.error("(npm run demo and npm test do that by themselves.)");
  process.exitCode = 1;
}
