import type { SimulationView } from "@millrace/contract";
import type { Definition } from "../definition/definition.ts";
import { stepIdOf } from "../definition/paths.ts";
import type { Decision } from "../state/decision.ts";

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
      ...(step.type === "EVENT_WAIT"
        ? [step.eventTimeout?.timeoutHandlerStepId, ...step.events.map((event) => event.to)]
        : []),
    ];
    for (const to of targets) if (to !== undefined) edges.set(edgeKey(stepId, to), [stepId, to]);
  }
  return [...edges.values()];
}

function edgeKey(from: string, to: string): string {
  return `${from} ${to}`;
}

/**
 * Transitions of one decision: each step that begins has come from one that has ended in it, in the
 * same branch or item.
 */
export function edgesOf(definition: Definition, { inserts, updates }: Decision): readonly string[] {
  const known = new Set(transitionsOf(definition).map(([from, to]) => edgeKey(from, to)));
  const before = new Map<string, string[]>();
  const append = (path: string): void => {
    const list = before.get(listOf(path));
    if (list === undefined) before.set(listOf(path), [stepIdOf(path)]);
    else list.push(stepIdOf(path));
  };
  for (const { path } of updates) append(path);
  return inserts.flatMap(({ path }) => {
    const edges = (before.get(listOf(path)) ?? []).map((from) => edgeKey(from, stepIdOf(path)));
    append(path);
    return edges.findLast((edge) => known.has(edge)) ?? [];
  });
}

/** What the paths of one branch or item, and of no other, begin with. */
function listOf(path: string): string {
  return path.slice(0, path.length - stepIdOf(path).length);
}
