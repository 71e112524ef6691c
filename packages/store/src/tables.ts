import type { ColumnType, Generated, GeneratedAlways } from "kysely";
import type { JsonObject } from "@millrace/engine";

/**
 * One interface a table. `json` columns come as their text, so that a JSON null and no value at all
 * stay apart and what is only handed on is never parsed; `jsonb` columns come parsed.
 */
export interface Database {
  readonly workflow_definitions: DefinitionsTable;
  readonly workflow_instances: InstancesTable;
  readonly step_executions: StepsTable;
  readonly waits: WaitsTable;
  readonly wait_shapes: WaitShapesTable;
  readonly start_triggers: StartTriggersTable;
  readonly start_shapes: WaitShapesTable;
  readonly events: EventsTable;
  readonly event_deliveries: EventDeliveriesTable;
  readonly event_releases: EventReleasesTable;
  readonly timers: TimersTable;
  readonly children: ChildrenTable;
  readonly child_signals: ChildSignalsTable;
  readonly limit_slots: LimitSlotsTable;
  readonly history: HistoryTable;
  readonly idempotency_keys: IdempotencyKeysTable;
  readonly workers: WorkersTable;
  readonly settings: SettingsTable;
}

export type JsonText = string;

type Time = ColumnType<Date, Date | string, Date | string>;
type GeneratedTime = ColumnType<Date, Date | string | undefined, Date | string>;
type OptionalTime = ColumnType<Date | null, Date | string | null, Date | string | null>;

export interface DefinitionsTable {
  readonly tenant_id: string;
  readonly id: string;
  readonly version: number;
  readonly content_hash: string;
  readonly document: JsonText;
  readonly created_at: GeneratedTime;
  readonly created_by: string;
}

export interface InstancesTable {
  readonly tenant_id: string;
  readonly id: string;
  readonly workflow_id: string;
  readonly workflow_version: number;
  readonly version: number;
  readonly status: string;
  readonly status_at: Time;
  readonly correlation_id: string | null;
  readonly user_id: string | null;
  readonly priority: number;
  readonly deadline: OptionalTime;
  readonly start_event_id: string | null;
  readonly metadata: JsonText | null;
  readonly input: JsonText | null;
  readonly variables: JsonObject;
  readonly snapshot: JsonText;
  readonly output: JsonText | null;
  readonly error: JsonText | null;
  readonly cancellation: JsonText | null;
  readonly compensation: JsonText | null;
  readonly parent: JsonText | null;
  readonly given: Generated<string | null>;
  readonly created_at: Time;
  readonly updated_at: Time;
  readonly started_at: OptionalTime;
  readonly completed_at: OptionalTime;
}

export interface StepsTable {
  readonly tenant_id: string;
  readonly instance_id: string;
  readonly path: string;
  readonly iteration: number;
  readonly step_id: string;
  readonly type: string;
  readonly status: string;
  readonly attempt: number;
  readonly task_id: string | null;
  readonly queue: string | null;
  readonly priority: number;
  readonly compensates: string | null;
  readonly input: JsonText | null;
  readonly output: JsonText | null;
  readonly error: JsonText | null;
  readonly completion: number | null;
  readonly timeout_ms: number | null;
  readonly heartbeat_timeout_ms: number | null;
  readonly created_at: Time;
  readonly started_at: OptionalTime;
  readonly completed_at: OptionalTime;
  readonly fence: number;
  readonly deliveries: number;
  readonly lapses: Generated<number>;
  readonly hand_overs: Generated<number>;
  readonly worker_id: string | null;
  readonly carrier: string | null;
  readonly awaited: boolean;
  readonly look_at: OptionalTime;
  readonly looks: number;
  readonly retry_at: OptionalTime;
  readonly blocked: string | null;
  readonly due_at: OptionalTime;
  readonly due_clock: string | null;
  readonly timeout_at: OptionalTime;
  readonly task_retry: JsonText | null;
  readonly progress: JsonText | null;
  readonly lapse_log: ColumnType<unknown, string | null | undefined, string | null>;
  readonly items: JsonText | null;
  readonly entry: number | null;
  readonly held: Generated<boolean>;
}

export interface WaitsTable {
  readonly tenant_id: string;
  readonly instance_id: string;
  readonly path: string;
  readonly iteration: number;
  readonly step_id: string | null;
  readonly purpose: string;
  readonly pattern: string;
  readonly event_paths: string;
  /** 64 bits: only ever compared, as text. */
  readonly key_hash: string | null;
  readonly deliver: string;
  readonly opened_at: Time;
  readonly lookback_from: OptionalTime;
  readonly looked_back: boolean;
  readonly matched_event_id: string | null;
  readonly matched_at: OptionalTime;
  readonly held: Generated<boolean>;
}

export interface WaitShapesTable {
  readonly tenant_id: string;
  readonly pattern: string;
  readonly event_paths: string;
}

export interface StartTriggersTable {
  readonly tenant_id: string;
  readonly workflow_id: string;
  readonly trigger: number;
  readonly version: number;
  readonly pattern: string;
  readonly event_paths: string;
  readonly key_hash: string;
  readonly since: GeneratedTime;
}

export interface EventsTable {
  readonly tenant_id: string;
  readonly id: string;
  readonly pattern: string;
  readonly payload: unknown;
  readonly occurred_at: Time;
  readonly received_at: Time;
  readonly actor: string;
  readonly matched_at: OptionalTime;
  readonly delivered: number;
  readonly cancelled: number;
  readonly started: number;
  readonly starts_done: Generated<boolean>;
  readonly taken_by: string | null;
  readonly taken_at: OptionalTime;
}

export interface EventReleasesTable {
  readonly tenant_id: string;
  readonly instance_id: string;
  readonly event_id: string;
  readonly taken_at: Time;
  readonly released_at: Time;
}

export interface EventDeliveriesTable {
  readonly tenant_id: string;
  readonly instance_id: string;
  readonly event_id: string;
  readonly delivered_at: Time;
}

export interface TimersTable {
  readonly tenant_id: string;
  readonly instance_id: string;
  readonly path: string;
  readonly iteration: number;
  readonly kind: string;
  readonly attempt: number;
  readonly due_at: Time;
  readonly look_at: Time;
}

export interface ChildrenTable {
  readonly tenant_id: string;
  readonly instance_id: string;
  readonly path: string;
  readonly iteration: number;
  readonly attempt: number;
  readonly child_id: string;
  readonly workflow_id: string;
  readonly workflow_version: number | null;
  readonly detached: boolean;
  readonly requested_at: Time;
  readonly look_at: Time;
  readonly started_at: OptionalTime;
}

export interface ChildSignalsTable {
  readonly tenant_id: string;
  readonly instance_id: string;
  readonly kind: string;
  readonly child_id: string;
  readonly sent_version: number;
  readonly path: string;
  readonly iteration: number;
  readonly attempt: number;
  readonly body: JsonText;
  readonly sent_at: Time;
  readonly look_at: Time;
}

export interface LimitSlotsTable {
  readonly tenant_id: string;
  readonly limit_key: string;
  readonly instance_id: string;
  readonly status: string;
  readonly request: number;
  readonly has_run: boolean;
  readonly priority: number;
  readonly deadline: OptionalTime;
  readonly wanted_at: Time;
  readonly granted_at: OptionalTime;
  readonly look_at: OptionalTime;
  readonly promoted_at: GeneratedTime;
}

export interface HistoryTable {
  readonly tenant_id: string;
  readonly instance_id: string;
  readonly version: number;
  readonly commit_id: string;
  readonly at: Time;
  readonly engine_rev: number;
  readonly actor: string;
  readonly signals: JsonText;
  readonly changes: JsonText;
  readonly entries: JsonText;
  readonly tx: GeneratedAlways<string>;
  readonly seq: GeneratedAlways<number>;
  readonly status: string | null;
  readonly written_at: Generated<Date | null>;
}

export interface IdempotencyKeysTable {
  readonly tenant_id: string;
  readonly key: string;
  readonly body_hash: string;
  readonly instance_id: string;
  readonly created_at: GeneratedTime;
}

export interface WorkersTable {
  readonly id: string;
  readonly host: string;
  readonly pid: number;
  readonly tasks: string[];
  readonly queues: string[];
  readonly started_at: GeneratedTime;
  readonly beat_at: GeneratedTime;
  readonly rss_bytes: Generated<number | null>;
  readonly cells: Generated<number | null>;
  readonly concurrency: Generated<number | null>;
  readonly isolated_tasks: Generated<string[] | null>;
  readonly exit: Generated<string | null>;
}

export interface SettingsTable {
  readonly name: string;
  readonly value: string;
}
