import { type IncomingMessage, STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import {
  type ErrorCode,
  isErrorCode,
  type Problem,
  PROBLEM_MEDIA_TYPE,
  type ProblemDetails,
  problemDetails,
} from "@millrace/contract";
import type { FastifyReply, FastifyRequest } from "fastify";
import { ApiError } from "./errors.ts";

/**
 * What turns whatever was thrown into an RFC 9457 problem: the only place where an error becomes an
 * answer. Codes of the contract's table pass with their message; what the framework refuses is
 * translated; a database that is away is said to be; all else is INTERNAL, and its message stays in
 * the log.
 */
export function errorAnswers(): ErrorAnswer {
  const logFailure = failureLog();
  return (error, request, reply) => {
    const { problem, headers } = problemOf(
      isOfCaller(error, request) ? endedTooSoon : error,
      request.id,
    );
    if (problem.status >= 500) logFailure(error, problem.code, request);
    answerProblem(problem, headers, request, reply);
  };
}

/** The caller hung up before the end of the body: nothing is wrong on this side. */
function isOfCaller(error: unknown, { raw }: FastifyRequest): boolean {
  return raw.errored !== null && raw.errored === error;
}

const endedTooSoon = new ApiError("INVALID_BODY", "the body ended too soon");

type ErrorAnswer = (error: unknown, request: FastifyRequest, reply: FastifyReply) => void;

/** Calls that fail for one reason in such a distance are of one outage. */
const outageGapMs = 10_000;

/**
 * What is answered 503 is no fault of the call: one line says what is down when it begins, and each call
 * only at `debug`. All else is logged in full.
 */
function failureLog(): (error: unknown, code: string, request: FastifyRequest) => void {
  const lastAt = new Map<string, number>();
  return (error, code, { log }) => {
    if (!isPassing.has(code)) {
      log.error({ err: error, code }, "request failed");
      return;
    }
    const now = performance.now();
    const isNew = now - (lastAt.get(code) ?? -Infinity) > outageGapMs;
    lastAt.set(code, now);
    const reason = error instanceof Error ? error.message : String(error);
    if (isNew) log.warn({ code, reason }, "calls are answered 503 for now");
    else log.debug({ code, reason }, "answered 503");
  };
}

const isPassing: ReadonlySet<string> = new Set(["DATABASE_UNAVAILABLE", "BUSY", "SHUTTING_DOWN"]);

function answerProblem(
  problem: ProblemDetails,
  headers: ProblemAnswer["headers"],
  request: FastifyRequest,
  reply: FastifyReply,
): void {
  if (reply.raw.headersSent) {
    reply.raw.destroy();
    return;
  }
  const answer = () =>
    void reply
      .code(problem.status)
      // A request that no route could be found for has not been through the hooks.
      .headers({ "x-request-id": request.id, ...headers })
      .type(PROBLEM_MEDIA_TYPE)
      // Already text: no serialiser of a route applies to it.
      .serializer((body: unknown) => JSON.stringify(body))
      .send(problem);
  if (problem.code === "PAYLOAD_TOO_LARGE") readOn(request.raw, answer);
  else answer();
}

/** What is still read of a body that is refused, and for how long. */
const readOnBytes = 64 * 1_048_576;
const readOnMs = 5_000;

/**
 * Reads what the caller still sends, within bounds: one that is cut off while it writes may never see
 * the answer, only a broken connection.
 */
function readOn(body: IncomingMessage, then: () => void): void {
  if (body.readableEnded || body.destroyed) {
    then();
    return;
  }
  let left = readOnBytes;
  const count = (chunk: Buffer) => {
    left -= chunk.length;
    if (left < 0) finish();
  };
  const finish = () => {
    clearTimeout(timer);
    body.off("data", count).off("end", finish).off("close", finish);
    then();
  };
  const timer = setTimeout(finish, readOnMs);
  body.on("data", count).once("end", finish).once("close", finish);
}

export interface ProblemAnswer {
  readonly problem: ProblemDetails;
  readonly headers: Readonly<Record<string, string>>;
}

/** The problem that an error stands for. Of an item in a batch it has no request id of its own. */
export function problemOf(error: unknown, requestId?: string): ProblemAnswer {
  const { code, detail, problems, retryAfterSeconds, headers, members } = factsOf(error, requestId);
  return {
    problem: problemDetails(code, detail, {
      ...members,
      ...(problems && { errors: [...problems] }),
      ...(requestId !== undefined && { requestId }),
    }),
    headers: {
      ...headers,
      ...(retryAfterSeconds !== undefined && { "retry-after": String(retryAfterSeconds) }),
    },
  };
}

interface Facts {
  readonly code: ErrorCode;
  readonly detail: string;
  readonly problems?: readonly Problem[] | undefined;
  readonly retryAfterSeconds?: number | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly members?: Readonly<Record<string, unknown>> | undefined;
}

/** What errors of Millrace carry beside their code; see `MillraceError` and `ApiError`. */
interface CodedError extends Error {
  readonly code: string;
  readonly problems?: readonly Problem[];
  readonly retryAfterSeconds?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly members?: Readonly<Record<string, unknown>>;
}

function factsOf(error: unknown, requestId: string | undefined): Facts {
  if (!isCoded(error)) return internal(requestId);
  const translated = TRANSLATED[error.code];
  if (translated) return translated;
  if (!isErrorCode(error.code)) return internal(requestId);
  const { code, message, problems, retryAfterSeconds, headers, members } = error;
  return { code, detail: message, problems, retryAfterSeconds, headers, members };
}

function isCoded(error: unknown): error is CodedError {
  return error instanceof Error && "code" in error && typeof error.code === "string";
}

const BUSY: Facts = {
  code: "BUSY",
  detail: "too much is going on at the moment; what was asked was not promised, ask again",
  retryAfterSeconds: 1,
};

/** What the framework and the store say in terms of their own. */
const TRANSLATED: Readonly<Record<string, Facts>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: {
    code: "PAYLOAD_TOO_LARGE",
    detail: "a body has at most 1 MiB (1,048,576 bytes)",
    // The body may not have been read to its end, so the connection cannot serve another request.
    headers: { connection: "close" },
  },
  FST_ERR_CTP_INVALID_MEDIA_TYPE: {
    code: "UNSUPPORTED_MEDIA_TYPE",
    detail: "bodies are JSON: send content-type: application/json",
  },
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: {
    code: "INVALID_BODY",
    detail: "the body's size is not what Content-Length says",
  },
  FST_ERR_MAX_PARAM_LENGTH: { code: "BAD_ID", detail: "the path holds too long an id" },
  FST_ERR_BAD_URL: { code: "BAD_ID", detail: "the path holds a malformed %-escape" },
  FST_ERR_REQ_ABORTED: { code: "INVALID_BODY", detail: "the body ended too soon" },

  // The store's message names hosts; that is for the log.
  DATABASE_UNAVAILABLE: {
    code: "DATABASE_UNAVAILABLE",
    detail:
      "the database does not answer at the moment; what was asked was not promised, ask again",
    retryAfterSeconds: 1,
  },
  TRANSACTION_CONFLICT: BUSY,
  STATEMENT_TIMEOUT: BUSY,
  BAD_CURSOR: {
    code: "INVALID_CURSOR",
    detail: "the cursor is not one that this list gave out",
  },
};

function internal(requestId: string | undefined): Facts {
  const where = requestId === undefined ? "the log" : `the log, under request ${requestId}`;
  return { code: "INTERNAL", detail: `something went wrong on this side; it is in ${where}` };
}

/** Answers what is no HTTP that could reach a route: there is no request yet, only a socket. */
export function answerClientError(error: NodeJS.ErrnoException, socket: Socket): void {
  if (!socket.writable || error.code === "ECONNRESET") {
    socket.destroy();
    return;
  }
  const status = CLIENT_ERRORS[error.code ?? ""] ?? 400;
  const title = STATUS_CODES[status] ?? "Bad Request";
  const body = JSON.stringify({
    type: "about:blank",
    title,
    status,
    detail: "not readable as HTTP",
  });
  socket.end(
    `HTTP/1.1 ${status} ${title}\r\ncontent-type: ${PROBLEM_MEDIA_TYPE}\r\n` +
      `content-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
  );
}

const CLIENT_ERRORS: Readonly<Record<string, number>> = {
  ERR_HTTP_REQUEST_TIMEOUT: 408,
  HPE_HEADER_OVERFLOW: 431,
};
