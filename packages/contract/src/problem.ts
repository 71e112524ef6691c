import * as z from "zod";
import { Problem } from "./schema-problems.ts";

interface ErrorCodeEntry {
  readonly status: number;
  readonly title: string;
}

/** Every error that the API answers with: its code, its HTTP status, its title. The only such table. */
export const ERROR_CODES = {
  BAD_ID: { status: 400, title: "Malformed id" },
  INVALID_BODY: { status: 400, title: "Invalid request body" },
  INVALID_QUERY: { status: 400, title: "Invalid query parameters" },
  INVALID_HEADER: { status: 400, title: "Invalid request header" },
  INVALID_CURSOR: { status: 400, title: "Invalid cursor" },
  MALFORMED_JSON: { status: 400, title: "Malformed JSON" },
  UNAUTHENTICATED: { status: 401, title: "Authentication required" },
  FORBIDDEN: { status: 403, title: "Not allowed" },
  ROUTE_NOT_FOUND: { status: 404, title: "No such route" },
  WORKFLOW_NOT_FOUND: { status: 404, title: "No such workflow" },
  DEFINITION_NOT_FOUND: { status: 404, title: "No such workflow definition" },
  INSTANCE_NOT_FOUND: { status: 404, title: "No such instance" },
  VERSION_NOT_FOUND: { status: 404, title: "No such version of the instance" },
  DEAD_LETTER_NOT_FOUND: { status: 404, title: "No such dead letter" },
  CALENDAR_NOT_FOUND: { status: 404, title: "No such calendar" },
  LIMIT_NOT_FOUND: { status: 404, title: "No such limit" },
  WEBHOOK_NOT_FOUND: { status: 404, title: "No such webhook" },
  SCHEDULE_NOT_FOUND: { status: 404, title: "No such schedule" },
  METHOD_NOT_ALLOWED: { status: 405, title: "Method not allowed" },
  STATUS_CONFLICT: { status: 409, title: "Not possible in this status" },
  INSTANCE_DAMAGED: { status: 409, title: "The instance's rows disagree" },
  SCHEDULE_EXISTS: { status: 409, title: "There is another schedule of that id" },
  DEAD_LETTER_RESOLVED: { status: 409, title: "The dead letter is resolved already" },
  CALENDAR_EXISTS: { status: 409, title: "There is such a calendar already" },
  TOO_MANY_LIMITS: { status: 409, title: "The tenant has as many limits as it may have" },
  IDEMPOTENCY_CONFLICT: { status: 409, title: "Idempotency key used for another request" },
  PRECONDITION_FAILED: { status: 412, title: "It has changed since it was read" },
  PAYLOAD_TOO_LARGE: { status: 413, title: "Request body too large" },
  UNSUPPORTED_MEDIA_TYPE: { status: 415, title: "Unsupported media type" },
  INVALID_DEFINITION: { status: 422, title: "Invalid workflow definition" },
  INVALID_SCHEDULE: { status: 422, title: "Invalid schedule" },
  INVALID_INPUT: { status: 422, title: "Input does not match the workflow's schema" },
  INVALID_CALENDAR: { status: 422, title: "Invalid calendar" },
  UNKNOWN_STEP: { status: 422, title: "No such step to go on from" },
  RESERVED_PATTERN: { status: 422, title: "Reserved event pattern" },
  PRECONDITION_REQUIRED: { status: 428, title: "If-Match required" },
  TOO_MANY_QUEUED: { status: 429, title: "Too many instances are queued" },
  INTERNAL: { status: 500, title: "Internal error" },
  BUSY: { status: 503, title: "Too many concurrent changes" },
  DATABASE_UNAVAILABLE: { status: 503, title: "Database unavailable" },
  SHUTTING_DOWN: { status: 503, title: "Shutting down" },
} as const satisfies Record<string, ErrorCodeEntry>;
export type ErrorCode = keyof typeof ERROR_CODES;

export const PROBLEM_MEDIA_TYPE = "application/problem+json";

/** An RFC 9457 problem, with the code that programs go by and every fault where there are several. */
export const ProblemDetails = z
  .looseObject({
    type: z.string().meta({ description: "URI of the kind of problem" }),
    title: z.string(),
    status: z.int(),
    detail: z.string(),
    code: z.string(),
    errors: z.array(Problem).optional(),
    instance: z.string().optional().meta({ description: "path of the request" }),
    requestId: z.string().optional(),
  })
  .meta({ id: "ProblemDetails" });
export type ProblemDetails = z.infer<typeof ProblemDetails>;

export function isErrorCode(code: string): code is ErrorCode {
  return Object.hasOwn(ERROR_CODES, code);
}

/** The `type` of a problem: a URN, since no page is published under it. */
export function problemTypeOf(code: ErrorCode): string {
  return `urn:millrace:problem:${code.toLowerCase().replaceAll("_", "-")}`;
}

/** A problem body; `more` adds `errors`, `requestId` and members of the kind's own. */
export function problemDetails(
  code: ErrorCode,
  detail: string,
  more: Partial<Omit<ProblemDetails, "type" | "title" | "status" | "detail" | "code">> = {},
): ProblemDetails {
  const { status, title } = ERROR_CODES[code];
  return { type: problemTypeOf(code), title, status, detail, code, ...more };
}
