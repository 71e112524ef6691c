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
  const [key = "", ...rest] = path;
  if (!Object.hasOwn(from, key)) return;
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
