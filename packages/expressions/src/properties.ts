/** Properties of data: own ones only, whatever they are called. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** The names that lead from data to the host. Refused even where data holds them. */
export function isForbidden(key: string): boolean {
  return key === "__proto__" || key === "constructor" || key === "prototype";
}

/** An own property of a value, or undefined: on a missing value too, as `?.` would. */
export function readProperty(value: unknown, key: string): unknown {
  if (typeof value === "object") {
    if (value === null || !Object.hasOwn(value, key)) return undefined;
    return (value as JsonObject)[key];
  }
  if (typeof value !== "string") return undefined;
  if (key === "length") return value.length;
  return /^(?:0|[1-9]\d*)$/.test(key) ? value[Number(key)] : undefined;
}

/** What a chain of properties leads to, read as an expression would read it. */
export function readPath(value: unknown, path: readonly string[]): unknown {
  let current = value;
  for (const key of path) current = readProperty(current, key);
  return current;
}

/** Sets an own property whatever its name: assigning `__proto__` would set the prototype instead. */
export function setOwn(target: Record<string, unknown>, key: string, value: unknown): void {
  if (key === "__proto__") {
    Object.defineProperty(target, key, {
      value,
      writable: true,
      enumerable: true,
      configurable: true,
    });
  } else {
    target[key] = value;
  }
}
