import type { Template } from "@millrace/expressions";
import { defined } from "../assert.ts";
import type { SubWorkflowStep, TaskCall } from "../definition/definition.ts";
import { namedFrom } from "../definition/named.ts";
import type { NamedKind } from "../definition/named.ts";
import type { LiveExecution } from "../state/snapshot.ts";
import { evaluateTemplate } from "./scope.ts";
import type { Context } from "./standpoint.ts";
import type { Turn } from "./turn.ts";

/**
 * Whom an execution calls, where its step says so by expressions. They are evaluated once, when it is entered:
 * a retry is of the same task, in the same queue, or of the same workflow.
 */
type Called = NonNullable<LiveExecution["called"]>;

/** The execution with what its step calls. @throws ExpressionError, BadValueError */
export function withCalled(
  turn: Turn,
  execution: LiveExecution,
  names: { readonly [kind in NamedKind]?: string | Template },
  context: Context,
): LiveExecution {
  let called: { [kind in NamedKind]?: string } | undefined;
  for (const kind of ["taskId", "queue", "workflowId"] as const) {
    const name = names[kind];
    if (name === undefined || typeof name === "string") continue;
    called ??= {};
    called[kind] = namedFrom(kind, evaluateTemplate(turn, name, context));
  }
  return called === undefined ? execution : { ...execution, called };
}

/** The task that an execution calls, and its queue. */
export function taskCalled(
  { taskId, queue }: TaskCall,
  { called }: Pick<LiveExecution, "called">,
): { readonly taskId: string; readonly queue: string } {
  return { taskId: nameOf("taskId", taskId, called), queue: nameOf("queue", queue, called) };
}

/** The workflow that an execution starts. */
export function workflowCalled(
  { workflowId }: SubWorkflowStep,
  { called }: Pick<LiveExecution, "called">,
): string {
  return nameOf("workflowId", workflowId, called);
}

function nameOf(kind: NamedKind, name: string | Template, called: Called | undefined): string {
  return typeof name === "string" ? name : defined(called?.[kind], `the ${kind} of an execution`);
}
