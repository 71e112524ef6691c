import { isUtf8 } from "node:buffer";
import { BOUNDS, jsonFaults, parseWith, type Problem, scanJson } from "@millrace/contract";
import type { FastifyInstance, FastifyRequest } from "fastify";
import * as z from "zod";
import { ApiError } from "./errors.ts";

/**
 * The one place where JSON comes in. What passes can be stored, read back unchanged and serialised
 * again: nobody behind the door looks for depth, U+0000, lone surrogates, `__proto__` or numbers that
 * do not survive. A body that cannot have any of these, which is nearly every one, costs a search of
 * its text beside `JSON.parse`.
 */
export function addJsonDoor(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser(JSON_MEDIA_TYPE, { parseAs: "buffer" }, (request, body, done) => {
    try {
      const type = request.headers["content-type"] ?? "";
      const charset = /;\s*charset\s*=\s*"?([^\s";]+)/i.exec(type)?.[1]?.toLowerCase();
      if (charset !== undefined && charset !== "utf-8" && charset !== "utf8") {
        throw new ApiError("UNSUPPORTED_MEDIA_TYPE", `JSON is UTF-8, not ${charset}`);
      }
      const { value, faults } = parseBody(body as Buffer);
      if (faults.length > 0) faultsOf.set(request, faults);
      done(null, value);
    } catch (error) {
      done(error as Error);
    }
  });
  // Only now is it known what the body should be, so that one answer lists all that is wrong.
  app.addHook("preValidation", (request, _, done) => {
    const faults = faultsOfBody(request);
    const isRefused = faults.length > 0 && request.routeOptions.config.body === undefined;
    done(isRefused ? invalidBody([...faults, ...faultsOfShape(request)]) : undefined);
  });
}

const faultsOf = new WeakMap<FastifyRequest, readonly Problem[]>();

/** What keeps a body from being stored, for a route that leaves the body to what is behind it. */
export function faultsOfBody(request: FastifyRequest): readonly Problem[] {
  return faultsOf.get(request) ?? [];
}

function faultsOfShape({ routeOptions, body }: FastifyRequest): readonly Problem[] {
  const schema = routeOptions.schema?.body;
  return schema instanceof z.ZodType ? (parseWith(schema, body).problems ?? []) : [];
}

/** `application/json`, and what is built on it, as `application/merge-patch+json`. */
const JSON_MEDIA_TYPE = /^application\/(?:json|[\w.-]+\+json)(?:\s*;|\s*$)/i;

export interface ParsedBody {
  /** What the body says; `undefined` when it is empty. */
  readonly value: unknown;
  /** What keeps it from being stored, and where. */
  readonly faults: readonly Problem[];
}

/** @throws {ApiError} MALFORMED_JSON; INVALID_BODY for what is nested too deep to go on with. */
export function parseBody(body: Buffer): ParsedBody {
  if (body.length === 0) return { value: undefined, faults: [] };
  if (!isUtf8(body)) throw new ApiError("MALFORMED_JSON", "the body is not UTF-8 text");
  const text = body.toString("utf8");
  if (isTooDeep(text)) throw refusal(text);

  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw refusal(text, error);
  }
  const faults = [
    ...(SUSPECT_TEXT.test(text) ? jsonFaults(value).filter(isOfText) : []),
    ...(SUSPECT_NUMBER.test(text) ? numberFaults(text) : []),
  ];
  return { value, faults };
}

/** What is wrong with a text that should be JSON; for JSON that comes in elsewhere than in a body. */
export function faultsOfJson(text: string): readonly Problem[] {
  try {
    if (text === "") throw new ApiError("MALFORMED_JSON", "there is nothing");
    return parseBody(Buffer.from(text)).faults;
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    const message = `is not JSON: ${error.message}; a text needs its quotes, as "text"`;
    return error.problems ?? [{ path: "", code: "NOT_JSON", message }];
  }
}

/**
 * What a text must hold to have U+0000 or half a surrogate pair in it (neither can stand there as
 * itself), or a key `__proto__`.
 */
const SUSPECT_TEXT = /\\u|__proto__/;

/** A number with so many digits, an exponent or a minus that it may change; or text that looks so. */
const SUSPECT_NUMBER = /(?:^|[:,[\s])(?:-0|-?[\d.]*(?:\d[eE]|[\d.]{16}))/;

/** Of a number too large, which is Infinity by now, the scan knows more. */
function isOfText({ code }: Problem): boolean {
  return code !== "NOT_JSON";
}

function numberFaults(text: string): readonly Problem[] {
  const scan = scanJson(text);
  return "faults" in scan ? scan.faults : [];
}

/** Whether brackets are ever open more than `BOUNDS.depth` deep, in a text that need not be JSON. */
function isTooDeep(text: string): boolean {
  if (text.length <= 2 * BOUNDS.depth) return false;
  let depth = 0;
  let inString = false;
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    if (inString) {
      if (code === BACKSLASH) index += 1;
      else if (code === QUOTE) inString = false;
    } else if (code === QUOTE) {
      inString = true;
    } else if (code === OPEN_BRACE || code === OPEN_BRACKET) {
      depth += 1;
      if (depth > BOUNDS.depth) return true;
    } else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) {
      depth -= 1;
    }
  }
  return false;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;

function refusal(text: string, cause?: unknown): ApiError {
  const scan = scanJson(text);
  if ("faults" in scan) {
    return scan.faults.length > 0
      ? invalidBody(scan.faults)
      : new ApiError("MALFORMED_JSON", "the body is not JSON", { cause });
  }
  const { position, line, column, message } = scan.syntax;
  return new ApiError("MALFORMED_JSON", `line ${line}, column ${column}: ${message}`, {
    cause,
    members: { position, line, column },
  });
}

function invalidBody(problems: readonly Problem[]): ApiError {
  return new ApiError("INVALID_BODY", "the body cannot be stored as it is", { problems });
}
