/** What editors show of one field. */
export interface FieldText {
  readonly description: string;
  readonly examples?: readonly unknown[];
}

const field = (description: string, ...examples: readonly unknown[]): FieldText => ({
  description,
  ...(examples.length > 0 && { examples }),
});

const expression = "An expression, without ${ }.";
const withExpressions = "A value with expressions in it, written ${ … }.";
const duration = "An ISO 8601 duration; it may hold ${ … }.";

/**
 * What each field of a definition document means, by its name; `Part.name` where it means something
 * else in one part of it. A test demands that every field has its text, and that examples fit.
 */
export const fieldTexts: Readonly<Record<string, FieldText>> = {
  $schema: field("The address of this schema, for editors.", "/schemas/definition.json"),
  id: field(
    "What the workflow is called; other content of the same id is its next version.",
    "order_processing",
  ),
  name: field("A title for people.", "Order processing"),
  description: field("A text for people."),
  inputSchema: field("JSON Schema 2020-12 of the input; a start that does not fit it is refused.", {
    type: "object",
    required: ["orderId"],
    properties: { orderId: { type: "string" } },
  }),
  "Definition.variables": field("What the instance's variables are at first, as they are.", {
    attempts: 0,
  }),
  steps: field("The steps. The first one is where it starts."),
  compensationSteps: field(
    "What undoes completed steps, the latest first, after a cancel or a failure.",
  ),
  cancellationTriggers: field("Events that cancel the instance."),
  startTriggers: field("Events that start an instance."),
  output: field(`${withExpressions} Default: the output of the step that completed last.`, {
    total: "${ steps.price.output.total }",
  }),
  "EndStep.output": field(`The instance's output. ${withExpressions}`, "${ variables.result }"),
  "Definition.timeout": field(`Of the whole instance, from its creation. ${duration}`, "P30D"),
  "Definition.retry": field("The default of its tasks."),
  compensateOnFailure: field(
    "Whether a failure undoes what was done. Default: where there are compensationSteps.",
  ),
  concurrency: field(
    "How many instances of this workflow run at once. The latest version says it for those of all versions.",
  ),
  limit: field("Running instances at most.", 100),
  "concurrency.queue": field(
    "Who is admitted first: the oldest, the one of highest priority, or of the earliest deadline. Default: PRIORITY.",
  ),
  maxQueued: field(
    "Instances that may wait to be admitted; a start beyond them is refused. Default: any number.",
  ),
  priority: field("From -1000 to 1000, the higher one first.", 10),
  tags: field("Words to find it by.", ["shop"]),

  stepId: field("Its id, unique in the whole document.", "reserve_inventory"),
  type: field("What kind of step it is; it decides on the other fields."),
  condition: field(
    `Where it is false the step is SKIPPED and its default transition taken. ${expression}`,
    "input.gift === true",
  ),
  "CompensationStep.condition": field(
    `Evaluated when the plan is made; where it is false the step is left out. ${expression}`,
    "steps.ship.status === 'COMPLETED'",
  ),
  transitions: field("Where to go next. Without any, the branch ends here."),
  onError: field(
    "Where to go on an error, once retries are spent. The first handler that names it is taken.",
  ),
  retry: field(
    "When a failed attempt is tried again. Fields merge with those of the task and the definition.",
  ),
  timeout: field(`What one attempt may take. ${duration}`, "PT30S"),
  totalTimeout: field(
    `What all attempts and the waits between them may take. ${duration}`,
    "PT10M",
  ),
  scheduleTimeout: field(`How long it may be queued before it runs. ${duration}`, "PT5M"),
  heartbeatTimeout: field(`How long a running task may be silent. ${duration}`, "PT1M"),
  maxIterations: field("Executions of this step in one instance. Default 10,000.", 100),
  default: field("The step to go to where no condition is true.", "ship_order"),
  conditions: field("Ways to go; the first one that is true is taken."),
  when: field(expression, "input.amount >= 1000"),
  to: field("The step to go to, of the same list.", "ship_order"),
  errors: field(
    "Types or kinds of errors: TIMEOUT for a timeout, EXPRESSION for a value that fails, * for any.",
    ["CardDeclined"],
  ),

  taskId: field("The task that a worker runs. It may hold ${ … }.", "payment_task"),
  input: field(`${withExpressions} Or one expression. Default: the instance's input.`, {
    orderId: "${ input.orderId }",
  }),
  "CompensationStep.input": field(
    `${withExpressions} Default: originalOutput, workflowInput, workflowState and cancellation.`,
    { reservationId: "${ steps.reserve.output.reservationId }" },
  ),
  "StartTrigger.input": field(
    `The instance's input. ${withExpressions} Default: the event's payload.`,
    {
      orderId: "${ event.payload.id }",
    },
  ),
  "SubWorkflowStep.input": field(`The child's input. ${withExpressions}`, {
    orderId: "${ input.orderId }",
  }),
  queue: field("The queue that it waits in; workers choose theirs. It may hold ${ … }.", "mail"),
  compensationFor: field("The step that it undoes.", "reserve_inventory"),

  eventPattern: field(
    "Names of events: segments joined by dots, * for any one, ** at the end for any number; under workflow. what happens to instances of other workflows. It may hold ${ … }.",
    "payment.received",
    "order.**",
  ),
  "EmitEventStep.eventPattern": field(
    "The name of the event. It may hold ${ … }.",
    "order.shipped",
  ),
  eventCondition: field(
    `Of the event and the instance; an equality between them is looked up by an index. ${expression}`,
    "event.payload.orderId === input.orderId",
  ),
  eventTimeout: field(
    "How long it waits, and where to go then. Without it the wait may last for ever.",
  ),
  timeoutHandlerStepId: field(
    "The step to go to when the time is over. Default: an error TIMEOUT.",
    "remind",
  ),
  eventPayloadMapping: field("Variables to set from the event: name and path in its payload.", {
    paid: "amount",
  }),
  lookback: field(
    'Events received before the wait opened count too: a duration, or "instance" for all since its creation.',
    "instance",
    "PT1H",
  ),
  events: field(
    "Several events to wait for instead of one, each with its own pattern and condition.",
  ),
  mode: field("ANY: the first of the events completes the step; ALL: each must come. Default ANY."),
  deliver: field(
    "ALL waiting instances take an event, or only the ONE that has waited longest. Default ALL.",
  ),
  shouldCompensate: field("Whether what was done is undone. Default true."),
  reason: field(`Why it is cancelled. It may hold \${ … }.`, "the customer cancelled"),
  correlationId: field(
    `The instance's correlation id. It may hold \${ … }.`,
    "${ event.payload.orderId }",
  ),
  payload: field(`The event's payload. ${withExpressions}`, { orderId: "${ input.orderId }" }),

  duration: field(`How long it waits. ${duration}`, "P3D", "${ input.pause ?? 'PT1H' }"),
  until: field(
    "A time in ISO 8601, or an expression that gives one.",
    "2030-01-31T09:00:00Z",
    "input.due",
  ),
  calendarId: field(
    "Counts the duration in the working time of this calendar; `until` becomes the first working moment from then on.",
    "office",
  ),
  choices: field("Ways to go; the first one that is true is taken."),
  variables: field(`Variables to set: name and value. ${withExpressions}`, {
    attempts: "${ variables.attempts + 1 }",
  }),
  branches: field(
    "What runs side by side, each from its own first step to one without a transition.",
  ),
  "branches.name": field("The name of the branch; its last output has this key.", "card"),
  join: field("How many branches must complete. Default ALL.", "ALL", "ANY", { count: 2 }),
  count: field("Branches that must complete.", 2),
  onBranchError: field(
    "Under ALL: a failed branch fails the step, or the others continue. Default FAIL.",
  ),
  items: field("A list, or an expression that gives one.", "input.lines"),
  itemName: field('What an item is called in expressions, beside "item". Default item.', "line"),
  maxConcurrency: field("Items at work at once.", 10),
  tolerate: field("Failed items that do not fail the step. Default 0.", 3),
  workflowId: field("The workflow to start. It may hold ${ … }.", "shipping"),
  version: field("Its version. Default: the latest one.", 2),
  detached: field("Whether it is started and not waited for. Default false."),
  outcome: field("How the whole instance ends."),
  error: field(`The error of a FAILED end. ${withExpressions}`, {
    type: "NotPaid",
    message: "order ${ input.orderId } was not paid",
  }),

  maxAttempts: field("Attempts in all, the first included. Default 3.", 5),
  initialInterval: field(
    `The wait before the second attempt. Default PT1S. ${withExpressions}`,
    "PT1S",
  ),
  backoffCoefficient: field("Each wait is this many times the one before. Default 2.", 2),
  maxInterval: field(`The longest wait. Default PT1M. ${withExpressions}`, "PT5M"),
  jitter: field("FULL: a random wait from zero up to it; NONE: exactly that. Default FULL."),
  nonRetryableErrors: field("Names of errors that are not tried again.", ["BadRequest"]),
  onExhausted: field(
    "What comes of it when no attempt is left: FAIL, or PAUSE for an operator. Default FAIL.",
  ),
};
