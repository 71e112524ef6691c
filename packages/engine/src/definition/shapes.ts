import type { Roots, Shape } from "@millrace/expressions";
import { anything, either, listOf, objectOf, ofType, oneOf, optional } from "@millrace/expressions";
import { instanceChanges, stepChanges } from "../state/status.ts";
import type { Outline, StepOutline } from "./outline.ts";
import { fieldsOf, itemsOf, textOf } from "./outline.ts";
import { shapeOfSchema } from "./schema/shape.ts";

// What is known of the values that expressions read, before there are any: the input by its schema, a
// step by its type. Variables may be set to anything from outside.

/** What the roots are for an expression that stands in no item. */
export function shapesOf(outline: Outline): Roots {
  const { inputSchema } = outline.fields;
  const input = inputSchema === undefined ? anything : shapeOfSchema(inputSchema);
  const views = new Map<string, Shape>();
  const viewOf = (stepId: string): Shape => {
    const step = outline.byId.get(stepId);
    // That there is no such step is reported as such.
    if (step === undefined) return anything;
    const view = views.get(stepId) ?? optional(stepShape(step));
    views.set(stepId, view);
    return view;
  };
  const steps: Shape = { types: ["object"], member: viewOf };
  const variables = ofType("object");
  // Members that these do not have are found by the expressions themselves.
  const state = objectOf({ input, variables, steps }, anything);
  const instance = objectOf({ ...instanceFields, input, state });
  return {
    input,
    variables,
    steps,
    workflow: objectOf({ input, variables, steps, instance }, anything),
    event: eventShape,
    index: ofType("number"),
  };
}

/** What an instance shows of itself; a test holds it to what expressions see. */
const instanceFields: Roots = {
  id: ofType("string"),
  status: oneOf(...Object.keys(instanceChanges)),
  workflowId: ofType("string"),
  workflowVersion: ofType("number"),
  correlationId: ofType("string", "null", "undefined"),
  tenantId: ofType("string", "null", "undefined"),
  userId: ofType("string", "null", "undefined"),
  createdAt: ofType("string"),
  startedAt: ofType("string", "null"),
  cancellation: optional(
    either(
      ofType("null"),
      objectOf({
        reason: ofType("string", "null"),
        requestedBy: ofType("string"),
        requestedAt: ofType("string"),
        source: oneOf("API", "EVENT", "PARENT", "END"),
        eventId: ofType("string", "undefined"),
        shouldCompensate: ofType("boolean"),
      }),
    ),
  ),
};

/** Members that an event does not have are found by the expressions themselves. */
const eventShape = objectOf(
  { id: ofType("string"), pattern: ofType("string"), occurredAt: ofType("string") },
  anything,
);

const errorShape = objectOf({
  kind: ofType("string"),
  type: ofType("string"),
  message: ofType("string"),
  stepId: ofType("string", "null"),
  attempt: ofType("number", "null"),
  details: anything,
});

function stepShape(step: StepOutline): Shape {
  return objectOf({
    status: oneOf(...Object.keys(stepChanges)),
    attempts: ofType("number"),
    error: optional(errorShape),
    output: outputShape(step),
  });
}

function outputShape({ type, fields }: StepOutline): Shape {
  if (type === "EVENT_WAIT") return fields["mode"] === "ALL" ? anything : waitOutput;
  if (type === "EMIT_EVENT") return emittedOutput;
  // They take time or decide, and give nothing.
  if (type === "DELAY" || type === "CHOICE" || type === "SET") return ofType("null", "undefined");
  if (type === "MAP") return optional(listOf(() => anything));
  if (type !== "PARALLEL") return anything;
  const names = itemsOf(fields["branches"]).flatMap((each) => textOf(fieldsOf(each)["name"]) ?? []);
  return optional(objectOf(Object.fromEntries(names.map((name) => [name, anything]))));
}

const emittedOutput = optional(objectOf({ id: ofType("string"), pattern: ofType("string") }));

const waitOutput = optional(
  objectOf({
    id: ofType("string"),
    pattern: ofType("string"),
    payload: anything,
    occurredAt: ofType("string"),
  }),
);
