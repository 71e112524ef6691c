import { patternMatches } from "@millrace/engine";
import type { HistoryEntry } from "@millrace/engine";
import type { Change, Json } from "@millrace/store";

/** One entry of the history as it goes out to those who follow (CONTRACT 3, lifecycle events). */
export interface StreamEvent {
  readonly type: string;
  readonly at: Date;
  readonly tenantId: string;
  readonly workflowId: string;
  readonly workflowVersion: number;
  readonly instanceId: string;
  readonly correlationId: string | null;
  readonly version: number;
  readonly status: string;
  /** Before the last change of status that this commit had made by then; where there was none, `status`. */
  readonly oldStatus: string;
  readonly reason: string | null;
  readonly stepId: string | null;
  readonly path?: string | undefined;
  readonly iteration?: number | undefined;
  readonly actor: string;
  readonly data: Json;
}

/**
 * What a commit has to tell, one event for each of its entries. Within a commit the status moves on with
 * the entries. One after the other: of a commit with very many not all are there while some are sent.
 */
export function* streamEventsOf(change: Change): Generator<StreamEvent> {
  let status = statusBefore(change);
  let oldStatus = status;
  for (const entry of change.entries) {
    const moved = statusChange(entry);
    if (moved !== undefined) [oldStatus, status] = [moved.from, moved.to];
    const { tenantId, workflowId, workflowVersion, instanceId, correlationId } = change;
    yield {
      type: entry.type,
      at: change.at,
      tenantId,
      workflowId,
      workflowVersion,
      instanceId,
      correlationId,
      version: change.version,
      status,
      oldStatus,
      reason: reasonIn(entry.data),
      stepId: entry.stepId ?? null,
      path: entry.path,
      iteration: entry.iteration,
      actor: entry.actor ?? change.actor,
      data: entry.data ?? null,
    };
  }
}

/** @param types Patterns; none: all. */
export function isOfTypes({ type }: StreamEvent, types: readonly string[]): boolean {
  return types.length === 0 || types.some((pattern) => patternMatches(pattern, type));
}

function statusBefore({ entries, status }: Change): string {
  for (const entry of entries) {
    const moved = statusChange(entry);
    if (moved !== undefined) return moved.from;
  }
  return status;
}

interface StatusChange {
  readonly from: string;
  readonly to: string;
}

function statusChange({ type, data }: HistoryEntry): StatusChange | undefined {
  if (type !== "workflow.status" || !isObject(data)) return undefined;
  const { from, to } = data;
  return typeof from === "string" && typeof to === "string" ? { from, to } : undefined;
}

/** Why somebody did it, or what went wrong. */
function reasonIn(data: Json | undefined): string | null {
  if (!isObject(data)) return null;
  const { reason, error } = data;
  if (typeof reason === "string") return reason;
  return isObject(error) && typeof error["message"] === "string" ? error["message"] : null;
}

function isObject(value: Json | undefined): value is { readonly [key: string]: Json } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
