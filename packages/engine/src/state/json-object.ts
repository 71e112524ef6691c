/** JSON objects whose keys may have any name. */

/** Equal as JSON, the order of keys apart. */
export function sameJson(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (a instanceof Date || b instanceof Date) {
    return a instanceof Date && b instanceof Date && a.getTime() === b.getTime();
  }
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const keysOfA = Object.keys(a);
  if (keysOfA.length !== Object.keys(b).length) return false;
  const [left, right] = [a as Record<string, unknown>, b as Record<string, unknown>];
  return keysOfA.every((key) => Object.hasOwn(right, key) && sameJson(left[key], right[key]));
}

/** As an own property, whatever its name: `__proto__` too is only a key. */
export function put<T>(object: Record<string, T>, key: string, value: T): void {
  if (key !== "__proto__") {
    object[key] = value;
    return;
  }
  Object.defineProperty(object, key, {
    value,
    writable: true,
    enumerable: true,
    configurable: true,
  });
}

export function mapValues<T, R>(
  object: { readonly [key: string]: T },
  map: (value: T, key: string) => R,
): Record<string, R> {
  const mapped: Record<string, R> = {};
  for (const [key, value] of Object.entries(object)) put(mapped, key, map(value, key));
  return mapped;
}

export function isEmpty(object: object): boolean {
  return Object.keys(object).length === 0;
}
