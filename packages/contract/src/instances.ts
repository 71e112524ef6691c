import * as z from "zod";
import { BOUNDS } from "./bounds.ts";
import { DefinitionVersion } from "./definitions.ts";
import { InstanceView, StepExecutionView } from "./instance-view.ts";
import { Json, JsonRecord } from "./json.ts";
import { listOf } from "./list-of.ts";
import { pageOf, pageQueryFields } from "./pagination.ts";
import { ProblemDetails } from "./problem.ts";
import { strict } from "./schema-problems.ts";
import { INSTANCE_STATUSES, STEP_STATUSES } from "./statuses.ts";
import {
  DefinitionId,
  InstanceId,
  Key,
  Priority,
  StepId,
  StepPath,
  TenantId,
  Timestamp,
  WorkflowId,
} from "./text.ts";

export const StartInstanceRequest = strict("a start request", {
  workflowId: DefinitionId,
  /** Default: the latest version. */
  version: DefinitionVersion.optional(),
  input: Json.optional(),
  correlationId: Key.optional(),
  priority: Priority.optional(),
  /** Only orders the queue of instances that wait for admission. */
  deadline: Timestamp.optional(),
  tenantId: TenantId.optional(),
  userId: Key.optional(),
  metadata: JsonRecord.optional(),
  startAt: Timestamp.optional(),
});
export type StartInstanceRequest = z.infer<typeof StartInstanceRequest>;

/** One result per item, in the order of the request: either the instance or what was wrong. */
export const StartBatchAnswer = z.object({
  results: z.array(
    z.object({
      index: z.int(),
      status: z.int().meta({ description: "the HTTP status this item alone would have got" }),
      instance: InstanceView.optional(),
      replayed: z
        .boolean()
        .optional()
        .meta({ description: "the Idempotency-Key had started it before: status 200" }),
      problem: ProblemDetails.optional(),
    }),
  ),
});
export type StartBatchAnswer = z.infer<typeof StartBatchAnswer>;

/** Seconds to wait until the instance is settled, as in `?wait=30`. */
const WaitSeconds = z.coerce.number<string | number>().min(0).max(BOUNDS.waitSeconds);

/** A part of an instance: what the instance has of its own, and the way to what is inside of it. */
const Field = z
  .string()
  .min(1)
  .max(BOUNDS.expression)
  .refine((field) => Object.hasOwn(InstanceView.shape, field.split(".", 1)[0] ?? ""), {
    error: "is no part of an instance: its parts begin as those of the whole answer do",
  });

export const GetInstanceQuery = strict("an instance query", {
  wait: WaitSeconds.optional().meta({ description: "seconds to wait for the instance to settle" }),
  fields: listOf(Field, 100)
    .optional()
    .meta({ description: "parts to answer, as `status,state.variables.total`" }),
});
export type GetInstanceQuery = z.infer<typeof GetInstanceQuery>;

export const INSTANCE_ORDERS = ["createdAt", "-createdAt", "updatedAt", "-updatedAt"] as const;
export type InstanceOrder = (typeof INSTANCE_ORDERS)[number];

/** Every execution of a step, or of all that is inside a branch or an item. */
export const ListStepsQuery = strict("a query for steps", {
  path: StepPath.optional().meta({
    description: "as `ship`, `ship[3]` or `checkout.card.charge`: itself and what is inside it",
  }),
  status: listOf(z.enum(STEP_STATUSES), STEP_STATUSES.length)
    .optional()
    .meta({ description: "any of these, separated by commas" }),
  ...pageQueryFields,
});
export type ListStepsQuery = z.infer<typeof ListStepsQuery>;

export const StepPage = pageOf(StepExecutionView);
export type StepPage = z.infer<typeof StepPage>;

export const instanceFilterFields = {
  ids: listOf(InstanceId, BOUNDS.filterIds)
    .optional()
    .meta({ description: "ids of instances, separated by commas" }),
  status: listOf(z.enum(INSTANCE_STATUSES), INSTANCE_STATUSES.length)
    .optional()
    .meta({ description: "any of these, separated by commas" }),
  workflowId: WorkflowId.optional().meta({ description: "of this workflow" }),
  workflowVersion: z.coerce
    .number<string | number>()
    .pipe(DefinitionVersion)
    .optional()
    .meta({ description: "of this version of it" }),
  correlationId: Key.optional().meta({ description: "with this correlation id" }),
  tenantId: TenantId.optional().meta({
    description: "the caller's own: the list never holds those of another",
  }),
  currentStep: StepPath.optional().meta({
    description: "that are at this step now: its id, or its path inside a branch or an item",
  }),
  waitingFor: z
    .string()
    .min(1)
    .max(BOUNDS.pattern)
    .optional()
    .meta({ description: "with an open wait for this event pattern" }),
  createdAfter: Timestamp.optional(),
  createdBefore: Timestamp.optional(),
  updatedAfter: Timestamp.optional(),
  updatedBefore: Timestamp.optional(),
} as const;

/**
 * The query of `GET /v1/instances`. Beside the named parameters there may be any number of
 * `variables.<path>=<json>`: take them out with `variableFiltersOf` first.
 */
export const ListInstancesQuery = strict("an instance query", {
  ...instanceFilterFields,
  order: z
    .enum(INSTANCE_ORDERS)
    .optional()
    .meta({ description: "a minus: the latest first; -createdAt where none is given" }),
  ...pageQueryFields,
});
export type ListInstancesQuery = z.infer<typeof ListInstancesQuery>;

export const InstancePage = pageOf(InstanceView);
export type InstancePage = z.infer<typeof InstancePage>;

/** For the history. */
export const whoAndWhy = {
  reason: z.string().min(1).max(BOUNDS.reason).optional(),
  requestedBy: Key.optional(),
};

export const CancelRequest = strict("a cancel request", {
  ...whoAndWhy,
  /** Default true. */
  shouldCompensate: z.boolean().optional(),
});
export type CancelRequest = z.infer<typeof CancelRequest>;

export const PauseRequest = strict("a pause request", {
  /** Resumes by itself at this time. */
  until: Timestamp.optional(),
  ...whoAndWhy,
});
export type PauseRequest = z.infer<typeof PauseRequest>;

export const ResumeRequest = strict("a resume request", whoAndWhy);
export type ResumeRequest = z.infer<typeof ResumeRequest>;

export const PromoteRequest = strict("a promotion", whoAndWhy);
export type PromoteRequest = z.infer<typeof PromoteRequest>;

export const RetryRequest = strict("a retry request", {
  /** Of the definition's own list. Default: where it failed. */
  fromStepId: StepId.optional(),
  ...whoAndWhy,
});
export type RetryRequest = z.infer<typeof RetryRequest>;

/** A JSON merge patch (RFC 7396): null removes a member. */
export const PatchRequest = strict("a patch", {
  state: strict("state", { variables: JsonRecord.optional() }).optional(),
  priority: Priority.optional(),
  deadline: Timestamp.nullable().optional(),
  metadata: JsonRecord.nullable().optional(),
});
export type PatchRequest = z.infer<typeof PatchRequest>;

export interface VariableFilter {
  /** Segments of the path below `variables`. */
  readonly path: readonly string[];
  /** The JSON text that it is compared with. */
  readonly json: string;
}

/** Parts a query into `variables.<path>` filters and the rest. A repeated filter counts each time. */
export function variableFiltersOf(query: Readonly<Record<string, unknown>>): {
  readonly filters: readonly VariableFilter[];
  readonly rest: Readonly<Record<string, unknown>>;
} {
  const filters: VariableFilter[] = [];
  const rest: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(query)) {
    if (!key.startsWith("variables.")) {
      rest[key] = value;
      continue;
    }
    const path = key.split(".").slice(1);
    for (const each of [value].flat()) filters.push({ path, json: String(each) });
  }
  return { filters, rest };
}
