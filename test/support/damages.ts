import type { ConsistencyCode } from "@millrace/contract";

/** What the damaged instances are of. */
export const definitions = [
  {
    id: "wait",
    timeout: "P30D",
    steps: [
      {
        stepId: "pay",
        type: "EVENT_WAIT",
        eventPattern: "paid",
        eventCondition: "event.payload.order === input.order",
        eventTimeout: { duration: "P1D", timeoutHandlerStepId: "late" },
        transitions: { default: "ship" },
      },
      { stepId: "ship", type: "TASK", taskId: "noop" },
      { stepId: "late", type: "TASK", taskId: "noop" },
    ],
    cancellationTriggers: [
      {
        eventPattern: "order.cancelled",
        eventCondition: "event.payload.order === input.order",
        reason: "asked",
      },
    ],
  },
  {
    id: "task",
    steps: [{ stepId: "work", type: "TASK", taskId: "noop", totalTimeout: "P1D" }],
  },
  {
    id: "chain",
    variables: { seen: 0 },
    steps: [
      { stepId: "a", type: "TASK", taskId: "echo", input: { n: 1 }, transitions: { default: "b" } },
      {
        stepId: "b",
        type: "SET",
        variables: { seen: "${ steps.a.output.n }" },
        transitions: { default: "c" },
      },
      { stepId: "c", type: "TASK", taskId: "echo", input: { n: "${ variables.seen + 1 }" } },
    ],
  },
  {
    id: "fails",
    steps: [{ stepId: "no", type: "TASK", taskId: "fail", retry: { maxAttempts: 1 } }],
  },
  {
    id: "retries",
    steps: [
      {
        stepId: "no",
        type: "TASK",
        taskId: "fail",
        retry: { maxAttempts: 3, initialInterval: "P1D", maxInterval: "P1D" },
      },
    ],
  },
  {
    id: "timed",
    steps: [
      {
        stepId: "work",
        type: "TASK",
        taskId: "noop",
        timeout: "PT1M",
        heartbeatTimeout: "PT30S",
      },
    ],
  },
  { id: "idle", steps: [{ stepId: "work", type: "TASK", taskId: "noop", queue: "idle" }] },
  {
    id: "queued",
    concurrency: { limit: 1 },
    steps: [{ stepId: "work", type: "TASK", taskId: "noop" }],
  },
  { id: "doomed", steps: [{ stepId: "rest", type: "DELAY", duration: "P1D" }] },
  {
    id: "each",
    steps: [
      {
        stepId: "each",
        type: "MAP",
        items: "${ [1, 2, 3] }",
        steps: [{ stepId: "work", type: "TASK", taskId: "noop" }],
      },
    ],
  },
  { id: "parent", steps: [{ stepId: "child", type: "SUB_WORKFLOW", workflowId: "wait" }] },
  {
    id: "emits",
    steps: [
      {
        stepId: "say",
        type: "EMIT_EVENT",
        eventPattern: "said",
        payload: { a: 1 },
        transitions: { default: "rest" },
      },
      { stepId: "rest", type: "DELAY", duration: "P1D" },
    ],
  },
];

/** What is done to an instance, what must be found of it, and whether it can be mended. */
export interface Damage {
  readonly name: string;
  readonly of:
    | "each"
    | "wait"
    | "task"
    | "timed"
    | "parent"
    | "emits"
    | "chain"
    | "fails"
    | "retries"
    | "queued";
  /** What an operator changes of it before. */
  readonly patches?: readonly object[];
  /** `$1` is the instance. */
  readonly sql: readonly string[];
  readonly codes: readonly ConsistencyCode[];
  /** Nothing else is found. */
  readonly isAll?: true;
  /** What the messages must name. */
  readonly says?: readonly string[];
  readonly isRepaired: boolean;
}

/** It runs under a worker that is alive. */
const running = [
  `insert into workers (id, host, pid, tasks, queues, beat_at)
  select '00000000-0000-4000-8000-000000000001', 'here', 1, '{}', '{}', now() + interval '1 h'
  where $1::uuid is not null
  on conflict do nothing`,
  `update step_executions set status = 'RUNNING', fence = 1, look_at = null, started_at = now(),
    worker_id = '00000000-0000-4000-8000-000000000001', due_at = now() + interval '30 s',
    due_clock = 'heartbeat', timeout_at = now() + interval '1 min'
  where instance_id = $1`,
];

const openWait = (stepId: string) =>
  `insert into waits (tenant_id, instance_id, path, iteration, step_id, purpose, pattern, event_paths,
    key_hash, deliver, opened_at, looked_back)
  values ('default', $1, '${stepId}', 1, '${stepId}', 'STEP', 'paid', '', 0, 'ALL', now(), true)`;

const heldSlot = (limitKey: string) =>
  `insert into limit_slots (tenant_id, limit_key, instance_id, status, request, has_run, priority,
    wanted_at, granted_at)
  values ('default', '${limitKey}', $1, 'HELD', 1, true, 0, now(), now())`;

const step = (name: string, of: Damage["of"], change: string): Damage => ({
  name,
  of,
  sql: [`update step_executions set ${change} where instance_id = $1`],
  codes: ["STEP_DIFFERS"],
  isRepaired: true,
});

const clock = (name: string, change: string): Damage => ({
  name: `${name} of an attempt that runs`,
  of: "timed",
  sql: [...running, `update step_executions set ${change} where instance_id = $1`],
  codes: ["STEP_CLOCK_DIFFERS"],
  isRepaired: true,
});

const child = (name: string, change: string): Damage => ({
  name,
  of: "parent",
  sql: [`update children set ${change} where instance_id = $1`],
  codes: ["CHILD_DIFFERS"],
  isRepaired: true,
});

const given = (name: string, of: Damage["of"], change: string): Damage => ({
  name,
  of,
  sql: [`update workflow_instances set ${change} where id = $1`],
  codes: ["GIVEN_DIFFERS"],
  isAll: true,
  isRepaired: false,
});

const slot = (name: string, change: string): Damage => ({
  name,
  of: "queued",
  sql: [`update limit_slots set ${change} where instance_id = $1`],
  codes: ["SLOT_DIFFERS"],
  isRepaired: true,
});

const history = (
  name: string,
  change: string,
  code: ConsistencyCode,
  isRepaired: boolean,
): Damage => ({
  name,
  of: "chain",
  sql: [`update history set ${change} where instance_id = $1 and version = 2`],
  codes: [code],
  isRepaired,
});

export const damages: readonly Damage[] = [
  {
    name: "a step is for another task and queue, with other limits, and undoes something",
    of: "timed",
    sql: [
      `update step_executions set task_id = 'echo', queue = 'elsewhere', priority = 7, timeout_ms = null,
        heartbeat_timeout_ms = 1, compensates = 'work#1', entry = 3, awaited = true where instance_id = $1`,
    ],
    codes: ["STEP_DIFFERS"],
    says: [
      "taskId",
      "queue",
      "priority",
      "timeoutMs",
      "heartbeatTimeoutMs",
      "compensates",
      "entry",
      "awaited",
    ],
    isRepaired: true,
  },
  step("the time of the next attempt is lost", "retries", "retry_at = null"),
  step("a wait began a day before", "wait", "started_at = started_at - interval '1 day'"),
  step("steps ended an hour before", "chain", "completed_at = completed_at - interval '1 h'"),
  clock("the clock", "due_at = null, due_clock = null, timeout_at = null"),
  clock("the time", "due_at = null"),
  clock("the end", "timeout_at = timeout_at + interval '1 day'"),
  clock("the heartbeat's end", "due_at = timeout_at"),
  clock("the start", "started_at = null"),
  {
    ...child(
      "a child that is awaited is taken for a detached one of another workflow",
      "detached = true, workflow_id = 'task', workflow_version = 9",
    ),
    says: ["detached", "workflowId", "workflowVersion"],
  },
  child("a child is another step's, and of another attempt", "path = 'other', attempt = 2"),
  child("that a child was started is lost", "started_at = null"),
  child("a child was started yesterday", "started_at = started_at - interval '1 day'"),
  slot("the place in the queue is by another priority", "priority = 9"),
  slot("the place in the queue is by a deadline that there is none", "deadline = now()"),
  slot("the place in the queue is that of one that was promoted", "promoted_at = now()"),
  slot("the place in the queue is from next year on", "wanted_at = now() + interval '1 year'"),
  {
    name: "the input of a step is another",
    of: "chain",
    sql: [`update step_executions set input = '{"n":9}' where instance_id = $1 and path = 'c'`],
    codes: ["STEP_INPUT_DIFFERS"],
    isRepaired: false,
  },
  {
    name: "a step was created a day before",
    of: "chain",
    sql: [
      "update step_executions set created_at = created_at - interval '1 day' where instance_id = $1",
    ],
    codes: ["TIMES_DISAGREE"],
    isRepaired: true,
  },
  {
    name: "the instance was created a day before",
    of: "wait",
    sql: ["update workflow_instances set created_at = created_at - interval '1 day' where id = $1"],
    codes: ["SNAPSHOT_DIFFERS"],
    isRepaired: true,
  },
  {
    name: "the instance began a day before, and ended a minute before",
    of: "chain",
    sql: [
      `update workflow_instances set started_at = started_at - interval '1 day',
        completed_at = completed_at - interval '1 min' where id = $1`,
    ],
    codes: ["SNAPSHOT_DIFFERS"],
    isRepaired: true,
  },
  {
    name: "the instance was changed, and got its status, at another time",
    of: "chain",
    sql: [
      `update workflow_instances set updated_at = updated_at - interval '1 h',
        status_at = status_at - interval '1 h' where id = $1`,
    ],
    codes: ["TIMES_DISAGREE"],
    isRepaired: true,
  },
  {
    name: "a wait is held, and nothing is paused",
    of: "wait",
    sql: ["update waits set held = true where instance_id = $1 and path = 'pay'"],
    codes: ["WAIT_DIFFERS"],
    isRepaired: true,
  },
  {
    name: "the row of a wait is deleted",
    of: "wait",
    sql: ["delete from waits where instance_id = $1 and path = 'pay'"],
    codes: ["WAIT_MISSING"],
    isRepaired: true,
  },
  {
    name: "the row of a cancellation trigger is deleted",
    of: "wait",
    sql: ["delete from waits where instance_id = $1 and path = '$cancel'"],
    codes: ["WAIT_MISSING"],
    isRepaired: true,
  },
  {
    name: "a wait has the key of another order",
    of: "wait",
    sql: ["update waits set key_hash = 42 where instance_id = $1 and path = 'pay'"],
    codes: ["WAIT_DIFFERS"],
    isRepaired: true,
  },
  {
    name: "a wait has another pattern",
    of: "wait",
    sql: ["update waits set pattern = 'other' where instance_id = $1 and path = 'pay'"],
    codes: ["WAIT_DIFFERS"],
    isRepaired: true,
  },
  {
    name: "the input of one that an earlier release has started is another",
    of: "wait",
    sql: [`update workflow_instances set input = '{"order":2}', given = null where id = $1`],
    codes: ["WAIT_DIFFERS"],
    isRepaired: false,
  },
  given("the input is another", "wait", `input = '{"x":1}'`),
  given("the input of one that has settled is gone", "chain", "input = null"),
  given("the correlation id is another", "task", "correlation_id = 'x'"),
  given("the user is another", "task", "user_id = 'x'"),
  given("it is said that an event has started it", "task", "start_event_id = 'x'"),
  step("a step that waits has a completion number", "wait", "completion = 1"),
  child("a child was asked for tomorrow", "requested_at = requested_at + interval '1 day'"),
  slot("the place in the queue is that of one that has run", "has_run = true"),
  slot("a slot is granted, and nobody would tell", "status = 'GRANTED', granted_at = now()"),
  {
    name: "a step that waits was created tomorrow",
    of: "wait",
    sql: [
      "update step_executions set created_at = created_at + interval '1 day' where instance_id = $1",
    ],
    codes: ["TIMES_DISAGREE"],
    isRepaired: true,
  },
  {
    name: "a wait was opened yesterday",
    of: "wait",
    sql: [
      "update waits set opened_at = opened_at - interval '1 day' where instance_id = $1 and path = 'pay'",
    ],
    codes: ["WAIT_DIFFERS"],
    isRepaired: true,
  },
  {
    name: "a wait was opened tomorrow",
    of: "wait",
    sql: [
      "update waits set opened_at = opened_at + interval '1 day' where instance_id = $1 and path = 'pay'",
    ],
    codes: ["WAIT_DIFFERS"],
    isRepaired: true,
  },
  {
    name: "a wait looks back to yesterday",
    of: "wait",
    sql: [
      "update waits set looked_back = false, lookback_from = opened_at - interval '1 day' where instance_id = $1 and path = 'pay'",
    ],
    codes: ["WAIT_DIFFERS"],
    isRepaired: true,
  },
  {
    name: "a child does not know its parent",
    of: "parent",
    sql: [
      "update workflow_instances set parent = null where id = (select child_id from children where instance_id = $1)",
    ],
    codes: ["CHILD_LINK_DIFFERS"],
    isRepaired: true,
  },
  {
    name: "a wait of a step that the instance is not at",
    of: "task",
    sql: [openWait("work")],
    codes: ["WAIT_STRAY"],
    isRepaired: true,
  },
  {
    name: "a wait of an instance that has settled",
    of: "chain",
    sql: [openWait("a")],
    codes: ["WAIT_STRAY"],
    isRepaired: true,
  },
  {
    name: "a wait was taken by an event that is gone",
    of: "wait",
    sql: [
      "update waits set matched_event_id = 'gone', matched_at = now() where instance_id = $1 and path = 'pay'",
    ],
    codes: ["WAIT_EVENT_MISSING"],
    isRepaired: true,
  },
  {
    name: "a match of long ago was never applied",
    of: "wait",
    sql: [
      `insert into events (tenant_id, id, pattern, payload, occurred_at, received_at, actor, matched_at)
      values ('default', 'match-' || $1::text, 'paid', '{"order":1}', now(), now(), 'test', now())`,
      `update waits set matched_event_id = 'match-' || $1::text, matched_at = now() - interval '5 min'
      where instance_id = $1::uuid and path = 'pay'`,
    ],
    codes: ["MATCH_NOT_APPLIED"],
    isRepaired: true,
  },
  {
    name: "a lookback was never done",
    of: "wait",
    sql: [
      `update waits set looked_back = false, lookback_from = opened_at, opened_at = now() - interval '5 min'
      where instance_id = $1 and path = 'pay'`,
    ],
    codes: ["LOOKBACK_NOT_DONE"],
    isRepaired: true,
  },
  {
    name: "a timer is deleted",
    of: "wait",
    sql: ["delete from timers where instance_id = $1 and kind = 'wait'"],
    codes: ["TIMER_MISSING"],
    isRepaired: true,
  },
  {
    name: "the timer of the instance is deleted",
    of: "wait",
    sql: ["delete from timers where instance_id = $1 and kind = 'timeout'"],
    codes: ["TIMER_MISSING"],
    isRepaired: true,
  },
  {
    name: "a timer is due at another time",
    of: "wait",
    sql: [
      "update timers set due_at = due_at + interval '1 day' where instance_id = $1 and kind = 'wait'",
    ],
    codes: ["TIMER_DIFFERS"],
    isRepaired: true,
  },
  {
    name: "a timer is looked at a year after it is due",
    of: "emits",
    sql: ["update timers set look_at = look_at + interval '1 year' where instance_id = $1"],
    codes: ["TIMER_DIFFERS"],
    isRepaired: true,
  },
  {
    name: "a timer is held for ever",
    of: "emits",
    sql: ["update timers set look_at = 'infinity' where instance_id = $1"],
    codes: ["TIMER_DIFFERS"],
    isRepaired: true,
  },
  {
    name: "a timer that nobody set",
    of: "task",
    sql: [
      `insert into timers (tenant_id, instance_id, path, iteration, kind, attempt, due_at, look_at)
      values ('default', $1, 'work', 1, 'schedule', 1, now() + interval '1 day', now() + interval '1 day')`,
    ],
    codes: ["TIMER_STRAY"],
    isRepaired: true,
  },
  {
    name: "the last thing that could wake it is deleted",
    of: "emits",
    sql: ["delete from timers where instance_id = $1"],
    codes: ["TIMER_MISSING", "STUCK"],
    isRepaired: true,
  },
  {
    name: "the row of a step that is to run is deleted",
    of: "task",
    sql: ["delete from step_executions where instance_id = $1"],
    codes: ["STEP_MISSING"],
    isRepaired: true,
  },
  {
    name: "the row of a step is settled, and the instance is not",
    of: "task",
    sql: [
      "update step_executions set status = 'COMPLETED', completed_at = now() where instance_id = $1",
    ],
    codes: ["STEP_DIFFERS"],
    isRepaired: true,
  },
  {
    name: "a step runs in an instance that has settled",
    of: "chain",
    sql: [
      `insert into step_executions (tenant_id, instance_id, path, iteration, step_id, type, status, attempt,
        task_id, queue, created_at)
      values ('default', $1, 'c', 2, 'c', 'TASK', 'RUNNING', 1, 'noop', 'default', now())`,
    ],
    codes: ["STEP_STRAY"],
    isRepaired: true,
  },
  {
    name: "a pass of a step that has completed and that there never was",
    of: "chain",
    sql: [
      `insert into step_executions (tenant_id, instance_id, path, iteration, step_id, type, status, attempt,
        task_id, queue, output, completion, created_at, started_at, completed_at)
      values ('default', $1, 'c', 9, 'c', 'TASK', 'COMPLETED', 1, 'noop', 'default', '7', 77, now(), now(), now())`,
    ],
    codes: ["STEP_STRAY"],
    isAll: true,
    isRepaired: true,
  },
  ...[-3, 2_147_483_647].map((fence) => ({
    ...step(`a step has been taken ${fence} times`, "task", `fence = ${fence}`),
    says: ["nobody can take it"],
  })),
  {
    name: "a child that is not there, and that nobody has asked for",
    of: "parent",
    sql: [
      `insert into children (tenant_id, instance_id, path, iteration, attempt, child_id, workflow_id,
        workflow_version, detached, requested_at, look_at, started_at)
      select tenant_id, instance_id, path, 2, 1, gen_random_uuid(), workflow_id, workflow_version, detached,
        requested_at, 'infinity', now()
      from children where instance_id = $1`,
    ],
    codes: ["CHILD_DIFFERS"],
    isAll: true,
    says: ["was not asked for", "is not stored"],
    isRepaired: true,
  },
  {
    name: "an event took a wait, and no scheduler would look whether it was applied",
    of: "wait",
    sql: [
      `insert into events (tenant_id, id, pattern, payload, occurred_at, received_at, actor, matched_at)
      values ('default', 'timeless-' || $1::text, 'paid', '{"order":1}', now(), now(), 'test', now())`,
      `update waits set matched_event_id = 'timeless-' || $1::text
      where instance_id = $1::uuid and path = 'pay'`,
    ],
    codes: ["MATCH_NOT_APPLIED"],
    isAll: true,
    isRepaired: true,
  },
  {
    name: "a step runs under a worker that never existed",
    of: "task",
    sql: [
      `update step_executions set status = 'RUNNING', fence = 1, look_at = null,
        worker_id = gen_random_uuid(), started_at = now() - interval '1 min' where instance_id = $1`,
    ],
    codes: ["STEP_HOLDER_LOST"],
    isRepaired: true,
  },
  {
    name: "a step runs under no worker",
    of: "task",
    sql: [
      `update step_executions set status = 'RUNNING', fence = 1, look_at = null, worker_id = null,
        started_at = now() - interval '1 min' where instance_id = $1`,
    ],
    codes: ["STEP_HOLDER_LOST"],
    isRepaired: true,
  },
  {
    name: "nobody looks whether the job of a step is there",
    of: "task",
    sql: ["update step_executions set look_at = null where instance_id = $1"],
    codes: ["STEP_OVERLOOKED"],
    isRepaired: true,
  },
  {
    name: "somebody looks in a year whether the job of a step is there",
    of: "task",
    sql: [
      "update step_executions set look_at = look_at + interval '1 year' where instance_id = $1",
    ],
    codes: ["STEP_OVERLOOKED"],
    isRepaired: true,
  },
  {
    name: "a step is held, and nothing is paused",
    of: "task",
    sql: ["update step_executions set held = true, look_at = null where instance_id = $1"],
    codes: ["STEP_HOLD_DIFFERS"],
    isRepaired: true,
  },
  {
    name: "a step has the completion number of another",
    of: "chain",
    sql: ["update step_executions set completion = 1 where instance_id = $1 and path = 'b'"],
    codes: ["COMPLETIONS_DIFFER"],
    isRepaired: true,
  },
  {
    name: "the row of a settled step is deleted",
    of: "chain",
    sql: ["delete from step_executions where instance_id = $1 and path = 'b'"],
    codes: ["STEP_MISSING"],
    isRepaired: false,
  },
  {
    name: "a step that the definition does not have",
    of: "chain",
    sql: [
      "update step_executions set step_id = 'nowhere', path = 'nowhere' where instance_id = $1 and path = 'b'",
    ],
    codes: ["STEP_UNKNOWN", "STEP_MISSING"],
    isRepaired: false,
  },
  {
    name: "a step is of another type",
    of: "chain",
    sql: ["update step_executions set type = 'DELAY' where instance_id = $1 and path = 'b'"],
    codes: ["STEP_TYPE_DIFFERS", "STEP_DIFFERS"],
    isRepaired: true,
  },
  {
    name: "a step completed next year",
    of: "chain",
    sql: [
      "update step_executions set completed_at = now() + interval '1 year' where instance_id = $1 and path = 'b'",
    ],
    codes: ["TIMES_DISAGREE", "STEP_DIFFERS"],
    isRepaired: true,
  },
  {
    name: "the status is changed by hand",
    of: "wait",
    sql: ["update workflow_instances set status = 'COMPLETED', completed_at = now() where id = $1"],
    codes: ["SNAPSHOT_DIFFERS"],
    isRepaired: true,
  },
  {
    name: "a settled instance is set RUNNING by hand",
    of: "chain",
    sql: ["update workflow_instances set status = 'RUNNING' where id = $1"],
    codes: ["SNAPSHOT_DIFFERS"],
    isRepaired: true,
  },
  {
    name: "the output is changed by hand",
    of: "chain",
    sql: [`update workflow_instances set output = '{"n":7}' where id = $1`],
    codes: ["SNAPSHOT_DIFFERS"],
    isRepaired: true,
  },
  {
    name: "the version is raised by hand",
    of: "wait",
    sql: ["update workflow_instances set version = version + 3 where id = $1"],
    codes: ["VERSION_DIFFERS"],
    isRepaired: true,
  },
  {
    name: "the state is another JSON",
    of: "wait",
    sql: [`update workflow_instances set snapshot = '[1, 2]' where id = $1`],
    codes: ["SNAPSHOT_UNREADABLE"],
    isRepaired: true,
  },
  {
    name: "nothing is live in the state any more",
    of: "wait",
    sql: [`update workflow_instances set snapshot = '{"format":1}' where id = $1`],
    codes: ["SNAPSHOT_DIFFERS"],
    isRepaired: true,
  },
  {
    name: "progress is beyond the end",
    of: "chain",
    sql: [
      `update workflow_instances set snapshot = '{"format":1,"completions":3,"completedSteps":9,"lastOutput":"c#1"}'
      where id = $1`,
    ],
    codes: ["SNAPSHOT_DIFFERS"],
    isRepaired: true,
  },
  {
    name: "a row of the history is deleted",
    of: "chain",
    sql: ["delete from history where instance_id = $1 and version = 2"],
    codes: ["HISTORY_GAP"],
    isRepaired: false,
  },
  ...(["wait", "retries"] as const).map((of) => ({
    name: `the latest row of the history of one that ${of === "wait" ? "waits" : "retries"} is deleted`,
    of,
    sql: [
      `delete from history where instance_id = $1
        and version = (select max(version) from history where instance_id = $1)`,
    ],
    codes: ["HISTORY_GAP"] as const,
    isRepaired: false,
  })),
  {
    name: "changes in the history are altered",
    of: "chain",
    sql: [`update history set changes = '{"priority":7}' where instance_id = $1 and version = 2`],
    codes: ["HISTORY_DIFFERS"],
    isRepaired: true,
  },
  history("the changes of a commit are none", "changes = 'null'", "HISTORY_DIFFERS", true),
  {
    ...history("a commit came a day before", "at = at - interval '1 day'", "TIMES_DISAGREE", false),
    isAll: true,
  },
  {
    ...history("a commit came a day after", "at = at + interval '1 day'", "TIMES_DISAGREE", false),
    isAll: true,
  },
  {
    name: "the first commit came before the instance",
    of: "wait",
    sql: ["update history set at = at - interval '1 day' where instance_id = $1 and version = 1"],
    codes: ["TIMES_DISAGREE"],
    isAll: true,
    isRepaired: false,
  },
  history("the entries of a commit are gone", "entries = '[]'", "HISTORY_DIFFERS", true),
  history("the entries of a commit are none", `entries = '{"a":1}'`, "HISTORY_DIFFERS", true),
  history("the signals of a commit are none", "signals = '7'", "REPLAY_DIFFERS", false),
  {
    name: "signals in the history are altered",
    of: "chain",
    sql: [`update history set signals = '[]' where instance_id = $1 and version = 2`],
    codes: ["REPLAY_DIFFERS"],
    isRepaired: false,
  },
  {
    name: "the link to a child is deleted",
    of: "parent",
    sql: ["delete from children where instance_id = $1"],
    codes: ["CHILD_MISSING"],
    isRepaired: true,
  },
  {
    name: "a child is deleted, and its link is not",
    of: "parent",
    sql: [
      "delete from workflow_instances where id = (select child_id from children where instance_id = $1)",
    ],
    codes: ["CHILD_MISSING"],
    isRepaired: false,
  },
  {
    name: "what a child has told is not taken note of",
    of: "wait",
    sql: [
      `insert into child_signals (tenant_id, instance_id, kind, child_id, sent_version, path, iteration,
        attempt, body, sent_at, look_at)
      values ('default', $1, 'CANCEL', $1, 1, 'x', 1, 1,
        '{"reason":null,"shouldCompensate":true,"parentId":"x"}', now() - interval '5 min', 'infinity')`,
    ],
    codes: ["CHILD_SIGNAL_LEFT"],
    isRepaired: true,
  },
  {
    name: "what a child that nobody knows has told cannot be read",
    of: "parent",
    sql: [
      `insert into child_signals (tenant_id, instance_id, kind, child_id, sent_version, path, iteration,
        attempt, body, sent_at, look_at)
      values ('default', $1, 'END', gen_random_uuid(), 1, 'child', 1, 1, '{"status":"LOST"}', now(), now())`,
    ],
    codes: ["CHILD_SIGNAL_UNREADABLE"],
    isRepaired: false,
  },
  {
    name: "an emitted event was not matched",
    of: "emits",
    sql: [
      `update events set matched_at = null, received_at = now() - interval '5 min'
      where actor = 'instance:' || $1::text`,
    ],
    codes: ["EVENT_NOT_MATCHED"],
    isRepaired: true,
  },
  {
    name: "deliveries are left of an instance that has settled",
    of: "chain",
    sql: [
      `insert into event_deliveries (tenant_id, instance_id, event_id, delivered_at)
      values ('default', $1, 'x', now() - interval '5 min')`,
    ],
    codes: ["DELIVERIES_LEFT"],
    isRepaired: true,
  },
  {
    name: "a dead letter of an instance that has none",
    of: "fails",
    sql: [
      `insert into dead_letters (tenant_id, instance_id, workflow_id, workflow_version, path, iteration,
        step_id, attempt, error, deliveries, status, created_at)
      values ('default', $1, 'fails', 1, 'no', 1, 'no', 1, '{}', '[]', 'OPEN', now())`,
    ],
    codes: ["DEAD_LETTER_STRAY"],
    isRepaired: true,
  },
  {
    ...step(
      "the counts of a MAP are others than those of its items",
      "each",
      `items = '{"count":3,"completed":9,"failed":0}'`,
    ),
    sql: [
      `update step_executions set items = '{"count":3,"completed":9,"failed":0}'
      where instance_id = $1 and type = 'MAP'`,
    ],
    says: ["items"],
  },
  {
    name: "what an operator has made of the deadline and of the metadata is gone",
    of: "queued",
    patches: [
      { deadline: "2030-01-01T00:00:00Z", metadata: { a: { b: 1 }, c: 2 } },
      { metadata: { a: { b: null, d: 3 } } },
    ],
    sql: [`update workflow_instances set deadline = null, metadata = '{"c":2}' where id = $1`],
    codes: ["SNAPSHOT_DIFFERS"],
    says: ["deadline and metadata"],
    isRepaired: true,
  },
  {
    name: "the deadline that an operator has asked for is infinite",
    of: "queued",
    patches: [{ deadline: "2030-01-01T00:00:00Z" }],
    sql: ["update workflow_instances set deadline = 'infinity' where id = $1"],
    codes: ["SNAPSHOT_DIFFERS"],
    isAll: true,
    says: ["deadline"],
    isRepaired: true,
  },
  {
    name: "the deadline is in a year that no date has",
    of: "queued",
    sql: ["update workflow_instances set deadline = '294276-01-01' where id = $1"],
    codes: ["SNAPSHOT_DIFFERS"],
    isAll: true,
    says: ["PATCH"],
    isRepaired: false,
  },
  {
    name: "a change by an operator is said to be another's",
    of: "wait",
    patches: [{ priority: 5 }],
    sql: ["update history set actor = 'eve' where instance_id = $1 and version = 2"],
    codes: ["HISTORY_DIFFERS"],
    isAll: true,
    says: ["eve"],
    isRepaired: true,
  },
  {
    name: "the place in the queue of a limit is deleted",
    of: "queued",
    sql: ["delete from limit_slots where instance_id = $1"],
    codes: ["SLOT_MISSING", "STUCK"],
    isRepaired: true,
  },
  {
    name: "a slot answers another request than that of the instance",
    of: "queued",
    sql: ["update limit_slots set request = 7 where instance_id = $1"],
    codes: ["SLOT_DIFFERS"],
    isRepaired: true,
  },
  {
    name: "a slot is taken under the limit of another workflow",
    of: "queued",
    sql: [heldSlot("type:elsewhere")],
    codes: ["SLOT_FOREIGN"],
    says: ["type:elsewhere"],
    isRepaired: true,
  },
  {
    name: "a slot is taken by an instance without a limit",
    of: "task",
    sql: [heldSlot("type:task")],
    codes: ["SLOT_STRAY"],
    isRepaired: true,
  },
];
