/**
 * What every object of the process is. A worker writes what it decides as JSON, and goes through members with
 * `for in`, as what it is built on does: where code of users changes that, it would store what is wrong.
 */

const prototypes = Object.entries({ Object, Array, String, Number, Boolean }).map(
  ([type, { prototype }]) => [type, prototype as object] as const,
);

/** Asked after every run of a task, of whose time 0.1 µs are nothing. */
export function changeToAllObjects(): string | undefined {
  for (const [type, prototype] of prototypes) {
    if ("toJSON" in prototype) return `${type}.prototype.toJSON is set`;
  }
  for (const added in plain) return `Object.prototype.${added} is added to all objects`;
  return undefined;
}

const plain = {};

/** So that this process can still say what has happened. */
export function undoChangeToAllObjects(): void {
  for (const [, prototype] of prototypes) Reflect.deleteProperty(prototype, "toJSON");
  for (const added in plain) Reflect.deleteProperty(Object.prototype, added);
}
