import { join } from "node:path";
import { startProcess } from "@millrace/testkit";
import { expect, test } from "vitest";

test("two minutes of all faults at once under load: every promise holds, and nothing is left", async ({
  annotate,
  onTestFinished,
}) => {
  const run = await startProcess({
    args: ["--enable-source-maps", join(import.meta.dirname, "dist/chaos/run.js")].concat(
      "--seed 1 --minutes 2 --only D --rate 4 --workers 2 --quick".split(" "),
    ),
  });
  // The run stops what it has started when it is asked to end.
  onTestFinished(async () => void (run.exit ?? (await run.stop())));

  const { code } = await run.exited;

  await annotate(run.output());
  if (code !== 0) process.stderr.write(run.output());
  expect(code).toBe(0);
}, 360_000);
