import { STATUS_CODES } from "node:http";
import {
  CancellationTrigger,
  CancelRequest,
  PatchRequest,
  PauseRequest,
  ResumeRequest,
  RetryRequest,
  CompensationStep,
  DefinitionSummary,
  DefinitionView,
  ERROR_CODES,
  type ErrorCode,
  PROBLEM_MEDIA_TYPE,
  ProblemDetails,
  PublishBatchAnswer,
  PublishEventRequest,
  ReadinessView,
  RegisterAnswer,
  RetryDocument,
  StartBatchAnswer,
  StartInstanceRequest,
  StartTrigger,
  StepDocument,
  StepList,
  Transitions,
  WorkflowDefinition,
} from "@millrace/contract";
import type { RouteOptions } from "fastify";
import * as z from "zod";
import { REQUEST_HEADERS, type RequestHeader, RESPONSE_HEADERS } from "./route-config.ts";

type JsonSchema = { [key: string]: unknown };

/** What a call says of itself; see `FastifyContextConfig` for the rest. */
interface RouteSchema {
  readonly operationId?: string;
  readonly summary?: string;
  readonly description?: string;
  readonly tags?: readonly string[];
  readonly params?: z.ZodType;
  readonly querystring?: z.ZodType;
  readonly body?: z.ZodType;
  readonly response?: Readonly<Record<string, z.ZodType>>;
}

/** What every call may answer. */
const COMMON_ERRORS: readonly ErrorCode[] = ["INTERNAL"];
const BODY_ERRORS: readonly ErrorCode[] = [
  "MALFORMED_JSON",
  "INVALID_BODY",
  "PAYLOAD_TOO_LARGE",
  "UNSUPPORTED_MEDIA_TYPE",
];
/** What every call may answer that reads or writes something stored. */
const STORED_ERRORS: readonly ErrorCode[] = [
  "INVALID_QUERY",
  "INVALID_HEADER",
  "DATABASE_UNAVAILABLE",
  "SHUTTING_DOWN",
];

/** Builds the OpenAPI 3.1 document of these routes from their zod schemas. */
export function openApiDocument(routes: readonly RouteOptions[]): object {
  const components: Record<string, JsonSchema> = {};
  const schemaOf = (schema: z.ZodType) => jsonSchemaOf(schema, components);
  const problem = schemaOf(ProblemDetails);

  const paths: Record<string, Record<string, object>> = {};
  for (const route of routes) {
    const path = pathOf(route.url);
    for (const method of [route.method].flat()) {
      if (method === "HEAD") continue;
      (paths[path] ??= {})[method.toLowerCase()] = operation(route, schemaOf, problem);
    }
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Millrace",
      version: "1",
      summary: "Durable workflows: definitions, instances, events.",
      description:
        "Bodies and answers are JSON. Every error is an RFC 9457 problem whose `code` is stable; where there are several faults, `errors` lists them all with a JSON pointer each.",
    },
    servers: [{ url: "/" }],
    tags: TAGS,
    paths,
    components: { schemas: components },
  };
}

const TAGS = [
  { name: "definitions", description: "Workflow definitions and their immutable versions." },
  { name: "instances", description: "Started workflows: start, read, wait, list, cancel." },
  { name: "events", description: "Facts from outside that waits, cancels and starts listen for." },
  { name: "calendars", description: "Working hours and holidays, for delays that count by them." },
  {
    name: "limits",
    description:
      "How many instances run at once: of all, of a tenant, of a workflow, of a user; set while they run.",
  },
  {
    name: "dead letters",
    description: "Steps that killed their workers: list, show, retry, discard.",
  },
  {
    name: "schedules",
    description: "Instances that are started by the clock: make, change, pause, trigger, backfill.",
  },
  { name: "webhooks", description: "Whom lifecycle events are sent to." },
  { name: "operations", description: "Health, readiness, metrics and this document." },
];

/** A route's path in OpenAPI's form. Fastify writes a colon that is meant as such twice. */
export function pathOf(url: string): string {
  return url.replaceAll(/(?<!:):(\w+)/g, "{$1}").replaceAll("::", ":");
}

function operation(
  { schema = {}, config = {}, url }: RouteOptions,
  schemaOf: (schema: z.ZodType) => JsonSchema,
  problem: JsonSchema,
): object {
  const { operationId, summary, description, tags, params, querystring, body, response } =
    schema as RouteSchema;
  const bodySchema = config.body ?? body;
  const querySchema = config.query ?? querystring;
  const isStored = url.startsWith("/v1/");
  const headers: readonly RequestHeader[] = [
    ...(isStored ? (["Millrace-Tenant"] as const) : []),
    "X-Request-Id",
    ...(config.requestHeaders ?? []),
  ];
  const errors: readonly ErrorCode[] = [
    ...COMMON_ERRORS,
    ...(bodySchema ? BODY_ERRORS : []),
    ...(params ? (["BAD_ID"] as const) : []),
    ...(isStored ? STORED_ERRORS : []),
    ...(config.errors ?? []),
  ];
  return {
    operationId,
    summary,
    description,
    tags,
    parameters: [
      ...(params ? parametersOf("path", schemaOf(params)) : []),
      ...(querySchema ? parametersOf("query", schemaOf(querySchema)) : []),
      ...headers.map((name) => ({
        name,
        in: "header",
        description: REQUEST_HEADERS[name],
        schema: { type: "string" },
      })),
    ],
    ...(bodySchema && {
      requestBody: {
        required: !bodySchema.safeParse(undefined).success,
        content: { "application/json": { schema: schemaOf(bodySchema) } },
      },
    }),
    responses: {
      ...successes(response ?? {}, config, schemaOf),
      ...failures(errors, problem),
    },
  };
}

const withoutBody: ReadonlySet<string> = new Set(["204", "304"]);

function successes(
  response: Readonly<Record<string, z.ZodType>>,
  { mediaType = "application/json", responseHeaders = [] }: NonNullable<RouteOptions["config"]>,
  schemaOf: (schema: z.ZodType) => JsonSchema,
): Record<string, object> {
  const headers = Object.fromEntries(
    responseHeaders.map((name) => [
      name,
      { description: RESPONSE_HEADERS[name], schema: { type: "string" } },
    ]),
  );
  return Object.fromEntries(
    Object.entries(response).map(([status, schema]) => [
      status,
      {
        description: schema.description ?? STATUS_CODES[status] ?? "Done",
        ...(responseHeaders.length > 0 && { headers }),
        ...(!withoutBody.has(status) && { content: { [mediaType]: { schema: schemaOf(schema) } } }),
      },
    ]),
  );
}

/** One response per status, which says which codes it stands for. */
function failures(errors: readonly ErrorCode[], problem: JsonSchema): Record<string, object> {
  const codes: Record<string, ErrorCode[]> = {};
  for (const code of new Set(errors)) (codes[ERROR_CODES[code].status] ??= []).push(code);
  return Object.fromEntries(
    Object.entries(codes).map(([status, each]) => [
      status,
      {
        description: each.map((code) => `\`${code}\`: ${ERROR_CODES[code].title}`).join("; "),
        content: { [PROBLEM_MEDIA_TYPE]: { schema: problem } },
      },
    ]),
  );
}

function parametersOf(place: "path" | "query", schema: JsonSchema): object[] {
  const properties = (schema["properties"] ?? {}) as Readonly<Record<string, JsonSchema>>;
  const required = (schema["required"] ?? []) as readonly string[];
  return Object.entries(properties).map(([name, { description, ...property }]) => ({
    name,
    in: place,
    required: place === "path" || required.includes(name),
    ...(description !== undefined && { description }),
    schema: property,
  }));
}

/** Names, in the document, of schemas that carry none themselves. */
const NAMED: Readonly<Record<string, z.ZodType>> = {
  WorkflowDefinition,
  CompensationStep,
  CancellationTrigger,
  StartTrigger,
  StepList,
  Step: StepDocument,
  Retry: RetryDocument,
  Transitions,
  RegisterAnswer,
  DefinitionSummary,
  DefinitionView,
  StartInstanceRequest,
  StartBatchAnswer,
  CancelRequest,
  PatchRequest,
  PauseRequest,
  ResumeRequest,
  RetryRequest,
  PublishEventRequest,
  PublishBatchAnswer,
  ReadinessView,
};
for (const [id, schema] of Object.entries(NAMED)) {
  if (!z.globalRegistry.has(schema)) z.globalRegistry.add(schema, { id });
}

/**
 * A zod schema as JSON Schema, in which those that have a name are references to `components`.
 *
 * @throws When a schema refers to itself and has no name.
 */
function jsonSchemaOf(schema: z.ZodType, components: Record<string, JsonSchema>): JsonSchema {
  const {
    $schema: _,
    $defs = {},
    ...own
  } = z.toJSONSchema(schema, {
    io: "input",
    unrepresentable: "any",
    cycles: "ref",
    override: ({ jsonSchema }) => withoutNoise(jsonSchema),
  }) as JsonSchema;
  for (const [name, part] of Object.entries($defs as Readonly<Record<string, JsonSchema>>)) {
    if (name.startsWith("__")) throw new Error(`a recursive schema has no name: see NAMED`);
    components[name] ??= withMovedRefs(withoutId(part)) as JsonSchema;
  }

  const id = own["id"];
  if (typeof id !== "string") return withMovedRefs(own) as JsonSchema;
  components[id] ??= withMovedRefs(withoutId(own)) as JsonSchema;
  return { $ref: `#/components/schemas/${id}` };
}

/** What zod adds of its own: half a kilobyte of pattern beside a format, and the safe integers. */
function withoutNoise(schema: JsonSchema): void {
  if (schema["format"] === "date-time") delete schema["pattern"];
  if (schema["minimum"] === Number.MIN_SAFE_INTEGER) delete schema["minimum"];
  if (schema["maximum"] === Number.MAX_SAFE_INTEGER) delete schema["maximum"];
}

function withoutId(schema: JsonSchema): JsonSchema {
  return Object.fromEntries(Object.entries(schema).filter(([key]) => key !== "id"));
}

function withMovedRefs(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withMovedRefs);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, each]) => [
      key,
      key === "$ref" && typeof each === "string"
        ? each.replace(/^#\/\$defs\//, "#/components/schemas/")
        : withMovedRefs(each),
    ]),
  );
}
