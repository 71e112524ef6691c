import type {
  Expression,
  Json,
  Reads as ExpressionReads,
  Scope,
  Template,
} from "@millrace/expressions";
import { stepIdOf } from "../definition/paths.ts";
import type { EventFact } from "../state/signal.ts";
import { executionKey } from "../state/snapshot.ts";
import type { InstanceStatus } from "../state/status.ts";
import { MissingReads } from "./read-rows.ts";
import { allowedStatus } from "./slot.ts";
import { placesAround, placesOf } from "./standpoint.ts";
import type { Around, Context } from "./standpoint.ts";
import { stepsFor } from "./step-views.ts";
import type { StepView } from "./step-views.ts";
import type { Turn } from "./turn.ts";

/** What expressions see. Only the steps that an expression names are looked up. */

interface Evaluable {
  readonly reads: ExpressionReads;
}

export function evaluateCondition(turn: Turn, condition: Expression, context?: Context): boolean {
  return Boolean(condition.evaluate(scopeFor(turn, condition, context)));
}

/** Undefined where the template's value is. */
export function evaluateTemplate(
  turn: Turn,
  template: Template,
  context?: Context,
): Json | undefined {
  return template.evaluate(scopeFor(turn, template, context)) as Json | undefined;
}

/** @throws MissingReads */
export function scopeFor(turn: Turn, { reads }: Evaluable, context: Context = {}): Scope {
  const { state } = turn;
  const { input, variables } = state;
  const { event } = context;
  const steps = stepsFor(turn, reads, context);
  const now = reads.now ? turn.now.toISOString() : "";
  const instance = reads.instance ? instanceView(turn, steps) : undefined;
  const workflow = { input, variables, steps, instance };
  const scope = { now, workflow, input, variables, steps, event: event && eventView(event) };
  return reads.item ? { ...scope, ...itemRoots(turn, context) } : scope;
}

/** `item` and `index` are those of the innermost MAP; a name of its own shows an outer item too. */
function itemRoots(turn: Turn, { within, pinned }: Context): Readonly<Record<string, Json>> {
  const roots: Record<string, Json> = {};
  const around = pinned === undefined ? placesAround(turn, within) : placesOf(turn, pinned);
  for (const place of around) {
    const { path, at } = place;
    const current = turn.definition.steps.get(stepIdOf(path));
    if (typeof at !== "number" || current?.type !== "MAP") continue;
    const item = itemsOf(turn, place)[at] ?? null;
    for (const [name, value] of [
      ["item", item],
      ["index", at],
      [current.itemName, item],
    ] as const) {
      if (!Object.hasOwn(roots, name)) roots[name] = value;
    }
  }
  return roots;
}

/** @throws MissingReads */
function itemsOf(turn: Turn, { path, iteration }: Around): readonly Json[] {
  const key = executionKey(path, iteration);
  const items = turn.inserts.get(key)?.input ?? turn.reads.inputs.get(key);
  if (items === undefined) throw new MissingReads([{ kind: "input", path, iteration }]);
  return items as readonly Json[];
}

function instanceView(turn: Turn, steps: Readonly<Record<string, StepView>>) {
  const { state } = turn;
  const { id, workflowId, workflowVersion, input, variables, cancellation } = state;
  const { correlationId, tenantId, userId } = state;
  return {
    id,
    status: statusSeen(turn),
    workflowId,
    workflowVersion,
    input,
    correlationId,
    tenantId,
    userId,
    createdAt: state.createdAt.toISOString(),
    startedAt: state.startedAt?.toISOString() ?? null,
    cancellation,
    state: { input, variables, steps },
  };
}

/** What has been waiting runs again while it moves on, though it may come to wait once more (CONTRACT 2). */
function statusSeen(turn: Turn): InstanceStatus {
  const { status } = turn.state;
  return turn.moving && status === "WAITING_FOR_EVENT" ? allowedStatus(turn, "RUNNING") : status;
}

/** The event as the outside knows it (CONTRACT 1.2). */
export function eventView({ id, pattern, payload, occurredAt }: EventFact) {
  return { id, pattern, payload, occurredAt };
}
