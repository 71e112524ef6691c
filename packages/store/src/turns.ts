/** Runs what is asked for under one name one after the other, in the order of asking. */
export function inTurn<T>(name: string, act: () => Promise<T>): Promise<T> {
  const before = last.get(name) ?? Promise.resolve();
  const mine = before.then(act, act);
  last.set(name, mine);
  const forget = () => {
    if (last.get(name) === mine) last.delete(name);
  };
  mine.then(forget, forget);
  return mine;
}

/** By name, what was asked for last. */
const last = new Map<string, Promise<unknown>>();
