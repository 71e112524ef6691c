import { createHmac, randomBytes } from "node:crypto";

/** Secrets and signatures as Standard Webhooks have them. */

const prefix = "whsec_";

export function newWebhookSecret(): string {
  return `${prefix}${randomBytes(32).toString("base64")}`;
}

export interface SignedContent {
  readonly id: string;
  /** Seconds since 1970. */
  readonly timestamp: number;
  readonly body: string;
}

/** What the header `webhook-signature` holds. */
export function signatureOf(secret: string, { id, timestamp, body }: SignedContent): string {
  const key = Buffer.from(secret.slice(prefix.length), "base64");
  return `v1,${createHmac("sha256", key).update(`${id}.${timestamp}.${body}`).digest("base64")}`;
}
