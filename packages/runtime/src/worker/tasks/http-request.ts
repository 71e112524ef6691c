import { durationToMs, isRefusal, parseDuration } from "@millrace/engine";
import { defineTask } from "@millrace/sdk";
import type { Task } from "@millrace/sdk";
import * as z from "zod";
import { maxOutputBytes } from "../json-form.ts";
import type { HttpCaller, HttpRequest } from "./http/open-http-caller.ts";

const longestTimeoutMs = 3_600_000;
const methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] as const;

/** They frame the request, or say where it goes: the URL and the connection do. */
const ownHeaders =
  /^(?:connection|content-length|expect|host|keep-alive|proxy-connection|te|trailer|transfer-encoding|upgrade)$/i;

/** No message shows a value: it may be a password. */
const Headers = z
  .record(z.string(), z.union([z.string(), z.number(), z.boolean()]).transform(String))
  .superRefine((headers, context) => {
    for (const [name, value] of Object.entries(headers)) {
      const fault = headerFault(name, value);
      if (fault !== undefined) context.addIssue({ code: "custom", path: [name], message: fault });
    }
  });

const HttpRequestInput = z.strictObject({
  method: z
    .string()
    .transform((method) => method.toUpperCase())
    .pipe(z.enum(methods))
    .default("GET"),
  url: z.string().superRefine((url, context) => {
    const message = urlFault(url);
    if (message !== undefined) context.addIssue({ code: "custom", message });
  }),
  headers: Headers.default({}),
  body: z.unknown().optional(),
  timeout: z
    .string()
    .refine((text) => !Number.isNaN(timeoutMsOf(text)), {
      message: "must be an ISO 8601 duration above zero and of at most PT1H",
    })
    .transform(timeoutMsOf)
    .default(30_000),
  circuitBreaker: z.boolean().default(true),
});

/**
 * Makes one HTTP request (docs/built-in-tasks.md). What it is made with is loaded by the first run: most workers
 * never make one.
 *
 * @param allow Whom it may reach although the address is not a public one (`MILLRACE_HTTP_ALLOW`).
 */
export function httpRequest(allow: readonly string[]): Task {
  let caller: Promise<HttpCaller> | undefined;
  return defineTask<HttpRequest>({
    id: "http.request",
    description: "Makes an HTTP request",
    input: HttpRequestInput,
    async run(context, input) {
      caller ??= import("./http/open-http-caller.ts").then(({ openHttpCaller }) =>
        openHttpCaller({ allow, maxBytes: maxOutputBytes }),
      );
      return (await caller).call(input, context);
    },
  });
}

function urlFault(text: string): string | undefined {
  if (!URL.canParse(text)) return "must be a URL, as https://example.com/orders";
  const { protocol, username, password } = new URL(text);
  if (protocol !== "https:" && protocol !== "http:") return "must begin with https:// or http://";
  const hasCredentials = username !== "" || password !== "";
  return hasCredentials ? "must hold no credentials: they belong into a header" : undefined;
}

function headerFault(name: string, value: string): string | undefined {
  if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name)) return "is no name of a header";
  if (ownHeaders.test(name)) return "is a header that follows from the request itself";
  return /^[\t\x20-\x7e\x80-\xff]*$/.test(value)
    ? undefined
    : "has a value with characters that a header cannot have";
}

/** NaN for what is none. */
function timeoutMsOf(text: string): number {
  const duration = parseDuration(text);
  if (isRefusal(duration)) return Number.NaN;
  const ms = durationToMs(duration, new Date(0));
  return ms > 0 && ms <= longestTimeoutMs ? ms : Number.NaN;
}
