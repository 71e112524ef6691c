import { executionOfWait, mapAround, pathOfStep, stepIdOf } from "../definition/paths.ts";
import { anywhereKey } from "../state/reads.ts";
import type { ReadRequest } from "../state/reads.ts";
import type { Signal } from "../state/signal.ts";
import type { Turn } from "./turn.ts";

/**
 * What a decision that lacks rows asks for: those that it lacks, and with them those that it may read
 * further on, for all of its signals. Else a chain of steps that each read another one, or a hundred
 * results of items, would cost a round of loading each.
 */
export function foresee(
  turn: Turn,
  signals: readonly Signal[],
  lacking: readonly ReadRequest[],
): readonly ReadRequest[] {
  const standpoints = [
    ...signals.flatMap(pathsOf),
    ...(turn.walkingAt === undefined ? [] : [turn.walkingAt]),
  ];
  const requests = new Map(lacking.map((request) => [nameOf(request), request]));
  for (const path of new Set(standpoints)) {
    for (const request of readsAfter(turn, path)) {
      if (!isKnown(turn, request)) requests.set(nameOf(request), request);
    }
  }
  return [...requests.values()];
}

function pathsOf(signal: Signal): readonly string[] {
  return "path" in signal && signal.path !== "" ? [executionOfWait(signal.path).path] : [];
}

/** Its own row is among what the decision makes; where all rows are read, the decision says so itself. */
function readsAfter({ definition }: Turn, from: string): readonly ReadRequest[] {
  const { reads = [] } = definition.steps.get(stepIdOf(from)) ?? {};
  if (reads === "ALL") return [];
  return reads.map((stepId) => {
    const path = pathOfStep(definition, stepId, from);
    if (path !== undefined) return { kind: "latest", path };
    return { kind: "anywhere", path: mapAround(definition, stepId, from) ?? stepId, stepId };
  });
}

function isKnown({ reads }: Turn, request: ReadRequest): boolean {
  if (reads.all) return true;
  if (request.kind === "latest") return reads.latest.has(request.path);
  if (request.kind !== "anywhere") return false;
  return reads.anywhere.has(anywhereKey(request.path, request.stepId));
}

function nameOf(request: ReadRequest): string {
  return Object.values(request).join(" ");
}
