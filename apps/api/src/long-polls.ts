import type { ServerResponse } from "node:http";

/**
 * Tells for whom nothing is waited for any more: callers who have gone, and all of them when the process is asked to
 * end.
 *
 * `AbortSignal.any` would do, but leaves 60 bytes for each poll with the signal that lasts, for good; and for an
 * abort without a reason Node makes an error with its stack. Both take the API several times as long.
 */
export function openLongPolls(stopping: AbortSignal): (answer: ServerResponse) => AbortSignal {
  const waiting = new Set<AbortController>();
  stopping.addEventListener("abort", () => {
    for (const poll of waiting) poll.abort(isOver);
  });
  return (answer) => {
    const poll = new AbortController();
    waiting.add(poll);
    answer.once("close", () => {
      waiting.delete(poll);
      poll.abort(isOver);
    });
    if (stopping.aborted) poll.abort(isOver);
    return poll.signal;
  };
}

const isOver = "nobody waits for the answer";
