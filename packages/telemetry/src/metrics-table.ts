// Every metric of Millrace. Durations are seconds, as Prometheus has it.
//
// Labels are bounded. Their values are either of a fixed set (status, outcome, kind, state, cause) or
// named by users (workflow, step, task, queue); of those the first 200 of each are told apart in a
// process and the rest are counted together as `(other)`. Ids of instances, tenants or events are
// never labels. A route is the pattern (`/v1/instances/:id`), not the path.

export interface MetricSpec {
  readonly type: "counter" | "gauge" | "histogram";
  readonly name: string;
  readonly help: string;
  readonly labels: readonly string[];
  readonly buckets?: readonly number[];
}

const fast = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const task = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 1_800, 3_600];
const instance = [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60, 300, 1_800, 3_600, 21_600, 86_400, 604_800];

export const metricTable = {
  instances: gauge("millrace_instances", "Instances by status, sampled from Postgres.", ["status"]),
  instancesStarted: counter("millrace_instances_started_total", "Instances that were created.", [
    "workflow",
  ]),
  instanceDuration: histogram(
    "millrace_instance_duration_seconds",
    "Time from an instance's start to its terminal status.",
    ["workflow", "outcome"],
    instance,
  ),
  slots: gauge("millrace_limit_slots", "Slots under the limit of a workflow.", ["workflow"]),
  slotsTaken: gauge("millrace_limit_slots_taken", "Slots that instances hold.", ["workflow"]),
  queued: gauge("millrace_limit_queued_instances", "Instances that wait for a slot.", ["workflow"]),
  admissionWait: histogram(
    "millrace_admission_wait_seconds",
    "Time that an instance waited for a slot.",
    ["workflow"],
    instance,
  ),
  steps: counter("millrace_steps_total", "Attempts of task steps that ended, by outcome.", [
    "task",
    "outcome",
  ]),
  stepDuration: histogram(
    "millrace_step_duration_seconds",
    "Time that a task ran, per attempt.",
    ["task"],
    task,
  ),
  errors: counter("millrace_step_errors_total", "Attempts of steps that failed.", [
    "workflow",
    "step",
  ]),
  queueDepth: gauge("millrace_queue_jobs", "Jobs in BullMQ by task queue and state, sampled.", [
    "queue",
    "state",
  ]),
  enqueueFailures: counter(
    "millrace_enqueue_failures_total",
    "Enqueues that failed and were left to the reconciler.",
    [],
  ),
  commitConflicts: counter(
    "millrace_commit_conflicts_total",
    "Commits that found another version of the instance, by what was to be committed.",
    ["cause"],
  ),
  commitBatchSize: histogram(
    "millrace_commit_batch_instances",
    "Instances that one commit statement wrote.",
    [],
    [1, 2, 4, 8, 16, 32, 64, 128, 256],
  ),
  commitDuration: histogram(
    "millrace_commit_duration_seconds",
    "Time that one commit statement took.",
    [],
    fast,
  ),
  voidResults: counter(
    "millrace_void_results_total",
    "Results that were dropped because the step was no longer held, by reason.",
    ["reason"],
  ),
  takeOvers: counter(
    "millrace_take_overs_total",
    "Steps taken over from a worker whose beat had lapsed.",
    [],
  ),
  cellsFailed: counter(
    "millrace_cells_failed_total",
    "Processes to run a step alone that ended before they had it.",
    [],
  ),
  reconcilerFound: counter(
    "millrace_reconciler_found_total",
    "Things that a crash or a lost message left undone, as the reconciler found them, by kind.",
    ["kind"],
  ),
  reconcilerRepaired: counter(
    "millrace_reconciler_repaired_total",
    "Things found by the reconciler that it made good, by kind.",
    ["kind"],
  ),
  reconcilerOldest: gauge(
    "millrace_reconciler_oldest_seconds",
    "How long the oldest thing found in the last sweep had been waiting, by kind; 0: there is none.",
    ["kind"],
  ),
  consistencyChecked: counter(
    "millrace_consistency_checked_total",
    "Instances whose consistency was checked as a sample.",
    [],
  ),
  consistencyFindings: counter(
    "millrace_consistency_findings_total",
    "What those checks found, by code (docs/reliability.md).",
    ["code"],
  ),
  retentionDeleted: counter(
    "millrace_retention_deleted_total",
    "What was deleted after its time (MILLRACE_RETENTION), by kind.",
    ["kind"],
  ),
  retentionBehind: gauge(
    "millrace_retention_behind_seconds",
    "How long what is to be deleted next has been due, by kind; 0: nothing is.",
    ["kind"],
  ),
  lifecycleLag: gauge(
    "millrace_lifecycle_lag_seconds",
    "Age of the oldest change of an instance that those who wait for lifecycle events are still to hear of; 0: there is none, or nobody waits.",
    [],
  ),
  webhookDeliveries: counter(
    "millrace_webhook_deliveries_total",
    "Tries to send an event to a webhook, by outcome: taken, failed, givenUp.",
    ["outcome"],
  ),
  pool: gauge("millrace_pool_connections", "Postgres connections of this process by state.", [
    "state",
  ]),
  waitingCalls: gauge(
    "millrace_waiting_calls",
    "Calls to this process that wait for an instance to settle.",
    [],
  ),
  streams: gauge("millrace_streams", "Streams of changes that this process has open.", []),
  eventsPublished: counter("millrace_events_published_total", "Events that were accepted.", []),
  eventsMatched: counter(
    "millrace_events_matched_total",
    "Waits, cancellations and starts that events matched.",
    ["effect"],
  ),
  scheduleTicks: counter(
    "millrace_schedule_ticks_total",
    "Ticks of schedules, by what came of them.",
    ["outcome"],
  ),
  scheduleLateness: histogram(
    "millrace_schedule_lateness_seconds",
    "Time from a tick to the start of its run, jitter and backfills included.",
    [],
    task,
  ),
  timersFired: counter("millrace_timers_fired_total", "Timers that fired, by kind.", ["kind"]),
  timerLateness: histogram(
    "millrace_timer_lateness_seconds",
    "Time from when a timer was due to when it fired.",
    [],
    [0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60],
  ),
  httpRequests: histogram(
    "millrace_http_request_duration_seconds",
    "Time that requests took by route pattern, method and status.",
    ["route", "method", "status"],
    fast,
  ),
} as const satisfies Readonly<Record<string, MetricSpec>>;

export type MetricTable = typeof metricTable;

function counter<const L extends readonly string[]>(name: string, help: string, labels: L) {
  return { type: "counter", name, help, labels } as const;
}

function gauge<const L extends readonly string[]>(name: string, help: string, labels: L) {
  return { type: "gauge", name, help, labels } as const;
}

function histogram<const L extends readonly string[]>(
  name: string,
  help: string,
  labels: L,
  buckets: readonly number[],
) {
  return { type: "histogram", name, help, labels, buckets } as const;
}
