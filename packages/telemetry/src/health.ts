import { redactText } from "./redact.ts";

export interface HealthCheck {
  readonly name: string;
  readonly status: "ok" | "failed";
  /** What is wrong; empty when nothing is. */
  readonly detail: string;
  /** How long it has been failing, by the checks made. Absent when it is not, or was never watched. */
  readonly sinceMs?: number;
}

export interface HealthReport {
  readonly status: "ok" | "failed";
  readonly checks: readonly HealthCheck[];
}

/** Each resolves when the dependency answers and rejects with what is wrong. */
export type Checks = Readonly<Record<string, () => Promise<void>>>;

export interface HealthOptions {
  /** How long one check may take. 2 s when absent. */
  readonly timeoutMs?: number;
}

/** Makes all checks at once. Never rejects, and settles within the timeout. */
export async function checkAll(
  checks: Checks,
  { timeoutMs = 2_000 }: HealthOptions = {},
): Promise<HealthReport> {
  const results = await Promise.all(
    Object.entries(checks).map(([name, check]) => checkOne(name, check, timeoutMs)),
  );
  return {
    status: results.every(({ status }) => status === "ok") ? "ok" : "failed",
    checks: results,
  };
}

/**
 * Watches the checks over time, so that a report says since when one fails. Reports asked for at the
 * same time are one: a probe that knocks fast costs no more than one that waits.
 */
export function createHealth(
  checks: Checks,
  options: HealthOptions = {},
): () => Promise<HealthReport> {
  const failingSince = new Map<string, number>();
  let running: Promise<HealthReport> | undefined;

  async function report(): Promise<HealthReport> {
    const { status, checks: results } = await checkAll(checks, options);
    const now = performance.now();
    const watched = results.map((result) => {
      if (result.status === "ok") {
        failingSince.delete(result.name);
        return result;
      }
      const since = failingSince.get(result.name) ?? now;
      failingSince.set(result.name, since);
      return { ...result, sinceMs: Math.round(now - since) };
    });
    return { status, checks: watched };
  }

  return () => {
    running ??= report().finally(() => {
      running = undefined;
    });
    return running;
  };
}

async function checkOne(
  name: string,
  check: () => Promise<void>,
  timeoutMs: number,
): Promise<HealthCheck> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${timeoutMs} ms`)), timeoutMs);
  });
  try {
    await Promise.race([check(), late]);
    return { name, status: "ok", detail: "" };
  } catch (error) {
    return { name, status: "failed", detail: redactText(messageOf(error)) };
  } finally {
    clearTimeout(timer);
  }
}

/** Connection errors may carry a code and an empty message. */
function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.message || ("code" in error ? String(error.code) : error.name);
}
