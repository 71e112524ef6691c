import { executionKey, executionOfWait } from "@millrace/engine";
import type { Snapshot } from "@millrace/engine";
import type { ChildLink } from "./child-links.ts";
import type { Commit } from "./commit.ts";
import type { InstanceRead } from "./instances.ts";

/** The instance as its first commit makes it, without asking the database. */
export function instanceReadOf({ decision, at, create }: Commit): InstanceRead {
  const { snapshot, inserts, commands } = decision;
  const isOver = commands.some(({ kind }) => kind === "settle");
  const children = linksOf(snapshot, commands, at);
  return {
    snapshot,
    metadata: create?.metadata ?? null,
    deadline: create?.deadline ?? null,
    updatedAt: at,
    // Field by field: to spread and then add so many fields takes V8 some 30 µs.
    steps: inserts.map((row) => ({
      stepId: row.stepId,
      path: row.path,
      iteration: row.iteration,
      type: row.type,
      status: row.status,
      attempt: row.attempt,
      deliveries: 0,
      lapses: 0,
      handOvers: 0,
      taskId: row.taskId,
      queue: row.queue,
      compensates: row.compensates,
      output: row.output,
      error: row.error,
      completion: row.completion,
      entry: row.entry,
      createdAt: at,
      startedAt: row.startedAt,
      completedAt: row.completedAt,
      retryAt: null,
      workerId: null,
      awaited: false,
      blocked: null,
      lookAt: null,
      dueAt: null,
      progress: undefined,
      items: row.items,
      child: children.get(executionKey(row.path, row.iteration)),
    })),
    waits: isOver
      ? []
      : commands.flatMap((command) =>
          command.kind === "openWait"
            ? [
                {
                  ...command.wait,
                  executionPath: executionOfWait(command.wait.path).path,
                  openedAt: at,
                  matchedEventId: null,
                },
              ]
            : [],
        ),
    timers: isOver
      ? []
      : commands.flatMap((command) =>
          command.kind === "setTimer"
            ? [
                {
                  path: command.path,
                  iteration: command.iteration,
                  kind: command.timer,
                  dueAt: command.dueAt,
                },
              ]
            : [],
        ),
  };
}

function linksOf(
  { tenantId, id: instanceId }: Snapshot,
  commands: Commit["decision"]["commands"],
  requestedAt: Date,
): ReadonlyMap<string, ChildLink> {
  return new Map(
    commands.flatMap((command): [string, ChildLink][] => {
      if (command.kind !== "startChild") return [];
      const { path, iteration, attempt, childId, workflowId, detached } = command;
      const place = { tenantId, instanceId, path, iteration, attempt };
      const link = { ...place, childId, workflowId, detached, requestedAt };
      return [[executionKey(path, iteration), { ...link, startedAt: null, status: null }]];
    }),
  );
}
