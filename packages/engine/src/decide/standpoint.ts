import { prefixOf, stepIdOf, takeApart } from "../definition/paths.ts";
import type { ExecutionRead } from "../state/reads.ts";
import type { EventFact } from "../state/signal.ts";
import { executionKey } from "../state/snapshot.ts";
import type { Place } from "../state/snapshot.ts";
import { comesAgain } from "./execution.ts";
import { everyExecution } from "./read-rows.ts";
import type { Turn } from "./turn.ts";

/** Where an expression stands, and which branches and items are around it. */

export interface Context {
  /** The event at hand, in event conditions and the reasons of triggers. */
  readonly event?: EventFact;
  /** The branch or item in which the expression stands: an execution is a context of its own. */
  readonly within?: Place;
  /** `steps.<id>` is this execution, and not the latest one: what a compensation step undoes. */
  readonly pinned?: ExecutionRead;
}

/** What the paths of the branch or item begin with in which an expression stands. */
export function standpoint({ within, pinned }: Context): string {
  return within === undefined ? (pinned?.path ?? "") : prefixOf(within);
}

/** A branch or item, or the like of one that has ended. */
export type Around = Pick<Place, "path" | "iteration" | "at">;

/** From the innermost outwards. */
export function placesAround({ state }: Turn, within: Place | undefined): readonly Around[] {
  const places: Around[] = [];
  for (let place = within; place !== undefined;) {
    places.push(place);
    const { path, iteration }: Place = place;
    place = state.live[executionKey(path, iteration)]?.within;
  }
  return places;
}

/** The same for an execution that has ended, and whatever was around it perhaps too. */
export function placesOf(
  turn: Turn,
  { path, iteration, completion }: ExecutionRead,
): readonly Around[] {
  const places: Around[] = [];
  let inner = { path, iteration };
  for (let place = takeApart(path); place !== undefined; place = takeApart(place.path)) {
    const around = { path: place.path, iteration: passAround(turn, inner, place.path, completion) };
    places.push({ ...around, at: place.at });
    inner = around;
  }
  return places;
}

/**
 * Which pass of the step around it an execution was in. It has that pass's number itself, unless it
 * counts passes of its own; then it is the first pass that completed after it, else the last.
 */
function passAround(
  turn: Turn,
  { path, iteration }: Pick<ExecutionRead, "path" | "iteration">,
  outer: string,
  completion: number | null,
): number {
  const { definition } = turn;
  if (definition.steps.get(stepIdOf(path))?.repeats !== true) return iteration;
  const around = definition.steps.get(stepIdOf(outer));
  if (around === undefined || !comesAgain(definition, around)) return 1;
  const passes = everyExecution(turn)
    .filter((each) => each.path === outer && hasBegun(each))
    .toSorted((one, other) => one.iteration - other.iteration);
  const after = passes.find((each) => (each.completion ?? 0) > (completion ?? 0));
  return (after ?? passes.at(-1))?.iteration ?? 1;
}

/** Not so where its condition was false, its values failed, or it was one pass too many. */
function hasBegun({ stepId, status, error }: ExecutionRead): boolean {
  if (status !== "FAILED") return status !== "SKIPPED";
  const isOwn = error?.stepId === stepId;
  return !(isOwn && (error.kind === "EXPRESSION" || error.type === "MAX_ITERATIONS"));
}
