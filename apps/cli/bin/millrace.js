#!/usr/bin/env node
import { existsSync } from "node:fs";

if (existsSync(new URL("../bundle/main.js", import.meta.url))) {
  await import("@millrace/cli/main");
} else {
  console.error(
    "millrace is not built yet. In the root of the clone: npm install && npm run build",
  );
  console.error("(npm run demo and npm test do that by themselves.)");
  process.exitCode = 1;
}
