import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openInstallation, type Installation } from "../support/installation.ts";
import { startOrders } from "../support/order-load.ts";

let installation: Installation;
beforeAll(async () => {
  installation = await openInstallation();
});
afterAll(() => installation?.close());

test("FLUSHALL in the middle of the load: every order ends as it should, each outcome once", async ({
  annotate,
}) => {
  const load = await startOrders(installation, { run: "flushed" });
  await load.underWay(60);
  await installation.withRedis((redis) => redis.flushall());
  await load.underWay(150);
  await installation.withRedis((redis) => redis.flushall());

  const { outcomes, reruns } = await load.finish();

  expect(outcomes).toHaveLength(50);
  await annotate(`${reruns} runs again`);
}, 180_000);

test("Redis killed and restarted empty in the middle of the load: the same", async ({
  annotate,
}) => {
  const load = await startOrders(installation, { run: "restarted" });
  await load.underWay(60);
  await installation.stack.redis?.stop("kill");
  await sleep(1_500);
  await installation.stack.redis?.start();

  const { outcomes, reruns } = await load.finish();

  expect(outcomes).toHaveLength(50);
  await annotate(`${reruns} runs again`);
}, 180_000);
