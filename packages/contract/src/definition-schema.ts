import * as z from "zod";
import {
  CancellationTrigger,
  CompensationStep,
  StartTrigger,
  WorkflowDefinition,
} from "./definition.ts";
import { fieldTexts } from "./definition-fields.ts";
import {
  AWAITED_PATTERN,
  DURATION,
  EMITTED_NAME,
  FORBIDDEN_NAMES,
  INTERVAL,
  LOOKBACK,
  NOT_BLANK,
  PAYLOAD_PATH,
  ROOT_NAMES,
  START_PATTERN,
  UNTIL,
  WORKING_DURATION,
} from "./definition-patterns.ts";
import { RetryDocument } from "./retry.ts";
import { ChoiceStep } from "./steps/choice.ts";
import { ErrorHandler, Transitions } from "./steps/common.ts";
import { DelayStep } from "./steps/delay.ts";
import { EmitEventStep } from "./steps/emit-event.ts";
import { EndStep } from "./steps/end.ts";
import { EventWaitStep } from "./steps/event-wait.ts";
import { SetStep } from "./steps/set.ts";
import type { StepType } from "./steps/step.ts";
import {
  MapStep,
  ParallelStep,
  STEP_TYPES,
  StepDocument,
  StepList,
  WAITING_STEP_TYPES,
} from "./steps/step.ts";
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
  const ownParts = withoutIds($defs as Readonly<Record<string, object>>);
  return {
    $schema,
    title: "Millrace workflow definition",
    ...withTexts("Definition", own),
    $defs: Object.fromEntries(
      Object.entries(ownParts).map(([name, part]) => [
        name,
        withTexts(name, toldApart(name, part)),
      ]),
    ),
  };
}

/**
 * Editors report what is wrong with the type that a step has, and not that it fits none of ten; and
 * what zod or the engine check by a function is written out.
 */
function toldApart(name: string, part: Part): Part {
  if (name !== "Step") return { ...withoutClocks(name, part), ...together[name] };
  const { oneOf: _, ...rest } = part;
  return {
    ...rest,
    type: "object",
    required: ["stepId", "type"],
    properties: { type: { enum: STEP_TYPES } },
    allOf: STEP_TYPES.map((type) => ({
      if: { properties: { type: { const: type } }, required: ["type"] },
      // oxlint-disable-next-line unicorn/no-thenable -- the keyword of JSON Schema
      then: { $ref: `#/$defs/${partOfType[type]}` },
    })),
  };
}

/** Fields that exclude one another. */
const together: Readonly<Record<string, Part>> = {
  DelayStep: {
    oneOf: [{ required: ["duration"] }, { required: ["until"] }],
    allOf: [not("calendarId", "duration", { duration: { not: { pattern: WORKING_DURATION } } })],
  },
  EventWaitStep: {
    oneOf: [{ required: ["eventPattern"] }, { required: ["events"] }],
    allOf: [
      not("events", "eventCondition"),
      not("events", "mode", {
        mode: { const: "ALL" },
        events: { contains: { required: ["to"] } },
      }),
    ],
  },
};

/** Not both fields, or not with these values. */
function not(one: string, other: string, properties: Part = {}): Part {
  return { not: { required: [one, other], properties } };
}

/** Steps that are not queued and that no worker runs have no clocks of that. */
function withoutClocks(name: string, part: Part): Part {
  if (!WAITING_STEP_TYPES.some((type) => partOfType[type] === name)) return part;
  const { scheduleTimeout: _, heartbeatTimeout: __, ...properties } = part["properties"] as Part;
  return { ...part, properties };
}

const partOfType: Readonly<Record<StepType, string>> = {
  TASK: "TaskStep",
  EVENT_WAIT: "EventWaitStep",
  DELAY: "DelayStep",
  CHOICE: "ChoiceStep",
  SET: "SetStep",
  PARALLEL: "ParallelStep",
  MAP: "MapStep",
  SUB_WORKFLOW: "SubWorkflowStep",
  EMIT_EVENT: "EmitEventStep",
  END: "EndStep",
};

type Part = Readonly<Record<string, unknown>>;

const noForbiddenNames: Part = { propertyNames: { not: { enum: FORBIDDEN_NAMES } } };

/** What texts must look like, by the names of their fields as in `fieldTexts`. */
const looks: Readonly<Record<string, Part>> = {
  eventPattern: { pattern: AWAITED_PATTERN },
  "StartTrigger.eventPattern": { pattern: START_PATTERN },
  "EmitEventStep.eventPattern": { pattern: EMITTED_NAME },
  eventPayloadMapping: {
    allOf: [{ ...noForbiddenNames, additionalProperties: { pattern: PAYLOAD_PATH } }],
  },
  variables: { allOf: [noForbiddenNames] },
  itemName: { not: { enum: ROOT_NAMES } },
  ...Object.fromEntries(
    ["timeout", "totalTimeout", "scheduleTimeout", "heartbeatTimeout", "duration"].map((name) => [
      name,
      { pattern: DURATION },
    ]),
  ),
  lookback: { pattern: LOOKBACK },
  until: { pattern: UNTIL },
  initialInterval: { pattern: INTERVAL },
  maxInterval: { pattern: INTERVAL },
  condition: { pattern: NOT_BLANK },
  eventCondition: { pattern: NOT_BLANK },
  when: { pattern: NOT_BLANK },
  inputSchema: { not: { const: false } },
};

/** With what each field means, also those of the objects inside it. */
function withTexts(place: string, part: Part): Part {
  const inside = Object.entries(part).map(([key, value]) => {
    if (key === "properties") return [key, fieldsWithTexts(place, value as Record<string, Part>)];
    if (key === "items" || key === "additionalProperties") {
      return [key, isPart(value) ? withTexts(place, value) : value];
    }
    if (key === "anyOf" && Array.isArray(value)) {
      return [key, value.map((each: Part) => withTexts(place, each))];
    }
    return [key, value];
  });
  return Object.fromEntries(inside) as Part;
}

function fieldsWithTexts(place: string, fields: Readonly<Record<string, Part>>): Part {
  return Object.fromEntries(
    Object.entries(fields).map(([name, part]) => {
      const text = fieldTexts[`${place}.${name}`] ?? fieldTexts[name];
      const look = looks[`${place}.${name}`] ?? looks[name];
      return [name, { ...withTexts(name, part), ...look, ...text }];
    }),
  );
}

function isPart(value: unknown): value is Part {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The names of parts are no keywords of JSON Schema. */
function withoutIds(
  definitions: Readonly<Record<string, object>> = {},
): Readonly<Record<string, Part>> {
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
