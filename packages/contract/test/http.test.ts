import { describe, expect, test } from "vitest";
import * as z from "zod";
import {
  BatchRequest,
  batchItemsOf,
  CancelRequest,
  ERROR_CODES,
  type ErrorCode,
  GetInstanceQuery,
  isErrorCode,
  isReservedPattern,
  isSettled,
  ListInstancesQuery,
  parseJson,
  parseWith,
  PatchRequest,
  problemDetails,
  ProblemDetails,
  problemTypeOf,
  PublishEventRequest,
  StartInstanceRequest,
  variableFiltersOf,
} from "@millrace/contract";
import * as contract from "@millrace/contract";

const codesOf = (schema: z.ZodType, value: unknown) =>
  (parseJson(schema, value).problems ?? []).map(({ code, path }) => [code, path]);

describe("bodies", () => {
  test("a full start request parses", () => {
    const request = {
      workflowId: "order_processing",
      version: 3,
      input: { orderId: "o-1" },
      correlationId: "c",
      priority: -1000,
      deadline: "2026-01-31T12:00:00Z",
      tenantId: "t",
      userId: "u",
      metadata: { a: [1] },
      startAt: "2026-01-31T12:00:00.123+02:00",
    };

    expect(parseJson(StartInstanceRequest, request)).toEqual({ data: request });
  });

  test.each([
    [StartInstanceRequest, {}, [["MISSING_FIELD", "/workflowId"]]],
    [
      StartInstanceRequest,
      { workflowId: "a b", priority: 1001, deadline: "tomorrow", inputs: 1 },
      [
        ["BAD_FORMAT", "/workflowId"],
        ["OUT_OF_RANGE", "/priority"],
        ["BAD_FORMAT", "/deadline"],
        ["UNKNOWN_FIELD", "/inputs"],
      ],
    ],
    [
      StartInstanceRequest,
      { workflowId: "w", startAt: "2026-01-31T12:00:00" },
      [["BAD_FORMAT", "/startAt"]],
    ],
    [StartInstanceRequest, { workflowId: "w", metadata: [] }, [["WRONG_TYPE", "/metadata"]]],
    [PublishEventRequest, { pattern: "a.b" }, [["MISSING_FIELD", "/payload"]]],
    [PublishEventRequest, { pattern: "a.*", payload: null }, [["BAD_FORMAT", "/pattern"]]],
    [PublishEventRequest, { pattern: "a..b", payload: null }, [["BAD_FORMAT", "/pattern"]]],
    [PublishEventRequest, { pattern: "a", payload: "\0" }, [["BAD_CHARACTER", "/payload"]]],
    [
      CancelRequest,
      { reason: "", shouldCompensate: "no" },
      [
        ["TOO_SHORT", "/reason"],
        ["WRONG_TYPE", "/shouldCompensate"],
      ],
    ],
    [PatchRequest, { variables: {} }, [["UNKNOWN_FIELD", "/variables"]]],
    [BatchRequest, [], [["TOO_SHORT", ""]]],
    [BatchRequest, { events: [] }, [["BAD_VALUE", ""]]],
  ] as const)("a bad body is refused with every fault: %#", (schema, value, expected) => {
    expect(codesOf(schema, value)).toEqual(expected);
  });

  test("a batch is a list or an object with items, whatever the items are", () => {
    expect(batchItemsOf(BatchRequest.parse([1, {}]))).toEqual([1, {}]);
    expect(batchItemsOf(BatchRequest.parse({ items: [null] }))).toEqual([null]);
  });
});

describe("queries", () => {
  test("lists come repeated, separated by commas, or both; numbers come as text", () => {
    const { data } = parseWith(ListInstancesQuery, {
      status: ["RUNNING,FAILED", "PAUSED"],
      limit: "500",
      workflowVersion: "2",
    });

    expect(data).toEqual({
      status: ["RUNNING", "FAILED", "PAUSED"],
      limit: 500,
      workflowVersion: 2,
    });
  });

  test("a value of a list is named by its place", () => {
    const { problems } = parseWith(ListInstancesQuery, { status: "RUNNING,FAILDE", limit: "501" });

    expect(problems?.map(({ code, path }) => [code, path])).toEqual([
      ["BAD_VALUE", "/status/1"],
      ["OUT_OF_RANGE", "/limit"],
    ]);
  });

  test("wait takes fractions of seconds and is bounded", () => {
    expect(parseWith(GetInstanceQuery, { wait: "0.5" }).data).toEqual({ wait: 0.5 });
    expect(parseWith(GetInstanceQuery, { wait: "301" }).problems?.[0]?.code).toBe("OUT_OF_RANGE");
    expect(parseWith(GetInstanceQuery, { wait: "soon" }).problems?.[0]?.code).toBe("WRONG_TYPE");
  });

  test("filters on variables are told from the named parameters", () => {
    const query = { status: "RUNNING", "variables.a.b": "1", "variables.c": ["true", "null"] };

    expect(variableFiltersOf(query)).toEqual({
      rest: { status: "RUNNING" },
      filters: [
        { path: ["a", "b"], json: "1" },
        { path: ["c"], json: "true" },
        { path: ["c"], json: "null" },
      ],
    });
  });
});

describe("problems", () => {
  test("every code has an error status, a title and a type of its own", () => {
    const codes = Object.keys(ERROR_CODES).filter(isErrorCode);

    expect(new Set(codes.map(problemTypeOf)).size).toBe(codes.length);
    for (const code of codes) {
      expect(code).toMatch(/^[A-Z][A-Z_]*$/);
      expect(ERROR_CODES[code].status).toBeGreaterThanOrEqual(400);
      expect(ERROR_CODES[code].title).not.toBe("");
    }
  });

  test("what is no code of the table is not taken for one", () => {
    expect(isErrorCode("toString")).toBe(false);
    expect(isErrorCode("NOPE" satisfies string)).toBe(false);
  });

  test("a problem has the members of RFC 9457, its code, and what is added", () => {
    const code: ErrorCode = "INVALID_DEFINITION";
    const errors = [{ path: "/id", code: "MISSING_FIELD", message: "m" }];

    const problem = problemDetails(code, "1 problem", { errors, requestId: "r" });

    expect(problem).toEqual({
      type: "urn:millrace:problem:invalid-definition",
      title: "Invalid workflow definition",
      status: 422,
      detail: "1 problem",
      code,
      errors,
      requestId: "r",
    });
    expect(ProblemDetails.parse(problem)).toEqual(problem);
  });
});

test.each(["workflow", "workflow.started", "workflow.a.b"])("%s is reserved", (pattern) => {
  expect(isReservedPattern(pattern)).toBe(true);
  expect(isReservedPattern(`x.${pattern}`)).toBe(false);
  expect(isReservedPattern("workflows.started")).toBe(false);
});

test("settled is ended, and compensated where there is something to compensate", () => {
  const running = { status: "IN_PROGRESS" } as contract.CompensationView;
  const done = { status: "COMPLETED_WITH_ERRORS" } as contract.CompensationView;

  expect(isSettled({ status: "RUNNING", compensation: null })).toBe(false);
  expect(isSettled({ status: "COMPLETED", compensation: null })).toBe(true);
  expect(isSettled({ status: "CANCELLED", compensation: running })).toBe(false);
  expect(isSettled({ status: "FAILED", compensation: done })).toBe(true);
});

test.each([
  ["ok", [["/tasks/a", "WRONG_TYPE", "expected an object or an array, got a string"]]],
  [{ outptu: 1 }, [["/tasks/a/outptu", "UNKNOWN_FIELD", expect.stringContaining("output")]]],
  [
    [{ output: 1 }, { error: "no" }],
    [["/tasks/a/1/error", "WRONG_TYPE", "expected an object, got a string"]],
  ],
])("a mocked result %j is told where and what it is to be", (result, problems) => {
  const { problems: found = [] } = contract.parseJson(contract.Scenario, { tasks: { a: result } });

  expect(found.map(({ path, code, message }) => [path, code, message])).toEqual(problems);
});

test("every schema has a JSON Schema, as OpenAPI and editors need it", () => {
  const schemas = Object.values<unknown>(contract).filter((each) => each instanceof z.ZodType);

  expect(schemas.length).toBeGreaterThan(40);
  for (const schema of schemas) {
    for (const io of ["input", "output"] as const) {
      expect(z.toJSONSchema(schema, { io, unrepresentable: "any" })).toBeTypeOf("object");
    }
  }
});
