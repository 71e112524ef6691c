import { decodeSnapshot } from "@millrace/engine";
import type {
  Cancellation,
  Compensation,
  JsonObject,
  ParentLink,
  Snapshot,
  WorkflowError,
} from "@millrace/engine";
import { parseJson } from "./json.ts";

/** The columns of an instance that a decision needs, under names of their own for joins. */
export interface InstanceRow {
  readonly i_tenant_id: string;
  readonly i_id: string;
  readonly i_workflow_id: string;
  readonly i_workflow_version: number;
  readonly i_version: number;
  readonly i_status: string;
  readonly i_correlation_id: string | null;
  readonly i_user_id: string | null;
  readonly i_priority: number;
  readonly i_start_event_id: string | null;
  readonly i_input: string | null;
  readonly i_variables: JsonObject;
  readonly i_snapshot: string;
  readonly i_output: string | null;
  readonly i_error: string | null;
  readonly i_cancellation: string | null;
  readonly i_compensation: string | null;
  readonly i_parent: string | null;
  readonly i_created_at: Date;
  readonly i_started_at: Date | null;
  readonly i_completed_at: Date | null;
}

const columns = [
  "tenant_id",
  "id",
  "workflow_id",
  "workflow_version",
  "version",
  "status",
  "correlation_id",
  "user_id",
  "priority",
  "start_event_id",
  "input",
  "variables",
  "snapshot",
  "output",
  "error",
  "cancellation",
  "compensation",
  "parent",
  "created_at",
  "started_at",
  "completed_at",
];

const jsonColumns = new Set([
  "input",
  "snapshot",
  "output",
  "error",
  "cancellation",
  "compensation",
  "parent",
]);

/** As `instanceColumns`, for a row that is itself turned into JSON: JSON columns stay texts. */
export const instanceColumnsAsText = columns
  .map((column) => `i.${column}${jsonColumns.has(column) ? "::text" : ""} as i_${column}`)
  .join(", ");

/** For `select`, from a table `i`. */
export const instanceColumns = columns.map((column) => `i.${column} as i_${column}`).join(", ");

export function snapshotOf(row: InstanceRow): Snapshot {
  return decodeSnapshot({
    id: row.i_id,
    tenantId: row.i_tenant_id,
    workflowId: row.i_workflow_id,
    workflowVersion: row.i_workflow_version,
    correlationId: row.i_correlation_id,
    userId: row.i_user_id,
    startEventId: row.i_start_event_id,
    priority: row.i_priority,
    createdAt: row.i_created_at,
    parent: (parseJson(row.i_parent) ?? null) as ParentLink | null,
    version: row.i_version,
    // What the columns hold was written from a snapshot.
    status: row.i_status as Snapshot["status"],
    startedAt: row.i_started_at,
    completedAt: row.i_completed_at,
    input: parseJson(row.i_input) ?? null,
    variables: row.i_variables,
    output: parseJson(row.i_output) ?? null,
    error: (parseJson(row.i_error) ?? null) as WorkflowError | null,
    cancellation: (parseJson(row.i_cancellation) ?? null) as Cancellation | null,
    compensation: (parseJson(row.i_compensation) ?? null) as Compensation | null,
    frontier: parseJson(row.i_snapshot) ?? null,
  });
}
