import type { ErrorCode } from "@millrace/contract";
import type * as z from "zod";

/** Request headers that some calls read, as the OpenAPI document describes them. */
export const REQUEST_HEADERS = {
  "Millrace-Tenant":
    'The tenant on whose behalf the call is made; default "default". A tenantId in the body or query must agree with it, and stands in for it where it is absent. What belongs to another tenant is answered as if it did not exist.',
  "X-Request-Id":
    "Names the request in logs and problems; a new id where it is absent or holds odd characters. The answer repeats it.",
  "Idempotency-Key":
    "Makes the start repeatable: the same key and body again answer the instance as it is now (200, Idempotent-Replayed: true), another body is a 409. Kept for 24 hours at least, per tenant.",
  "If-Match": "The ETag that the caller has read: 412 when it has changed since. * is any.",
  "Last-Event-ID":
    "The id of the last event that was received: the stream goes on behind it. Browsers send it by themselves.",
  "If-None-Match": "The ETag that the caller has: 304 when it is still the same.",
} as const;
export type RequestHeader = keyof typeof REQUEST_HEADERS;

/** Headers that some answers carry. */
export const RESPONSE_HEADERS = {
  ETag: "The version of what is answered, in quotes.",
  Location: "Where what was made can be read.",
  "Idempotent-Replayed": "`true` when the Idempotency-Key had been used for this start before.",
} as const;
export type ResponseHeader = keyof typeof RESPONSE_HEADERS;

declare module "fastify" {
  interface FastifyContextConfig {
    /** Codes that the call may answer beside those that every call may. */
    errors?: readonly ErrorCode[];
    requestHeaders?: readonly RequestHeader[];
    responseHeaders?: readonly ResponseHeader[];
    /** The query where the route parses it by itself. */
    query?: z.ZodType;
    /** The body where what is behind the route parses it. */
    body?: z.ZodType;
    /** Media type of the answer; default JSON. */
    mediaType?: string;
  }
}
