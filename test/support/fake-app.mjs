// Stands for each of the apps in tests of the stack itself: says what settings it got, is ready
// after a moment, ends on SIGTERM, and dies as it is told.
import { createServer } from "node:http";

const { DATABASE_URL, REDIS_URL, MILLRACE_QUEUE_BACKEND, MILLRACE_TASKS, PORT } = process.env;
const settings = { DATABASE_URL, REDIS_URL, MILLRACE_QUEUE_BACKEND, MILLRACE_TASKS, PORT };
console.log("settings", JSON.stringify(settings));

if (process.env.FAKE_EXIT) {
  console.error("DATABASE_URL is not a URL");
  process.exit(Number(process.env.FAKE_EXIT));
}

// It hears nothing from its first line on.
if (process.env.FAKE_BLOCKED === "1" && !PORT) {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
}

const endsWithinMs = Number(process.env.FAKE_ENDS_WITHIN_MS) || undefined;
const ready = () => process.send({ kind: "ready", endsWithinMs });

process.on("SIGTERM", () => {
  console.log("stopping");
  if (process.env.FAKE_STUBBORN !== "1") process.exit(0);
});

if (PORT) {
  const startedAt = Date.now();
  createServer((request, response) => {
    response.writeHead(Date.now() - startedAt > 200 ? 200 : 503).end();
  }).listen(Number(PORT), "127.0.0.1", ready);
} else {
  setInterval(() => {}, 1_000);
  setTimeout(ready, 100);
}
