import * as z from "zod";
import {
  CancellationTrigger,
  CompensationStep,
  StartTrigger,
  WorkflowDefinition,
} from "./definition.ts";
import { RetryDocument } from "./retry.ts";
import { ChoiceStep } from "./steps/choice.ts";
import { ErrorHandler, Transitions } from "./steps/common.ts";
import { DelayStep } from "./steps/delay.ts";
import { EmitEventStep } from "./steps/emit-event.ts";
import { EndStep } from "./steps/end.ts";
import { EventWaitStep } from "./steps/event-wait.ts";
import { SetStep } from "./steps/set.ts";
import { MapStep, ParallelStep, StepDocument, StepList } from "./steps/step.ts";
import { SubWorkflowStep } from "./steps/sub-workflow.ts";
import { TaskStep } from "./steps/task.ts";

/** What editors show of each part; its names stand in `$defs`. */
const parts = z.registry<{ readonly id: string; readonly description: string }>();

const described: readonly (readonly [z.ZodType, string, string])[] = [
  [StepList, "StepList", "Steps; the first one is where it starts."],
  [StepDocument, "Step", "One step; its type says which fields it has."],
  [TaskStep, "TaskStep", "Calls a task, which a worker runs."],
  [EventWaitStep, "EventWaitStep", "Waits for an event from outside; its output is the event."],
  [DelayStep, "DelayStep", "Waits for a duration, or until a time."],
  [ChoiceStep, "ChoiceStep", "Goes to the first choice that is true, else to the default."],
  [SetStep, "SetStep", "Sets variables of the instance."],
  [ParallelStep, "ParallelStep", "Runs branches side by side."],
  [MapStep, "MapStep", "Runs its steps for each item of a list."],
  [SubWorkflowStep, "SubWorkflowStep", "Starts another workflow."],
  [EmitEventStep, "EmitEventStep", "Publishes an event."],
  [EndStep, "EndStep", "Ends the whole instance."],
  [Transitions, "Transitions", "Where to go next: the first true condition, else the default."],
  [ErrorHandler, "ErrorHandler", "Where to go on an error of one of these names."],
  [RetryDocument, "Retry", "When a failed attempt is tried again."],
  [CompensationStep, "CompensationStep", "Undoes a completed execution of a step."],
  [CancellationTrigger, "CancellationTrigger", "An event that cancels the instance."],
  [StartTrigger, "StartTrigger", "An event that starts an instance."],
];
for (const [schema, id, description] of described) parts.add(schema, { id, description });

/**
 * The shape of a definition document as JSON Schema 2020-12, for editors: a document that names it in
 * `$schema` is completed and checked while it is written. What a schema cannot say, such as targets
 * and expressions, registration checks.
 */
export function definitionJsonSchema(): Readonly<Record<string, unknown>> {
  const { $schema, $defs, ...own } = z.toJSONSchema(WorkflowDefinition, {
    io: "input",
    unrepresentable: "any",
    cycles: "ref",
    metadata: parts,
    override: ({ jsonSchema }) => withoutNoise(jsonSchema),
  }) as Record<string, unknown>;
  return {
    $schema,
    title: "Millrace workflow definition",
    ...own,
    $defs: withoutIds($defs as Readonly<Record<string, object>>),
  };
}

/** The names of parts are no keywords of JSON Schema. */
function withoutIds(definitions: Readonly<Record<string, object>> = {}): object {
  return Object.fromEntries(
    Object.entries(definitions).map(([name, schema]) => [
      name,
      Object.fromEntries(Object.entries(schema).filter(([key]) => key !== "id")),
    ]),
  );
}

/** What zod adds of its own: the safe integers as bounds. */
function withoutNoise(schema: { minimum?: number; maximum?: number }): void {
  if (schema.minimum === Number.MIN_SAFE_INTEGER) delete schema.minimum;
  if (schema.maximum === Number.MAX_SAFE_INTEGER) delete schema.maximum;
}
