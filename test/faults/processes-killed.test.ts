import { kill } from "@millrace/testkit";
import { afterEach, expect, test } from "vitest";
import { openInstallation, type Installation } from "../support/installation.ts";
import { startOrders } from "../support/order-load.ts";

let installation: Installation | undefined;
afterEach(async () => {
  await installation?.close();
  installation = undefined;
});

test("one of two workers is killed for good: the other ends every order, each outcome recorded once", async ({
  annotate,
}) => {
  installation = await openInstallation({ isRestarted: false });
  const { stack, ledger } = installation;
  const load = await startOrders(installation, { run: "worker-killed" });
  await load.underWay(120);

  const [victim = 0] = stack.pids().worker;
  kill(victim);
  const killedAt = Date.now();
  const before = ledger.entries.length;

  const { reruns, uncertain, entries } = await load.finish();
  expect(stack.pids().worker).toHaveLength(1);
  const again = entries.find(
    ({ seq, details }) => seq > before && Number(details["deliveries"]) > 1,
  );
  const recoveredMs = again === undefined ? undefined : again.receivedAt - killedAt;
  await annotate(`${reruns} runs again, first after ${recoveredMs} ms; ${uncertain} uncertain`);
}, 180_000);

test("the API and the scheduler are killed again and again: what was answered 2xx is honoured", async ({
  annotate,
}) => {
  installation = await openInstallation();
  const { stack } = installation;
  const load = await startOrders(installation, { run: "api-killed" });

  for (const runs of [20, 60, 100, 140]) {
    await load.underWay(runs);
    for (const pid of [...stack.pids().api, ...stack.pids().scheduler]) kill(pid);
  }

  const { outcomes, reruns } = await load.finish();
  expect(outcomes).toHaveLength(50);
  await annotate(`${reruns} runs again`);
}, 180_000);
