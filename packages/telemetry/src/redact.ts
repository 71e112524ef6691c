const mask = "***";
const deepest = 6;
const longestMessage = 8_192;

/** `idempotencyKey`, `limitKey` and their like are not secrets, so a bare "key" does not count. */
const secretName =
  /passw(or)?d|passphrase|secret|token|authorization|cookie|credential|api[-_]?key|private[-_]?key/i;
const urlPassword = /\b([a-z][a-z0-9+.-]*:\/\/[^\s:@/]*):[^\s@/]+@/gi;

/** Fields with the values of secret names masked, in plain objects and arrays. The input stays. */
export function redact(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return redactFields(fields, 0);
}

/** A text without the passwords of the URLs in it. */
export function redactText(text: string): string {
  return text.includes("://") ? text.replace(urlPassword, `$1:${mask}@`) : text;
}

/** Some libraries set what is no text. */
export function messageOf({ message }: { readonly message: unknown }): string {
  return typeof message === "string" ? message : (JSON.stringify(message) ?? String(message));
}

/**
 * What is logged of an error: type, message, stack, cause, and fields of its own that are plain
 * values. Objects are left out, since drivers hang whole commands and connections on their errors.
 */
export function viewOfError(error: unknown): unknown {
  return view(error, 0);
}

function view(error: unknown, depth: number): unknown {
  if (!(error instanceof Error)) return redactValue(error, depth);
  const shown: Record<string, unknown> = { type: error.name };
  for (const [name, value] of Object.entries(error)) {
    if (typeof value !== "object" && typeof value !== "function") shown[name] = masked(name, value);
  }
  shown["message"] = redactText(messageOf(error)).slice(0, longestMessage);
  shown["stack"] = redactText(error.stack ?? "").slice(0, longestMessage);
  if (error.cause !== undefined && depth < deepest) shown["cause"] = view(error.cause, depth + 1);
  if (error instanceof AggregateError && depth < deepest) {
    shown["errors"] = error.errors.slice(0, 10).map((each) => view(each, depth + 1));
  }
  return shown;
}

function redactFields(
  fields: Readonly<Record<string, unknown>>,
  depth: number,
): Record<string, unknown> {
  const shown: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(fields)) {
    // `err`, `req` and `res` have serializers of their own, which come after this.
    const isSerialized = depth === 0 && (name === "err" || name === "req" || name === "res");
    shown[name] = isSerialized ? value : masked(name, redactValue(value, depth + 1));
  }
  return shown;
}

function masked(name: string, value: unknown): unknown {
  if (value === undefined || value === null || value === "") return value;
  if (secretName.test(name)) return mask;
  return typeof value === "string" ? redactText(value) : value;
}

function redactValue(value: unknown, depth: number): unknown {
  if (typeof value === "string") return redactText(value);
  if (typeof value !== "object" || value === null) return value;
  if (value instanceof Error) return view(value, depth);
  if (depth >= deepest) return "(too deep)";
  if (Array.isArray(value)) return value.map((item) => redactValue(item, depth + 1));
  return isPlain(value) ? redactFields(value, depth) : value;
}

function isPlain(value: object): value is Record<string, unknown> {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
