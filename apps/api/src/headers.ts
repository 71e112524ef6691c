import { randomUUID } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { BOUNDS } from "@millrace/contract";
import type { FastifyRequest } from "fastify";
import { ApiError } from "./errors.ts";
import type { Caller } from "./runtime.ts";

/** The tenant of those who name none. */
const DEFAULT_TENANT = "default";

interface CallerHints {
  /** The `tenantId` of the body or query. */
  readonly tenantId?: string | undefined;
  /** Whether that is a part of the body or of the query. */
  readonly part?: "body" | "query";
  /** Where it stands there, as a JSON pointer; default `/tenantId`. */
  readonly place?: string;
  /** Who is to stand in the history; default `api`. */
  readonly actor?: string | undefined;
}

/**
 * On whose behalf a request is made: the tenant of the header `Millrace-Tenant`. Where a body or
 * query names a tenant too, it must be the same one; without the header it decides. Who names none
 * stands for the whole installation: instances of any tenant are theirs by id.
 */
export function callerOf(request: FastifyRequest, hints: CallerHints = {}): Caller {
  const { tenantId: named, part = "body", place = "/tenantId", actor = "api" } = hints;
  const header = singleHeader(request, "millrace-tenant", BOUNDS.id);
  if (header !== undefined && named !== undefined && named !== header) {
    const message = `${JSON.stringify(named)} is not the tenant of the header Millrace-Tenant`;
    throw new ApiError(part === "body" ? "INVALID_BODY" : "INVALID_QUERY", message, {
      problems: [{ path: place, code: "BAD_VALUE", message }],
    });
  }
  const given = header ?? named;
  return { tenantId: given ?? DEFAULT_TENANT, isAnyTenant: given === undefined, actor };
}

/** Where a stream goes on. */
export function lastEventIdOf(request: FastifyRequest): string | undefined {
  // A browser that has had no event yet sends none, some others an empty one.
  if (request.headers["last-event-id"] === "") return undefined;
  return singleHeader(request, "last-event-id", BOUNDS.cursor);
}

export function idempotencyKeyOf(request: FastifyRequest): string | undefined {
  return singleHeader(request, "idempotency-key", BOUNDS.key);
}

/**
 * The version that `If-Match` insists on; `undefined` when any will do. A weak tag counts as its
 * version: there is one representation only.
 */
export function ifMatchOf(request: FastifyRequest): number | undefined {
  const header = request.headers["if-match"]?.trim();
  if (header === undefined || header === "*") return undefined;
  const version = /^(?:(?:W\/)?"(\d{1,15})"|(\d{1,15}))$/.exec(header);
  if (version === null) {
    const detail = 'If-Match must be an ETag that was read, as "7", or *';
    throw new ApiError("INVALID_HEADER", detail);
  }
  return Number(version[1] ?? version[2]);
}

export function etagOf({ version }: { readonly version: number }): string {
  return `"${version}"`;
}

/** Whether `If-None-Match` names this tag, so that 304 will do. */
export function isKnown(request: FastifyRequest, etag: string): boolean {
  const header = request.headers["if-none-match"];
  return header?.split(",").some((each) => each.trim().replace(/^W\//, "") === etag) ?? false;
}

/** The caller's own request id where it is sane, else a new one. */
export function requestIdOf(request: IncomingMessage): string {
  const header = request.headers["x-request-id"];
  return typeof header === "string" && /^[\w.:+/=-]{1,128}$/.test(header) ? header : randomUUID();
}

function singleHeader(request: FastifyRequest, name: string, most: number): string | undefined {
  const value = request.headers[name];
  if (value === undefined) return undefined;
  // Node joins what was sent more than once with a comma, which is no harm here: it is one odd key.
  const text = String(value).trim();
  if (text === "" || text.length > most || !PRINTABLE.test(text)) {
    const detail = `${name} must be 1 to ${most} printable ASCII characters`;
    throw new ApiError("INVALID_HEADER", detail);
  }
  return text;
}

const PRINTABLE = /^[\x20-\x7e]+$/;
