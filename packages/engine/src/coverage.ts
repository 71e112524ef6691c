import type { SimulationView } from "@millrace/contract";
import type { Definition } from "./definition/definition.ts";
import type { Decision } from "./state/decision.ts";

/** Which transitions of a definition an instance has taken. */

/** @param taken By `edgeKey`, how often. @param reached Ids of steps that were entered. */
export function coverageOf(
  definition: Definition,
  taken: ReadonlyMap<string, number>,
  reached: ReadonlySet<string>,
): SimulationView["coverage"] {
  const transitions = transitionsOf(definition).map(([from, to]) => ({
    from,
    to,
    taken: taken.get(edgeKey(from, to)) ?? 0,
  }));
  return {
    transitions,
    taken: transitions.filter((each) => each.taken > 0).length,
    total: transitions.length,
    unreached: [...definition.steps.keys()].filter((stepId) => !reached.has(stepId)),
  };
}

function transitionsOf({ steps }: Definition): readonly (readonly [string, string])[] {
  const edges = new Map<string, readonly [string, string]>();
  for (const step of steps.values()) {
    const { stepId, transitions, onError } = step;
    const targets = [
      ...transitions.conditions.map(({ to }) => to),
      transitions.default,
      ...onError.map(({ to }) => to),
      step.type === "EVENT_WAIT" ? step.eventTimeout?.timeoutHandlerStepId : undefined,
    ];
    for (const to of targets) if (to !== undefined) edges.set(edgeKey(stepId, to), [stepId, to]);
  }
  return [...edges.values()];
}

function edgeKey(from: string, to: string): string {
  return `${from} ${to}`;
}

/** Transitions of one decision: each step that begins has come from one that has ended in it. */
export function edgesOf(definition: Definition, { inserts, updates }: Decision): readonly string[] {
  const known = new Set(transitionsOf(definition).map(([from, to]) => edgeKey(from, to)));
  const rows = [
    ...updates.map(({ path }) => path.replace(/^.*[./]/, "")),
    ...inserts.map(({ stepId }) => stepId),
  ];
  return inserts.flatMap(({ stepId }, index) => {
    const before = rows.slice(0, updates.length + index).toReversed();
    const from = before.find((each) => known.has(edgeKey(each, stepId)));
    return from === undefined ? [] : [edgeKey(from, stepId)];
  });
}
