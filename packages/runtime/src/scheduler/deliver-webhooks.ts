import { setMaxListeners } from "node:events";
import { dueWebhooks, noteDelivered, noteUndelivered, takeDeliveries } from "@millrace/store";
import type { WebhookDelivery, WebhookTarget } from "@millrace/store";
import { startLoop } from "../loop.ts";
import type { Loop } from "../loop.ts";
import type { Services } from "../services.ts";
import type { WebhookCaller } from "../webhooks/open-webhook-caller.ts";
import { signatureOf } from "../webhooks/signature.ts";

/**
 * Sends to webhooks what lifecycle events have come to be rows for them. Any number of schedulers may: each takes its own
 * rows for a while. A row goes when it was taken, and is sent again otherwise, also where whoever sent it died: under the
 * same id. Each webhook is served by itself, so that one that does not answer holds up no other.
 */

const betweenMs = 500;
/** Webhooks that are served at once, and events that one is sent at once. */
const lanes = 20;
const atOnce = 5;
/** Parts of what is due that one is sent in its turn; a turn ends with the first that is not taken, too. */
const partsInTurn = 20;
/** Longer than a try takes. */
const holdMs = 60_000;

const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;
/** After the first try, the second one, and so on; when they are spent, after some two days, it is given up. */
const retryMs = [
  5 * second,
  30 * second,
  2 * minute,
  10 * minute,
  30 * minute,
  hour,
  3 * hour,
  6 * hour,
  12 * hour,
  24 * hour,
];
/** A webhook that takes nothing for so long is disabled. */
const patienceMs = 5 * 24 * hour;

/** @param allow Whom webhooks may reach although the address is not a public one. */
export function startWebhooks(services: Services, allow: readonly string[]): Loop {
  const ending = new AbortController();
  // One for each call under way.
  setMaxListeners(lanes * atOnce, ending.signal);
  const serving = new Map<string, Promise<void>>();
  let caller: Promise<WebhookCaller> | undefined;

  async function round(): Promise<number> {
    for (const webhook of await dueWebhooks(services.database.db, lanes * 5)) {
      const name = `${webhook.tenantId}/${webhook.id}`;
      if (serving.size >= lanes || serving.has(name)) continue;
      // Loaded where there is something to send.
      caller ??= import("../webhooks/open-webhook-caller.ts").then(({ openWebhookCaller }) =>
        openWebhookCaller(allow, ending.signal),
      );
      const served = serve(services, await caller, webhook, ending.signal);
      serving.set(
        name,
        served.finally(() => serving.delete(name)),
      );
    }
    return betweenMs;
  }

  const options = { name: "webhooks", log: services.log, maxDelayMs: 2 * betweenMs };
  const loop = startLoop(options, round);
  return {
    wake: () => loop.wake(),
    async stop() {
      ending.abort();
      await loop.stop();
      await Promise.all(serving.values());
      await (await caller)?.close();
    },
  };
}

/** Never rejects: what could not be noted is sent again. */
async function serve(
  services: Services,
  caller: WebhookCaller,
  webhook: WebhookTarget,
  ending: AbortSignal,
): Promise<void> {
  try {
    for (let parts = 0; parts < partsInTurn && !ending.aborted; parts++) {
      const due = await takeDeliveries(services.database.db, webhook, atOnce, holdMs);
      const sent = await Promise.all(due.map((each) => send(services, caller, webhook, each)));
      if (due.length < atOnce || sent.includes(false)) return;
    }
  } catch (error) {
    services.log.warn({ err: error, webhookId: webhook.id }, "a webhook could not be served");
  }
}

/** @returns Whether it was taken. */
async function send(
  { database: { db }, clock, log, metrics }: Services,
  caller: WebhookCaller,
  webhook: WebhookTarget,
  { eventId, body, attempt }: WebhookDelivery,
): Promise<boolean> {
  const timestamp = Math.floor(clock.now().getTime() / 1_000);
  const posted = await caller.post(
    webhook.url,
    {
      "content-type": "application/json",
      "user-agent": "millrace",
      "webhook-id": eventId,
      "webhook-timestamp": String(timestamp),
      "webhook-signature": signatureOf(webhook.secret, { id: eventId, timestamp, body }),
    },
    body,
  );
  if (posted.kind === "aborted") return false;
  if (posted.kind === "taken") {
    await noteDelivered(db, webhook, eventId);
    metrics.webhookDeliveries.add({ outcome: "taken" });
    return true;
  }
  const { failure, isGone } = posted;
  const pauseMs = isGone ? undefined : retryMs[attempt - 1];
  const isDisabled = await noteUndelivered(db, webhook, {
    eventId,
    failure,
    retryMs: pauseMs && Math.round(pauseMs * (0.8 + Math.random() * 0.4)),
    patienceMs: isGone ? 0 : patienceMs,
  });
  metrics.webhookDeliveries.add({ outcome: pauseMs === undefined ? "givenUp" : "failed" });
  const { tenantId, id: webhookId } = webhook;
  if (isDisabled) {
    log.warn({ tenantId, webhookId, failure }, "a webhook is disabled, as it takes nothing");
  }
  return false;
}
