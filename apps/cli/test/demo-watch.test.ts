import { MillraceClient } from "@millrace/client";
import { expect, test } from "vitest";
import { openWatch } from "../src/demo/watch.ts";

test("who asks a watch that was closed is told so at once, and not after all of the patience", async () => {
  const client = new MillraceClient({
    baseUrl: "http://127.0.0.1:9",
    fetch: async () => Response.json({ items: [], nextCursor: null }),
  });
  const watch = openWatch({ client, correlationId: "demo", timeoutMs: 3_600_000 });
  const early = watch.until("i-1", "its end", () => true).catch(String);

  await watch.close();
  const late = watch.until("i-2", "its end", () => true).catch(String);

  expect(await early).toMatch(/broken off/);
  expect(await late).toMatch(/broken off/);
});
