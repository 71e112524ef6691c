import { parseDuration, durationToMs, isRefusal } from "@millrace/engine";
import type { RetryPolicy } from "@millrace/engine";
import type { RetryDocument, Task } from "@millrace/sdk";
import { StartError } from "../start-failure.ts";
import { builtInTasks } from "./built-in-tasks.ts";

/** A task as a worker keeps it: what its author said of clocks and retries, in milliseconds. */
export interface KnownTask {
  readonly task: Task;
  readonly timeoutMs: number | null;
  readonly heartbeatTimeoutMs: number | null;
  readonly retry: Partial<RetryPolicy> | null;
  /** Whether each of its runs is to have a process for itself. */
  readonly isIsolated: boolean;
}

export type TaskRegistry = ReadonlyMap<string, KnownTask>;

/**
 * Those that are built in, and these.
 *
 * @param httpAllow What `http.request` may reach beside public addresses.
 * @throws StartError naming every task that is given twice, or whose clocks cannot be read.
 */
export function taskRegistry(
  tasks: readonly Task[],
  httpAllow: readonly string[] = [],
): TaskRegistry {
  const registry = new Map(builtInTasks(httpAllow).map((task) => [task.id, knownTask(task)]));
  const builtIn = new Set(registry.keys());
  const faults: string[] = [];
  for (const task of tasks) {
    if (builtIn.has(task.id)) faults.push(`task "${task.id}" is built in: choose another id`);
    else if (registry.has(task.id)) faults.push(`task "${task.id}" is defined twice`);
    try {
      registry.set(task.id, knownTask(task));
    } catch (error) {
      faults.push(`task "${task.id}": ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  if (faults.length > 0) throw new StartError(faults.join("\n"));
  return registry;
}

function knownTask(task: Task): KnownTask {
  return {
    task,
    timeoutMs: durationOf("timeout", task.timeout),
    heartbeatTimeoutMs: durationOf("heartbeatTimeout", task.heartbeatTimeout),
    retry: task.retry === undefined ? null : retryOf(task.retry),
    isIsolated: task.isolated === true,
  };
}

function retryOf({ initialInterval, maxInterval, ...rest }: RetryDocument): Partial<RetryPolicy> {
  const initialIntervalMs = durationOf("retry.initialInterval", initialInterval);
  const maxIntervalMs = durationOf("retry.maxInterval", maxInterval);
  return {
    ...rest,
    ...(initialIntervalMs !== null && { initialIntervalMs }),
    ...(maxIntervalMs !== null && { maxIntervalMs }),
  } as Partial<RetryPolicy>;
}

function durationOf(field: string, text: unknown): number | null {
  if (text === undefined) return null;
  const duration = typeof text === "string" ? parseDuration(text) : { problem: "is no text" };
  if (isRefusal(duration))
    throw new Error(`its ${field} ${JSON.stringify(text)} ${duration.problem}`);
  return durationToMs(duration, new Date(0));
}
