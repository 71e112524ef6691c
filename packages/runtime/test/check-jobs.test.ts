import type { Evidence } from "@millrace/engine";
import { expect, test } from "vitest";
import { checkJobs } from "../src/consistency/check-jobs.ts";
import type { Services } from "../src/services.ts";

test("a queue that does not answer is said not to have been looked at", async () => {
  const created = new Date(0);
  const step = {
    path: "a",
    queue: "default",
    status: "PENDING",
    held: false,
    blocked: null,
    lookAt: created,
    retryAt: null,
    createdAt: created,
  };
  const evidence = { now: new Date(60_000), steps: [step] } as unknown as Evidence;
  const depths = () => Promise.reject(new Error("Redis is away"));
  const services = { queue: { depths } } as unknown as Services;

  const checked = await checkJobs(services, { tenantId: "default", instanceId: "x" }, evidence);

  expect(checked.findings).toEqual([]);
  expect(checked.skipped).toEqual(["queue default did not answer, so that its jobs are not known"]);
});
