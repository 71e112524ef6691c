import { run } from "./cli.ts";

// A reader that has seen enough, as in `millrace ls | head`, is no failure.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
  process.exit();
});

const exitCode = await run(process.argv.slice(2), process);
// Servers go on, and end with a code of their own.
if (exitCode !== undefined) process.exitCode = exitCode;
