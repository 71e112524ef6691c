import type { Duplex } from "node:stream";

/**
 * The channel between a worker and a cell: messages as lines of JSON on a pipe. It is not Node's own, which
 * hangs on `process`, where every task finds it, and through which a line that is no message kills whoever reads it.
 */
export interface Channel {
  /** Whoever has gone hears nothing, and is no reason to fail. */
  send(message: object): void;
}

/** Far more than any message has. */
const mostCharacters = 1_000_000;

/** @param hear Gets each line that is JSON: whether it is a message is for `hear` to say. */
export function openChannel(pipe: Duplex, hear: (message: unknown) => void): Channel {
  let rest = "";
  pipe.setEncoding("utf8");
  // It closes then.
  pipe.on("error", () => {});
  pipe.on("data", (text: string) => {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    if (rest.length > mostCharacters) pipe.destroy();
    for (const line of lines) hear(parse(line));
  });
  return {
    // On a line of its own, whatever somebody else has written there and not ended.
    send: (message) => void pipe.write(`\n${JSON.stringify(message)}\n`),
  };
}

function parse(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}
