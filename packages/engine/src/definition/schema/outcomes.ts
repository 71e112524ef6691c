/** What may come of a schema for a kind of value: one of these, or several of them as bits. */
export type Outcome = number;

export const fits = 1;
export const fails = 2;
/** The check comes back to itself. */
export const endless = 4;
/** It depends on more than the kind. */
export const open = fits | fails;

/** A check that is made only when its turn comes. */
export type Check = () => Outcome;

export function outcomeOf(isFit: boolean | undefined): Outcome {
  if (isFit === undefined) return open;
  return isFit ? fits : fails;
}

/** All fit; where they are made in their order, none after one that fails. */
export function all(checks: readonly Check[], inOrder: boolean): Outcome {
  let soFar = fits;
  for (const check of checks) {
    if (inOrder && (soFar & fits) === 0) break;
    const next = check();
    soFar = inOrder ? (soFar & ~fits) | next : both(soFar, next);
  }
  return soFar;
}

/** @param mayStop Those after one that fits may be left out. */
export function some(checks: readonly Check[], mayStop: boolean): Outcome {
  let soFar = fails;
  let stopped = 0;
  for (const check of checks) {
    if (mayStop) stopped |= soFar & fits;
    soFar = combined(soFar, check(), (left, right) => left || right);
  }
  return soFar | stopped;
}

/** Exactly one; none is looked at after a second one that fits. */
export function one(checks: readonly Check[]): Outcome {
  let none = true;
  let single = false;
  let done = 0;
  for (const check of checks) {
    if (!none && !single) break;
    const next = check();
    done |= next & endless;
    if (single && next & fits) done |= fails;
    single = (single && (next & fails) !== 0) || (none && (next & fits) !== 0);
    none = none && (next & fails) !== 0;
  }
  return done | (none ? fails : 0) | (single ? fits : 0);
}

export function turned(outcome: Outcome): Outcome {
  return (outcome & endless) | (outcome & fits && fails) | (outcome & fails && fits);
}

export function both(left: Outcome, right: Outcome): Outcome {
  return combined(left, right, (a, b) => a && b);
}

/** Of two that are both looked at: what has no end decides. */
function combined(
  left: Outcome,
  right: Outcome,
  join: (left: boolean, right: boolean) => boolean,
): Outcome {
  let outcome = (left | right) & endless;
  for (const a of [fits, fails]) {
    for (const b of [fits, fails]) {
      if (left & a && right & b) outcome |= join(a === fits, b === fits) ? fits : fails;
    }
  }
  return outcome;
}
