import type { EventFact } from "@millrace/engine";

export interface EventFactRow {
  readonly e_id: string;
  readonly e_pattern: string;
  readonly e_payload: EventFact["payload"];
  readonly e_occurred_at: Date;
  readonly e_received_at: Date;
}

/** For `select`, from a table `e`. */
export const eventFactColumns = ["id", "pattern", "payload", "occurred_at", "received_at"]
  .map((column) => `e.${column} as e_${column}`)
  .join(", ");

export function eventFactOf(row: EventFactRow): EventFact {
  return {
    id: row.e_id,
    pattern: row.e_pattern,
    payload: row.e_payload,
    occurredAt: row.e_occurred_at.toISOString(),
    receivedAt: row.e_received_at.toISOString(),
  };
}
