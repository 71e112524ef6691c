/**
 * Milliseconds, or whose expression gives them: the step's own, or that of the definition. Only the
 * engine, which has the instance at hand, can evaluate it; workers hand on where it is.
 */
export type RetryInterval = number | "STEP" | "DEFINITION";

/** When a failed attempt is tried again (CONTRACT 1.3). `maxAttempts` counts the first one. */
export interface RetryPolicy {
  readonly maxAttempts: number;
  readonly initialIntervalMs: RetryInterval;
  readonly backoffCoefficient: number;
  readonly maxIntervalMs: RetryInterval;
  readonly jitter: "FULL" | "NONE";
  readonly nonRetryableErrors: readonly string[];
  readonly onExhausted: "FAIL" | "PAUSE";
}

/** A policy whose intervals have been evaluated. */
export interface EvaluatedPolicy extends RetryPolicy {
  readonly initialIntervalMs: number;
  readonly maxIntervalMs: number;
}

export const defaultRetryPolicy: EvaluatedPolicy = {
  maxAttempts: 3,
  initialIntervalMs: 1_000,
  backoffCoefficient: 2,
  maxIntervalMs: 60_000,
  jitter: "FULL",
  nonRetryableErrors: [],
  onExhausted: "FAIL",
};

/** Merges field by field; the first that names a field wins, the default comes last. */
export function resolveRetryPolicy(
  ...layers: readonly (Partial<RetryPolicy> | undefined)[]
): RetryPolicy {
  const policy: RetryPolicy = { ...defaultRetryPolicy };
  for (const layer of layers.toReversed()) {
    const given = Object.entries(layer ?? {}).filter(([, value]) => value !== undefined);
    Object.assign(policy, Object.fromEntries(given));
  }
  return policy;
}

/**
 * Milliseconds before the attempt after `attempt` (from 1); undefined when none is left.
 *
 * @param random From 0 up to 1, spreads the delay where the policy asks for jitter. It comes from
 *   outside so that a decision stays repeatable.
 */
export function nextAttemptDelayMs(
  policy: EvaluatedPolicy,
  attempt: number,
  random: number,
): number | undefined {
  if (attempt >= policy.maxAttempts) return undefined;
  const factor = policy.backoffCoefficient ** (attempt - 1);
  // Zero times a factor that has grown to Infinity would be NaN.
  const grown = policy.initialIntervalMs === 0 ? 0 : policy.initialIntervalMs * factor;
  const delay = Math.min(grown, policy.maxIntervalMs);
  return Math.round(policy.jitter === "FULL" ? delay * random : delay);
}

/**
 * A number from 0 up to 1 that depends on the text alone: jitter that replays the same. FNV-1a, then
 * the last mixing of MurmurHash3, without which texts that differ only at their end come out alike.
 */
export function spread(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index++) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return ((hash ^ (hash >>> 16)) >>> 0) / 0x1_0000_0000;
}
