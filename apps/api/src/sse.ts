import { Readable } from "node:stream";
import type { Stream } from "./runtime.ts";

/** Server-sent events, as the HTML standard has them. */
export const SSE_MEDIA_TYPE = "text/event-stream";

/** Milliseconds after which a browser that was cut off comes back. */
const RETRY_MS = 1_000;

/** What is sent next is made when the caller has taken what was sent before, so that nothing piles up here. */
export function sseOf(stream: Stream): Readable {
  return Readable.from(textsOf(stream));
}

async function* textsOf(stream: Stream): AsyncGenerator<string> {
  yield `retry: ${RETRY_MS}\n\n`;
  for await (const { events, cursor } of stream) {
    // An id without data is no event: it says where to go on, and that the line is alive.
    if (events.length === 0) yield `id: ${cursor}\n\n`;
    else yield events.map(({ id, event }) => textOf(id, event.type, event)).join("");
  }
}

function textOf(id: string, type: string, data: object): string {
  return `id: ${id}\nevent: ${type}\ndata: ${JSON.stringify(data)}\n\n`;
}
