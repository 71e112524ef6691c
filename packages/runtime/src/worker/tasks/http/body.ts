interface EncodedBody {
  readonly body: string | null;
  /** Undefined without a body. */
  readonly contentType?: string;
}

/**
 * What is sent: a text as it is, anything else as JSON, or as a form where the header says so. Nothing for
 * null, which is also what an expression without a value is.
 */
export function encodedBody(value: unknown, contentType: string | undefined): EncodedBody {
  if (value === undefined || value === null) return { body: null };
  if (typeof value === "string") {
    return { body: value, contentType: contentType ?? "text/plain;charset=UTF-8" };
  }
  if (contentType?.startsWith("application/x-www-form-urlencoded") && typeof value === "object") {
    return { body: formOf(value), contentType };
  }
  return { body: JSON.stringify(value), contentType: contentType ?? "application/json" };
}

function formOf(fields: object): string {
  const form = new URLSearchParams();
  for (const [name, value] of Object.entries(fields)) {
    for (const each of Array.isArray(value) ? (value as unknown[]) : [value as unknown]) {
      form.append(name, typeof each === "string" ? each : JSON.stringify(each));
    }
  }
  return String(form);
}
