import { PROBLEM_MEDIA_TYPE, ProblemDetails } from "@millrace/contract";
import { MillraceApiError, MillraceConnectionError } from "./errors.ts";

export interface ClientOptions {
  /** Default `http://127.0.0.1:8080`. */
  readonly baseUrl?: string | undefined;
  /** Sent with every request, as for authentication. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Until an answer is complete; a long poll has its own waiting time on top. Default 30,000. */
  readonly timeoutMs?: number | undefined;
  /** Tries of a GET that found no server or a busy one. Nothing else is repeated. Default 3. */
  readonly attempts?: number | undefined;
  /** Pause before the second try; doubles, with jitter. Default 100. */
  readonly retryDelayMs?: number | undefined;
  readonly fetch?: typeof globalThis.fetch | undefined;
}

export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
}

export type QueryValue = string | number | boolean | readonly string[] | undefined;

export interface Call {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly path: string;
  readonly query?: Readonly<Record<string, QueryValue>> | undefined;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string | undefined>> | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Milliseconds that the API may take its time beyond the usual. */
  readonly patienceMs?: number | undefined;
  /** Statuses beside 2xx whose body is an answer rather than a problem. */
  readonly accept?: readonly number[] | undefined;
}

export interface Answer<T> {
  readonly status: number;
  readonly headers: Headers;
  readonly data: T;
}

/** Sends one call and reads its answer as JSON. */
export type Transport = <T>(call: Call) => Promise<Answer<T>>;

const RETRIED_STATUSES: readonly number[] = [429, 502, 503, 504];
/** The longest that a `Retry-After` is followed by the client itself. */
const MAX_RETRY_PAUSE_MS = 5_000;

/** The longest that a timer of the platform can run. */
const MAX_TIMER_MS = 2 ** 31 - 1;

export function openTransport(options: ClientOptions): Transport {
  const {
    timeoutMs = 30_000,
    attempts = 3,
    retryDelayMs = 100,
    fetch = globalThis.fetch,
  } = options;

  return async <T>(call: Call) => {
    const most = call.method === "GET" ? Math.max(1, attempts) : 1;
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await send<T>(call);
      } catch (error) {
        const pauseMs = pauseAfter(error, retryDelayMs * 2 ** (attempt - 1));
        if (attempt >= most || pauseMs === undefined) throw error;
        await sleep(pauseMs, call.signal);
      }
    }
  };

  async function send<T>(call: Call): Promise<Answer<T>> {
    const { url, headers } = requestOf(options, call);
    const limitMs = Math.min(Math.ceil(timeoutMs + (call.patienceMs ?? 0)), MAX_TIMER_MS);
    const timeout = AbortSignal.timeout(limitMs);
    const signal = call.signal ? AbortSignal.any([call.signal, timeout]) : timeout;
    // What has no JSON form is the caller's fault, and says so itself: a TypeError, as of a BigInt.
    const body = call.body === undefined ? undefined : JSON.stringify(call.body);

    let response: Response;
    let text: string;
    try {
      response = await fetch(url, {
        method: call.method,
        headers,
        signal,
        ...(body === undefined ? {} : { body }),
      });
      text = await response.text();
    } catch (error) {
      call.signal?.throwIfAborted();
      const why = timeout.aborted ? `no answer within ${limitMs} ms` : reasonOf(error);
      throw new MillraceConnectionError(call.method, url, why, { cause: error });
    }

    if (response.ok || (call.accept?.includes(response.status) && !isProblem(response))) {
      return { status: response.status, headers: response.headers, data: parse(text) as T };
    }
    throw apiErrorOf(response, text);
  }
}

/** Where a call goes, and with which headers. */
export function requestOf(
  { baseUrl = "http://127.0.0.1:8080", headers = {} }: ClientOptions,
  call: Call,
): { readonly url: string; readonly headers: Record<string, string> } {
  const url = `${baseUrl.replace(/\/+$/, "")}${call.path}${queryString(call.query)}`;
  return { url, headers: headersOf(call, headers) };
}

/** What an answer that is none stands for. */
export function apiErrorOf(response: Response, text: string): MillraceApiError {
  return new MillraceApiError(problemOf(response, parse(text)), retryAfterSeconds(response));
}

function queryString(query: Call["query"] = {}): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined) continue;
    parameters.set(name, Array.isArray(value) ? value.join(",") : String(value));
  }
  return parameters.size > 0 ? `?${parameters.toString()}` : "";
}

function headersOf(call: Call, common: Readonly<Record<string, string>>): Record<string, string> {
  const headers: Record<string, string> = {
    accept: `application/json, ${PROBLEM_MEDIA_TYPE}`,
    ...common,
  };
  if (call.body !== undefined) headers["content-type"] = "application/json";
  for (const [name, value] of Object.entries(call.headers ?? {})) {
    if (value !== undefined) headers[name] = value;
  }
  return headers;
}

function parse(text: string): unknown {
  if (text === "") return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function isProblem(response: Response): boolean {
  return response.headers.get("content-type")?.startsWith(PROBLEM_MEDIA_TYPE) ?? false;
}

/** The problem in an answer, or one made up for what a proxy or another server says. */
function problemOf(response: Response, data: unknown): ProblemDetails {
  const parsed = ProblemDetails.safeParse(data);
  if (parsed.success) return parsed.data;
  const said = typeof data === "string" ? data : (JSON.stringify(data) ?? "no body");
  return {
    type: "about:blank",
    title: response.statusText || `HTTP ${response.status}`,
    status: response.status,
    detail: said.slice(0, 500),
    code: `HTTP_${response.status}`,
  };
}

function retryAfterSeconds(response: Response): number | undefined {
  const value = Number(response.headers.get("retry-after") ?? Number.NaN);
  return Number.isFinite(value) && value >= 0 ? value : undefined;
}

/** Milliseconds to wait before the same GET again; `undefined` when that would not help. */
export function pauseAfter(error: unknown, backoffMs: number): number | undefined {
  const jittered = backoffMs * (0.5 + Math.random() / 2);
  if (error instanceof MillraceConnectionError) return jittered;
  if (!(error instanceof MillraceApiError)) return undefined;
  if (!RETRIED_STATUSES.includes(error.status)) return undefined;
  const askedMs = (error.retryAfterSeconds ?? 0) * 1_000;
  return Math.min(Math.max(jittered, askedMs), MAX_RETRY_PAUSE_MS);
}

/** Rejects with the signal's reason when it is aborted. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", onAbort);
      resolve();
    }, ms);
    const onAbort = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    signal?.addEventListener("abort", onAbort, { once: true });
  });
}

export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  // What undici says is "fetch failed"; what the system said is the cause.
  return error.cause instanceof Error ? error.cause.message || error.message : error.message;
}
