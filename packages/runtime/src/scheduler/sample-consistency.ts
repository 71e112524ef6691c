import { sampleInstances } from "@millrace/store";
import type { EvidenceLimits, Key } from "@millrace/store";
import { checkInstance } from "../consistency/check-instance.ts";
import { InstanceNotFoundError } from "../errors.ts";
import { startLoop } from "../loop.ts";
import type { Loop } from "../loop.ts";
import type { Services } from "../services.ts";

/**
 * Checks a few instances a minute, whichever they are, so that damage shows before somebody stumbles
 * over it. Nothing is repaired: that is for an operator to ask for.
 */

/** A sample is to cost little; larger ones are checked without their history. */
const smallLook: EvidenceLimits = { commits: 1_000, bytes: 4_000_000 };

export function startConsistencySample(services: Services, perMinute: number): Loop {
  const pauseMs = 60_000 / perMinute;
  let isFirst = true;

  async function round(): Promise<number> {
    // Those who start have other things to do, and schedulers that start together are spread.
    if (isFirst) {
      isFirst = false;
      return pauseMs * Math.random();
    }
    const [key] = await sampleInstances(services.database.db);
    if (key !== undefined) await checkOne(services, key);
    return pauseMs;
  }

  return startLoop({ name: "consistency", log: services.log, maxDelayMs: pauseMs }, round);
}

export async function checkOne(services: Services, key: Key): Promise<void> {
  const { metrics, log } = services;
  try {
    const { instanceId, version, findings } = await checkInstance(services, key, smallLook);
    metrics.consistencyChecked.add({});
    for (const { code, message, where } of findings) {
      metrics.consistencyFindings.add({ code });
      log.warn({ instanceId, version, code, where }, `not consistent: ${message}`);
    }
  } catch (error) {
    if (!(error instanceof InstanceNotFoundError)) throw error;
  }
}
