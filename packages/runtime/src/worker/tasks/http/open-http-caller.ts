import type { JsonValue, TaskContext } from "@millrace/sdk";
import { errors, request } from "undici";
import type { Agent } from "undici";
import { openAddressGuard } from "./address-guard.ts";
import { encodedBody } from "./body.ts";
import { CircuitOpenError, failuresUntilOpen, openCircuits, openMs } from "./circuits.ts";
import { HttpFailure } from "./http-failure.ts";
import { AddressRefusedError, openGuardedAgent } from "./guarded-agent.ts";
import type { Resolve } from "./guarded-agent.ts";
import { decodedBody, readBytes, retryAfterOf } from "./response.ts";
import type { Received } from "./response.ts";

export interface HttpRequest {
  readonly method: "GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE" | "OPTIONS";
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: unknown;
  /** Milliseconds. */
  readonly timeout: number;
  readonly circuitBreaker: boolean;
}

export interface HttpCaller {
  call(input: HttpRequest, context: HttpContext): Promise<HttpResult>;
}

export type HttpContext = Pick<TaskContext, "idempotencyKey" | "instance" | "signal">;

export interface HttpResult {
  readonly status: number;
  readonly headers: Received["headers"];
  readonly body: JsonValue;
  /** Of a body that is no text. */
  readonly bodyEncoding?: "base64";
}

/** Where a GET or HEAD is sent on to; what changes something is not done elsewhere. */
const mostRedirects = 5;
const redirects: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
/** Statuses below 500 that another try may cure. */
const passing: ReadonlySet<number> = new Set([408, 425, 429]);
/** Of the body of an answer that is an error. */
const maxErrorBytes = 10_000;

/** What is sent to one place. */
interface Sent {
  readonly method: HttpRequest["method"];
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | null;
}

export interface HttpCallerOptions {
  /** Hosts, addresses and ranges that it may reach beside public addresses. */
  readonly allow: readonly string[];
  /** Of the body of an answer. */
  readonly maxBytes: number;
  /** By default as the system does. */
  readonly resolve?: Resolve;
}

/**
 * One for a process: connections and circuits are shared by all that run in it.
 *
 * Nothing in this folder imports what the rest of the worker does: it would be split off with it, into a file
 * that is not kept compiled (scripts/bundle.mjs), and every start would take longer.
 */
export function openHttpCaller({ allow, maxBytes, resolve }: HttpCallerOptions): HttpCaller {
  const agent = openGuardedAgent(openAddressGuard(allow), resolve);
  const circuits = openCircuits(isFault);
  return {
    async call(input, context) {
      const deadline = openDeadline(context.signal, input.timeout);
      const exchange = (sent: Sent) => {
        const send = () => receive(agent, sent, deadline, maxBytes);
        if (!input.circuitBreaker) return send();
        return circuits.run(context.instance.tenantId, sent.url.origin, send);
      };
      let sent = firstRequest(input, context);
      try {
        for (let hops = 0; ; hops++) {
          const received = await exchange(sent);
          const next = hops < mostRedirects ? redirected(sent, received) : undefined;
          if (next === undefined) return resultOf(sent, received, maxBytes);
          sent = next;
        }
      } catch (error) {
        throw namedError(sent, error);
      } finally {
        deadline.clear();
      }
    },
  };
}

function firstRequest(input: HttpRequest, { idempotencyKey }: HttpContext): Sent {
  const { method, url } = input;
  const given = Object.entries(input.headers).map(([name, value]) => [name.toLowerCase(), value]);
  const headers: Record<string, string> = Object.fromEntries(given);
  const { body, contentType } = encodedBody(input.body, headers["content-type"]);
  return {
    method,
    url: new URL(url),
    body,
    headers: {
      accept: "application/json, */*",
      "user-agent": "millrace",
      "idempotency-key": idempotencyKey,
      ...(contentType === undefined ? {} : { "content-type": contentType }),
      ...headers,
    },
  };
}

/** Another host gets none of the headers that were meant for the first one: any may hold a secret. */
function redirected(sent: Sent, { status, headers }: Received): Sent | undefined {
  const { location } = headers;
  if (!redirects.has(status) || typeof location !== "string") return undefined;
  if (sent.method !== "GET" && sent.method !== "HEAD") return undefined;
  if (!URL.canParse(location, sent.url.href)) return undefined;
  const url = new URL(location, sent.url);
  if (url.protocol !== "https:" && url.protocol !== "http:") return undefined;
  if (url.origin === sent.url.origin) return { ...sent, url };
  return { method: sent.method, url, body: null, headers: { "user-agent": "millrace" } };
}

async function receive(
  agent: Agent,
  sent: Sent,
  deadline: Deadline,
  maxBytes: number,
): Promise<Received> {
  const { method, url, headers, body } = sent;
  try {
    const response = await request(url, {
      dispatcher: agent,
      method,
      headers,
      body,
      signal: deadline.signal,
    });
    const { statusCode: status, statusText } = response;
    const limit = isSuccess(status) ? maxBytes : maxErrorBytes;
    const read = await readBytes(response.body, response.headers["content-encoding"], limit);
    return { status, statusText, headers: present(response.headers), ...read };
  } catch (error) {
    if (deadline.signal.aborted) throw deadline.signal.reason;
    throw error;
  }
}

function resultOf(sent: Sent, received: Received, maxBytes: number): HttpResult {
  const { status, headers, bytes, isCut } = received;
  if (!isSuccess(status)) throw httpError(sent, received);
  if (isCut) throw tooLarge(sent, status, maxBytes);
  const decoded = decodedBody(received);
  if (decoded.isMalformed) {
    throw new HttpFailure("HttpBadResponse", `${shown(sent)}: the answer says JSON and is none`, {
      retryable: true,
      details: { status, body: decoded.body.slice(0, maxErrorBytes) },
    });
  }
  const { body, bodyEncoding } = decoded;
  const result = { status, headers, body, ...(bodyEncoding && { bodyEncoding }) };
  // The worker refuses such an output too, and has the request made again.
  const isLarge = bytes.length > maxBytes / mostGrowth;
  if (isLarge && Buffer.byteLength(JSON.stringify(result)) > maxBytes) {
    throw tooLarge(sent, status, maxBytes);
  }
  return result;
}

/** Times that a body may be longer as JSON text: one control character is six of its characters. */
const mostGrowth = 8;

function tooLarge(sent: Sent, status: number, limit: number): HttpFailure {
  return new HttpFailure(
    "PAYLOAD_TOO_LARGE",
    `${shown(sent)}: the answer has more than ${limit} bytes, which is what a step's output may have`,
    { retryable: false, details: { status, limit } },
  );
}

function httpError(sent: Sent, received: Received): HttpFailure {
  const { status, statusText, headers, isCut } = received;
  const { location } = headers;
  const retryAfter = retryAfterOf(headers, new Date());
  const { body, bodyEncoding } = decodedBody(received);
  return new HttpFailure("HttpError", `${shown(sent)}: ${`${status} ${statusText}`.trim()}`, {
    retryable: status >= 500 || passing.has(status),
    details: {
      status,
      body,
      ...(bodyEncoding && { bodyEncoding }),
      ...(isCut && { isBodyCut: true }),
      ...(retryAfter !== undefined && { retryAfter }),
      ...(redirects.has(status) && typeof location === "string" && { location }),
    },
  });
}

function namedError(sent: Sent, error: unknown): unknown {
  if (error instanceof HttpFailure) return error;
  const where = shown(sent);
  const { origin } = sent.url;
  if (error instanceof AddressRefusedError) {
    const { host, message } = error;
    const addresses = error.addresses.map((each) => ({ ...each }));
    const details = { host, addresses };
    return new HttpFailure("HttpAddressRefused", `${where}: ${message}`, {
      retryable: false,
      details,
    });
  }
  if (error instanceof CircuitOpenError) {
    const why = `the last ${failuresUntilOpen} requests or more of this worker to ${origin} have failed: it asks nothing of it for ${openMs / 1_000} s after each`;
    return new HttpFailure("CircuitOpen", `${where}: ${why}`, {
      retryable: true,
      details: { origin },
    });
  }
  if (error instanceof DeadlineError) {
    return new HttpFailure("HttpTimeout", `${where}: ${error.message}`, {
      retryable: true,
      details: { origin },
    });
  }
  if (!(error instanceof Error) || isAbort(error)) return error;
  const { code } = error as NodeJS.ErrnoException;
  const isBadRequest = error instanceof errors.InvalidArgumentError;
  return new HttpFailure("HttpNetworkError", `${where}: ${reasonOf(error)}`, {
    retryable: !isBadRequest,
    details: { origin, ...(typeof code === "string" && { code }) },
    cause: error,
  });
}

/** Of a connection that was tried at several addresses, what it met at the first. */
function reasonOf(error: Error): string {
  const [first] = error instanceof AggregateError ? (error.errors as unknown[]) : [];
  return first instanceof Error ? first.message : error.message;
}

/** Without what is asked: a query may hold a secret. */
function shown({ method, url }: Sent): string {
  return `${method} ${url.origin}${url.pathname}`;
}

/** Whether the host is in trouble, and not the request, who asks, or what keeps it from going there. */
function isFault(end: unknown): boolean {
  if (!(end instanceof Error)) return (end as Received).status >= 500;
  if (end instanceof DeadlineError) return true;
  return !(
    isAbort(end) ||
    end instanceof AddressRefusedError ||
    end instanceof errors.InvalidArgumentError
  );
}

function isSuccess(status: number): boolean {
  return status >= 200 && status < 300;
}

function present(headers: Readonly<Record<string, string | string[] | undefined>>) {
  const entries = Object.entries(headers).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as Received["headers"];
}

/** The time of the request, or of its attempt, is over. */
class DeadlineError extends Error {}

const aborts = new WeakSet<Error>();

function isAbort(error: Error): boolean {
  return aborts.has(error);
}

interface Deadline {
  readonly signal: AbortSignal;
  clear(): void;
}

/** Aborts with the task's signal, or when the time is over. */
function openDeadline(outer: AbortSignal, timeoutMs: number): Deadline {
  const controller = new AbortController();
  const onAbort = () => controller.abort(abortReason(outer));
  const timer = setTimeout(
    () => controller.abort(new DeadlineError(`there was no whole answer within ${timeoutMs} ms`)),
    timeoutMs,
  );
  if (outer.aborted) onAbort();
  else outer.addEventListener("abort", onAbort, { once: true });
  return {
    signal: controller.signal,
    clear() {
      clearTimeout(timer);
      outer.removeEventListener("abort", onAbort);
    },
  };
}

/** That the attempt's time is over says as much of the host as the request's own time. */
function abortReason({ reason }: AbortSignal): Error {
  const error = reason instanceof Error ? reason : new Error(String(reason));
  if (error.name === "TimeoutError") return new DeadlineError(error.message, { cause: error });
  aborts.add(error);
  return error;
}
