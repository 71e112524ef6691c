import { type ErrorCode, jsonFaults, parseWith, type Problem } from "@millrace/contract";
import type { FastifySchemaCompiler } from "fastify";
import * as z from "zod";
import { ApiError } from "./errors.ts";

const PARTS: Readonly<Record<string, { readonly code: ErrorCode; readonly detail: string }>> = {
  params: { code: "BAD_ID", detail: "the path names no possible id" },
  querystring: { code: "INVALID_QUERY", detail: "the query is not what this call takes" },
  body: { code: "INVALID_BODY", detail: "the body is not what this call takes" },
};

/** Checks one part of a request with its schema; every fault of it is in the problem. */
export function parsePart<T>(part: string, schema: z.ZodType<T>, value: unknown): T {
  const parsed = parseWith(schema, value);
  // A body has been through the door; %00 in a path or query has not.
  const faults = part === "body" ? [] : jsonFaults(value);
  if (!parsed.problems && faults.length === 0) return parsed.data;
  throw refusal(part, [...faults, ...(parsed.problems ?? [])]);
}

export function refusal(part: string, problems: readonly Problem[]): ApiError {
  const { code, detail } = PARTS[part] ?? { code: "INVALID_BODY", detail: `bad ${part}` };
  return new ApiError(code, detail, { problems });
}

/** Fastify's way to `parsePart`. */
export const validatorCompiler: FastifySchemaCompiler<z.ZodType> = ({ schema, httpPart = "" }) => {
  return (value: unknown) => {
    try {
      // Fastify makes null of a body that is absent.
      return { value: parsePart(httpPart, schema, value === null ? undefined : value) };
    } catch (error) {
      return { error: error as Error };
    }
  };
};

/** Of a call that takes no query. */
export const NoQuery = z.strictObject(
  {},
  {
    error: (issue) =>
      issue.code === "unrecognized_keys"
        ? issue.keys.map((key) => `this call has no query parameter "${key}"`).join("\n")
        : undefined,
  },
);
