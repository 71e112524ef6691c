/** Freezes a value and all below it, so that whoever changes it is caught. Maps keep their entries. */
export function deepFreeze<T>(value: T): T {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value;
  if (value instanceof Date) return value;
  Object.freeze(value);
  const members = value instanceof Map ? value.values() : Object.values(value);
  for (const member of members) deepFreeze(member);
  return value;
}
