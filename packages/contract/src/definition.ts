import * as z from "zod";
import { BOUNDS } from "./bounds.ts";
import { Json, JsonRecord, parseJson } from "./json.ts";
import { type Problem, strict } from "./schema-problems.ts";
import { RetryDocument } from "./retry.ts";
import { Variables } from "./steps/set.ts";
import { StepList } from "./steps/step.ts";
import {
  DefinitionId,
  Description,
  DurationText,
  Expression,
  Name,
  PatternText,
  Priority,
  Reference,
  StepId,
  Tags,
} from "./text.ts";

/** Undoes one completed execution of the step that it is for. */
export const CompensationStep = strict("a compensation step", {
  stepId: StepId,
  compensationFor: StepId,
  type: z.literal("TASK"),
  name: Name.optional(),
  description: Description.optional(),
  taskId: Reference,
  /** A value with expressions, or one expression. */
  input: Json.optional(),
  condition: Expression.optional(),
  retry: RetryDocument.optional(),
  timeout: DurationText.optional(),
});
export type CompensationStep = z.infer<typeof CompensationStep>;

/** An event that cancels the instance, whatever it is doing. */
export const CancellationTrigger = strict("a cancellation trigger", {
  eventPattern: PatternText,
  eventCondition: Expression.optional(),
  reason: Expression,
  /** Default true. */
  shouldCompensate: z.boolean().optional(),
});
export type CancellationTrigger = z.infer<typeof CancellationTrigger>;

/** An event that starts an instance. */
export const StartTrigger = strict("a start trigger", {
  eventPattern: PatternText,
  eventCondition: Expression.optional(),
  /** A value with expressions; default: the event's payload. */
  input: Json.optional(),
  correlationId: Expression.optional(),
});
export type StartTrigger = z.infer<typeof StartTrigger>;

export const WorkflowDefinition = strict("a workflow definition", {
  /** For editors; means nothing to Millrace. */
  $schema: Name.optional(),
  id: DefinitionId,
  name: Name.optional(),
  description: Description.optional(),
  /** JSON Schema 2020-12 of the instance's input. */
  inputSchema: z
    .union([JsonRecord, z.boolean()], { error: "must be a JSON Schema: an object or a boolean" })
    .optional(),
  /** What the instance's variables are at first. */
  variables: Variables.optional(),
  /** The first one is where an instance starts. */
  steps: StepList,
  compensationSteps: z.array(CompensationStep).max(BOUNDS.steps).optional(),
  cancellationTriggers: z.array(CancellationTrigger).max(BOUNDS.triggers).optional(),
  startTriggers: z.array(StartTrigger).max(BOUNDS.triggers).optional(),
  /** A value with expressions; default: the output of the step that completed last. */
  output: Json.optional(),
  /** Of the whole instance, counted from its creation. */
  timeout: DurationText.optional(),
  retry: RetryDocument.optional(),
  /** Default: true when there are compensation steps. */
  compensateOnFailure: z.boolean().optional(),
  concurrency: strict("concurrency", {
    limit: z.int().min(1).max(BOUNDS.admitted),
    queue: z.enum(["FIFO", "PRIORITY", "DEADLINE"]).optional(),
    maxQueued: z.int().min(0).max(BOUNDS.admitted).optional(),
  }).optional(),
  priority: Priority.optional(),
  tags: Tags.optional(),
});
export type WorkflowDefinition = z.infer<typeof WorkflowDefinition>;

export type ParsedDocument =
  | { readonly document: WorkflowDefinition; readonly problems?: undefined }
  | { readonly document?: undefined; readonly problems: readonly Problem[] };

/**
 * Checks the shape of a definition document and reports every fault of it at once. Names,
 * expressions, durations and targets are the engine's to check.
 */
export function parseDocument(value: unknown): ParsedDocument {
  const { data, problems } = parseJson(WorkflowDefinition, value);
  return problems ? { problems } : { document: data };
}
