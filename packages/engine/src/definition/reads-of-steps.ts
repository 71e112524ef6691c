import type { Expression, Reads, Template } from "@millrace/expressions";
import { mergeReads } from "@millrace/expressions";
import type { Clocks, DurationValue, Step, TaskCall } from "./definition.ts";

// Which step rows to load together with an instance, so that most decisions find all they read at
// once. It is a forecast: a decision that lacks a row says so and is taken again.

/** A step whose place in the graph has not been worked out yet. */
export type Draft = Step extends infer Each
  ? Each extends Step
    ? Omit<Each, "repeats" | "reads">
    : never
  : never;

/** Steps that the search from one step looks at: it keeps the work in proportion to the steps. */
const maxAhead = 64;

/** Where an instance can go from a step, in one move, however the step ends. */
export function successorsOf(step: Draft): readonly string[] {
  const targets = [
    ...step.transitions.conditions.map(({ to }) => to),
    step.transitions.default,
    ...step.onError.map(({ to }) => to),
    ...(step.type === "EVENT_WAIT"
      ? [step.eventTimeout?.timeoutHandlerStepId, ...step.events.map(({ to }) => to)]
      : []),
  ];
  return [...new Set(targets)].filter((target) => target !== undefined);
}

/**
 * For each step, the steps whose rows a decision that settles it may read: for its own transitions,
 * for entering what follows, and on through whatever settles at once. Its own row is not among them,
 * since such a decision makes it.
 *
 * @param output The definition's, which is evaluated where an instance completes.
 */
export function readsOfSteps(
  drafts: readonly Draft[],
  output: Template | undefined,
): ReadonlyMap<string, readonly string[] | "ALL"> {
  const byId = new Map(drafts.map((draft) => [draft.stepId, draft]));
  const entering = new Map(drafts.map((draft) => [draft.stepId, readsOnEntering(draft)]));
  const leaving = new Map(drafts.map((draft) => [draft.stepId, readsOnLeaving(draft, output)]));

  return new Map(
    drafts.map((draft) => {
      const found: (Reads | undefined)[] = [leaving.get(draft.stepId)];
      // A set keeps its order and hands out what is added while it is walked.
      const ahead = new Set(successorsOf(draft));
      // It may be the last of its branch, and the step around it goes on.
      for (const { stepId: outer } of draft.lineage.toReversed()) {
        found.push(leaving.get(outer));
        const around = byId.get(outer);
        for (const to of around === undefined ? [] : successorsOf(around)) ahead.add(to);
      }
      let looked = 0;
      for (const stepId of ahead) {
        looked += 1;
        const next = byId.get(stepId);
        if (next === undefined || looked > maxAhead) break;
        found.push(entering.get(stepId));
        for (const start of startsOf(next)) ahead.add(start);
        if (settlesAtOnce(next)) {
          found.push(leaving.get(stepId));
          for (const { to } of next.transitions.conditions) ahead.add(to);
        }
        const passes = settlesAtOnce(next) || next.condition !== undefined;
        if (passes && next.transitions.default !== undefined) ahead.add(next.transitions.default);
      }
      return [draft.stepId, stepsOf(found, draft.stepId)];
    }),
  );
}

/** The same for a compensation step: what its condition, input and clocks read. */
export function readsOfCompensation(
  call: TaskCall,
  condition: Expression | undefined,
): readonly string[] | "ALL" {
  return stepsOf([condition?.reads, ...readsOfCall(call)]);
}

/** The first steps of what is inside a step. */
function startsOf(step: Draft): readonly string[] {
  if (step.type === "PARALLEL") return step.branches.map(({ start }) => start);
  return step.type === "MAP" ? [step.start] : [];
}

function settlesAtOnce({ type }: Draft): boolean {
  return type === "CHOICE" || type === "SET" || type === "EMIT_EVENT" || type === "END";
}

function readsOnEntering(step: Draft): Reads | undefined {
  return merged([step.condition?.reads, ...readsOfType(step)]);
}

function readsOfType(step: Draft): readonly (Reads | undefined)[] {
  switch (step.type) {
    case "TASK":
      return readsOfCall(step);
    case "EVENT_WAIT":
      return [
        ...step.events.flatMap(({ eventPattern, conjuncts }) => [
          eventPattern.reads,
          ...conjuncts.map(({ value }) => value.reads),
        ]),
        readsOfDuration(step.eventTimeout?.duration),
        ...readsOfClocks(step),
        step.lookback === "instance" ? undefined : readsOfDuration(step.lookback),
      ];
    case "DELAY":
      return [
        readsOfDuration(step.duration),
        readsOfDuration(step.calendar?.duration),
        step.until?.reads,
        ...readsOfClocks(step),
      ];
    case "SET":
      return step.variables.map(([, value]) => value.reads);
    case "EMIT_EVENT":
      return [step.eventPattern.reads, step.payload.reads];
    case "END":
      return [step.output?.reads, step.error?.reads, step.reason?.reads];
    case "MAP":
      return [step.items.reads, ...readsOfClocks(step)];
    case "SUB_WORKFLOW":
      return [readsOfName(step.workflowId), step.input?.reads, ...readsOfClocks(step)];
    case "PARALLEL":
      return readsOfClocks(step);
    case "CHOICE":
      return [];
  }
}

/** Without the intervals of its retries: only an attempt that fails reads them. */
function readsOnLeaving(step: Draft, output: Template | undefined): Reads | undefined {
  const mayEnd = step.type === "END" || step.transitions.default === undefined;
  return merged([
    ...step.transitions.conditions.map(({ when }) => when.reads),
    // A wait's condition is looked at again by the decision that takes the event.
    ...(step.type === "EVENT_WAIT"
      ? step.events.map(({ eventCondition }) => eventCondition?.reads)
      : []),
    mayEnd ? output?.reads : undefined,
  ]);
}

function readsOfCall(call: TaskCall): readonly (Reads | undefined)[] {
  const { scheduleTimeout, heartbeatTimeout } = call;
  const clocks = [scheduleTimeout, heartbeatTimeout];
  const names = [call.taskId, call.queue].map(readsOfName);
  return [...names, call.input?.reads, ...readsOfClocks(call), ...clocks.map(readsOfDuration)];
}

function readsOfClocks({ timeout, totalTimeout }: Clocks): readonly (Reads | undefined)[] {
  return [readsOfDuration(timeout), readsOfDuration(totalTimeout)];
}

function readsOfName(name: string | Template): Reads | undefined {
  return typeof name === "string" ? undefined : name.reads;
}

function readsOfDuration(value: DurationValue<unknown> | undefined): Reads | undefined {
  return value !== undefined && "template" in value ? value.template.reads : undefined;
}

function merged(all: readonly (Reads | undefined)[]): Reads | undefined {
  const given = all.filter((reads) => reads !== undefined);
  return given.length < 2 ? given[0] : mergeReads(given);
}

function stepsOf(all: readonly (Reads | undefined)[], except?: string): readonly string[] | "ALL" {
  const steps = merged(all)?.steps ?? [];
  return steps === "ALL" ? steps : steps.filter((stepId) => stepId !== except);
}
