import { CircuitState, circuitBreaker, ConsecutiveBreaker, handleWhen } from "cockatiel";
import type { CircuitBreakerPolicy } from "cockatiel";

/** Failures of one host in a row after which nothing is asked of it for a while. */
export const failuresUntilOpen = 5;
/** Then one request tries it. */
export const openMs = 10_000;
/** Breakers that are remembered; of more, those that were asked the longest ago are not. */
const mostBreakers = 1_000;

/** So many have failed that this one was not tried. */
export class CircuitOpenError extends Error {}

export interface Circuits {
  /** @throws {CircuitOpenError} */
  run<T>(tenantId: string, origin: string, call: () => Promise<T>): Promise<T>;
}

/**
 * One breaker for each host, of this process, and for each tenant: one that breaks off its own requests, say, must
 * not keep the others from the host.
 *
 * @param isFault Whether an error, or a result, says that the host is in trouble.
 */
export function openCircuits(isFault: (end: unknown) => boolean): Circuits {
  const breakers = new Map<string, CircuitBreakerPolicy>();
  return {
    async run(tenantId, origin, call) {
      const name = `${tenantId} ${origin}`;
      const breaker = breakers.get(name) ?? newBreaker(isFault);
      // As the last one, so that the first is whom nobody has asked for the longest time.
      breakers.delete(name);
      breakers.set(name, breaker);
      const [oldest] = breakers.keys();
      if (breakers.size > mostBreakers && oldest !== undefined) breakers.delete(oldest);
      // It would have this call wait for the one that tries the host.
      if (breaker.state === CircuitState.HalfOpen) throw new CircuitOpenError();
      let isTried = false;
      try {
        return await breaker.execute(() => {
          isTried = true;
          return call();
        });
      } catch (error) {
        throw isTried ? error : new CircuitOpenError();
      }
    },
  };
}

function newBreaker(isFault: (end: unknown) => boolean): CircuitBreakerPolicy {
  return circuitBreaker(handleWhen(isFault).orWhenResult(isFault), {
    halfOpenAfter: openMs,
    breaker: new ConsecutiveBreaker(failuresUntilOpen),
  });
}
