import type { Definition } from "./definition.ts";

/**
 * Paths: where in an instance an execution stands. A step of the definition's own list is called by
 * its id; one inside a PARALLEL is `checkout.card.charge`, one inside a MAP `ship[3].label`, and so on
 * inwards. Step ids and branch names hold neither dots nor brackets, so a path can be taken apart.
 */

/** The branch or item that a path lies in: `checkout` and `card`, `ship` and 3. */
export interface Enclosed {
  readonly path: string;
  readonly at: string | number;
  readonly stepId: string;
}

/** What the paths of a branch or an item begin with. */
export function prefixOf({ path, at }: Omit<Enclosed, "stepId">): string {
  return typeof at === "number" ? `${path}[${at}].` : `${path}.${at}.`;
}

/** Undefined for a step of the definition's own list, or what is no step's path. */
export function takeApart(path: string): Enclosed | undefined {
  const dot = path.lastIndexOf(".");
  if (dot < 0) return undefined;
  const stepId = path.slice(dot + 1);
  if (path[dot - 1] === "]") {
    const bracket = path.lastIndexOf("[", dot);
    return { path: path.slice(0, bracket), at: Number(path.slice(bracket + 1, dot - 1)), stepId };
  }
  const before = path.lastIndexOf(".", dot - 1);
  return { path: path.slice(0, before), at: path.slice(before + 1, dot), stepId };
}

/** Whether a path leads into an item of a MAP. */
export function isInItem(path: string): boolean {
  return path.includes("[");
}

/** The id of the step that a path leads to. */
export function stepIdOf(path: string): string {
  return path.slice(path.lastIndexOf(".") + 1);
}

/**
 * The path that a step has for one that looks from `from`, a path or the beginning of one: the same
 * item where both are in one.
 *
 * @returns Undefined where the step is inside a MAP that `from` is not in: any item could be meant.
 */
export function pathOfStep(
  { steps }: Pick<Definition, "steps">,
  stepId: string,
  from: string,
): string | undefined {
  const lineage = steps.get(stepId)?.lineage ?? [];
  let prefix = "";
  for (const { stepId: outer, branch } of lineage) {
    if (branch !== undefined) {
      prefix += `${outer}.${branch}.`;
      continue;
    }
    const opening = `${prefix}${outer}[`;
    if (!from.startsWith(opening)) return undefined;
    prefix = from.slice(0, from.indexOf("]", opening.length) + 2);
  }
  return prefix + stepId;
}

/** The path of the outermost MAP around a step that `from` is not in. */
export function mapAround(
  { steps }: Pick<Definition, "steps">,
  stepId: string,
  from: string,
): string | undefined {
  const lineage = steps.get(stepId)?.lineage ?? [];
  const outer = lineage.find(
    (each) => each.branch === undefined && pathOfItem(steps, each.stepId, from) === undefined,
  );
  return outer && pathOfStep({ steps }, outer.stepId, from);
}

function pathOfItem(steps: Definition["steps"], mapId: string, from: string): string | undefined {
  const path = pathOfStep({ steps }, mapId, from);
  return path !== undefined && from.startsWith(`${path}[`) ? path : undefined;
}

/** Path and iteration of an execution key. */
export function takeApartKey(key: string): { readonly path: string; readonly iteration: number } {
  const hash = key.lastIndexOf("#");
  return { path: key.slice(0, hash), iteration: Number(key.slice(hash + 1)) };
}

/**
 * Where a wait is stored: under the path of its execution, and of several beside each other under that
 * and the place of the event in the step's `events`, written so that the waits keep their order.
 */
export function waitPathOf(path: string, place: number | undefined): string {
  return place === undefined ? path : `${path}|${String(place).padStart(2, "0")}`;
}

/** The path of the execution that a wait belongs to, and the place of its event in a list. */
export function executionOfWait(waitPath: string): {
  readonly path: string;
  readonly place: number | undefined;
} {
  const bar = waitPath.indexOf("|");
  if (bar < 0) return { path: waitPath, place: undefined };
  return { path: waitPath.slice(0, bar), place: Number(waitPath.slice(bar + 1)) };
}
