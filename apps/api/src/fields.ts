import { BOUNDS } from "@millrace/contract";

/**
 * The parts of a view that are asked for, as `status` or `state.variables.total`, in the shape that
 * the whole has. `id` and `version` are always there; a part that the view does not have is left out.
 */
export function pickFields(view: object, fields: readonly string[]): object {
  const picked: Record<string, unknown> = Object.create(null) as Record<string, unknown>;
  for (const field of ["id", "version", ...fields]) copy(view, picked, field.split("."));
  return picked;
}

function copy(from: object, to: Record<string, unknown>, path: readonly string[]): void {
  const length = lengthOfName(from, path);
  if (length === 0) return;
  const [key, rest] = [path.slice(0, length).join("."), path.slice(length)];
  const value: unknown = Reflect.get(from, key);
  const has = Object.hasOwn(to, key);
  if (rest.length === 0) {
    to[key] = value;
    return;
  }
  // A part of what is there as a whole already adds nothing.
  if (typeof value !== "object" || value === null || (has && to[key] === value)) return;
  const inner = has
    ? (to[key] as Record<string, unknown>)
    : (Object.create(null) as Record<string, unknown>);
  to[key] = inner;
  copy(value, inner, rest);
}

/**
 * How much of a path names a member: the name of a step in an item, as `ship[3].label`, has points in it, yet no
 * more than a definition has levels.
 */
function lengthOfName(of: object, path: readonly string[]): number {
  let length = Math.min(path.length, BOUNDS.depth);
  while (length > 0 && !Object.hasOwn(of, path.slice(0, length).join("."))) length -= 1;
  return length;
}

/** The steps whose outputs belong to these parts; undefined: all of them. */
export function outputsIn(fields: readonly string[] | undefined): readonly string[] | undefined {
  const steps = new Set<string>();
  for (const field of fields ?? ["state"]) {
    const [part = "", of = "steps", step, column = "output"] = field.split(".");
    if (!(part === "state" || part === "compensation") || of !== "steps") continue;
    // Of an item it is the path that names it.
    if (field.includes("[")) return undefined;
    if (column !== "output") continue;
    if (step === undefined) return undefined;
    steps.add(step);
  }
  return [...steps];
}
