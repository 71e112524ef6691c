/**
 * Lets callers that ask the same thing at the same time share the answer: those of one turn of the
 * event loop have one call, which begins when the turn ends, and while it runs those who come wait for
 * the next one. So every answer is of a call that began after its caller asked, and never of an earlier
 * state; and those who came together go on together.
 */
export function shareCalls<T>(): (name: string, act: () => Promise<T>) => Promise<T> {
  const running = new Map<string, Promise<T>>();
  const next = new Map<string, Promise<T>>();

  function begin(name: string, act: () => Promise<T>): Promise<T> {
    next.delete(name);
    const call = act();
    running.set(name, call);
    const forget = () => {
      if (running.get(name) === call) running.delete(name);
    };
    call.then(forget, forget);
    return call;
  }

  return (name, act) => {
    const waiting = next.get(name);
    if (waiting !== undefined) return waiting;
    const shared = Promise.allSettled([endOfTurn(), running.get(name)]).then(() =>
      begin(name, act),
    );
    next.set(name, shared);
    return shared;
  };
}

function endOfTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
