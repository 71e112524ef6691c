import type { StreamEvent } from "@millrace/contract";
import { MillraceConnectionError } from "./errors.ts";
import {
  apiErrorOf,
  type CallOptions,
  type ClientOptions,
  pauseAfter,
  reasonOf,
  requestOf,
  sleep,
} from "./transport.ts";

export interface FollowOptions extends CallOptions {
  /** The id of the last event that was received: what came after it is sent. `0`: all that is stored. */
  readonly lastEventId?: string | undefined;
  /** Types of events, or patterns of them, as `workflow.step.*`; absent: all. */
  readonly types?: readonly string[] | undefined;
}

/** An event, and the id behind which a stream can be taken up again. */
export type FollowedEvent = StreamEvent & { readonly id: string };

/** Follows what a path streams, and comes back behind the last event whenever it is cut off. */
export type Follow = (path: string, options?: FollowOptions) => AsyncGenerator<FollowedEvent>;

/** The API says something every 15 s: after so long there is nobody at the other end. */
const SILENT_MS = 45_000;

export function openFollow(client: ClientOptions): Follow {
  const { attempts = 3, retryDelayMs = 100, fetch = globalThis.fetch } = client;

  return async function* follow(path, { lastEventId, types, signal } = {}) {
    let last = lastEventId;
    let failures = 0;
    // Who never got through learns of it soon; who once did comes back for as long as it takes.
    let most = attempts;
    for (;;) {
      try {
        for await (const { id, data } of blocksAfter(path, last, types, signal)) {
          failures = 0;
          most = Infinity;
          last = id ?? last;
          if (data !== undefined) yield { ...(JSON.parse(data) as StreamEvent), id: last ?? "" };
        }
        return;
      } catch (error) {
        signal?.throwIfAborted();
        failures += 1;
        const pauseMs = pauseAfter(error, retryDelayMs * 2 ** Math.min(failures - 1, 6));
        if (failures >= most || pauseMs === undefined) throw error;
        await sleep(pauseMs, signal);
      }
    }
  };

  /** Ends where the API has nothing more to send. */
  async function* blocksAfter(
    path: string,
    lastEventId: string | undefined,
    types: readonly string[] | undefined,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<Block> {
    const { url, headers } = requestOf(client, {
      method: "GET",
      path,
      query: { types },
      headers: { accept: "text/event-stream", "last-event-id": lastEventId },
    });
    const silence = watchdog(SILENT_MS);
    try {
      const response = await fetch(url, {
        headers,
        signal: signal ? AbortSignal.any([signal, silence.signal]) : silence.signal,
      });
      if (response.status === 204) return;
      if (!response.ok) throw apiErrorOf(response, await response.text());
      yield* blocksOf(response.body, silence.heard);
    } catch (error) {
      throw error instanceof TypeError || silence.signal.aborted
        ? new MillraceConnectionError("GET", url, reasonOf(error), { cause: error })
        : error;
    } finally {
      silence.stop();
    }
    // Whether there is more is for the API to say.
    throw new MillraceConnectionError("GET", url, "the stream was ended");
  }
}

interface Block {
  readonly id?: string;
  readonly data?: string;
}

/** Blocks as this API writes them: a field a line, each field once. */
async function* blocksOf(
  body: ReadableStream<Uint8Array> | null,
  heard: () => void,
): AsyncGenerator<Block> {
  const reader = body?.getReader();
  const decoder = new TextDecoder();
  let text = "";
  try {
    for (;;) {
      const { done, value } = (await reader?.read()) ?? { done: true, value: undefined };
      if (done) return;
      heard();
      text += decoder.decode(value, { stream: true });
      const blocks = text.split("\n\n");
      text = blocks.pop() ?? "";
      for (const block of blocks) yield fieldsOf(block);
    }
  } finally {
    await reader?.cancel().catch(() => {});
  }
}

function fieldsOf(block: string): Block {
  const fields: Record<string, string> = {};
  for (const line of block.split("\n")) {
    const colon = line.indexOf(": ");
    if (colon > 0) fields[line.slice(0, colon)] = line.slice(colon + 2);
  }
  return fields;
}

/** Aborts when nothing is heard for so long. */
function watchdog(ms: number) {
  const controller = new AbortController();
  const bark = () => controller.abort(new TypeError(`nothing came for ${ms} ms`));
  let timer = setTimeout(bark, ms);
  return {
    signal: controller.signal,
    heard() {
      clearTimeout(timer);
      timer = setTimeout(bark, ms);
    },
    stop: () => clearTimeout(timer),
  };
}
