import type { Redis } from "ioredis";
import { describe } from "./errors.ts";
import { type QueueLog, TroubleLog } from "./log.ts";

/** What may have changed. With a suffix (`instance.<id>`) only those who ask for it hear it. */
export type WakeTopic =
  | "instance"
  | "event"
  | "limit"
  | "queue"
  | "schedule"
  | "slot"
  | "step"
  | "stream"
  | "timer"
  | "worker";
export type WakeChannel = WakeTopic | `${WakeTopic}.${string}`;
export type WakeMessage = Readonly<Record<string, unknown>>;
/** An empty message says "look at everything": some may have been missed. */
export type WakeListener = (message: WakeMessage) => void;

/**
 * Tells other processes to look at Postgres now instead of at their next poll. A wake may be lost,
 * come late or come for nothing; whatever leans on one needs a poll behind it.
 */
export interface Wake {
  /** Sends and forgets: never throws, never waits, dropped when nobody can be reached. */
  publish(channel: WakeChannel, message: object): void;
  /** @returns Takes the listener off again. */
  subscribe(channel: WakeChannel, listener: WakeListener): () => void;
  /** Whether anybody listens now; false when nobody can be reached, true where that cannot be known. */
  isHeard(channel: WakeChannel): Promise<boolean>;
}

/** The listeners of one process by channel. A listener that throws harms no other. */
export class Listeners {
  readonly #byChannel = new Map<string, Set<WakeListener>>();
  readonly #trouble: TroubleLog;

  constructor(log: QueueLog) {
    this.#trouble = new TroubleLog(log);
  }

  /** @returns Whether it is the first one of the channel. */
  add(channel: string, listener: WakeListener): boolean {
    const listeners = this.#byChannel.get(channel);
    if (listeners) listeners.add(listener);
    else this.#byChannel.set(channel, new Set([listener]));
    return !listeners;
  }

  /** @returns Whether it was the last one of the channel. */
  remove(channel: string, listener: WakeListener): boolean {
    const listeners = this.#byChannel.get(channel);
    if (!listeners?.delete(listener) || listeners.size > 0) return false;
    return this.#byChannel.delete(channel);
  }

  call(channel: string, message: WakeMessage): void {
    for (const listener of this.#byChannel.get(channel) ?? []) {
      try {
        listener(message);
      } catch (error) {
        this.#trouble.warn({ channel }, "a wake listener threw", describe(error));
      }
    }
  }

  callAll(): void {
    for (const channel of this.#byChannel.keys()) this.call(channel, {});
  }
}

/** Reads what was sent; anything that is not an object counts as "look at everything". */
export function parseWake(text: string): WakeMessage {
  return messageOf(parsed(text));
}

/** As `parseWake`, where what was said in one turn travels as a list. */
function parseWakes(text: string): readonly WakeMessage[] {
  const sent = parsed(text);
  return Array.isArray(sent) ? sent.map(messageOf) : [messageOf(sent)];
}

function messageOf(sent: unknown): WakeMessage {
  return typeof sent === "object" && sent !== null ? { ...sent } : {};
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Messages that travel as one. */
const mostTogether = 500;

/**
 * Wakes through Redis pub/sub.
 *
 * @param subscriber Opens the connection that listens; called at the first subscription, since most
 *   processes of a fleet only publish.
 */
export function openRedisWake(
  publisher: Redis,
  subscriber: () => Redis,
  prefix: string,
  log: QueueLog,
): Wake {
  const listeners = new Listeners(log);
  const start = `${prefix}:wake:`;
  let client: Redis | undefined;

  function listening(): Redis {
    if (client) return client;
    client = subscriber();
    client.on("message", (channel: string, text: string) => {
      for (const message of parseWakes(text)) listeners.call(channel.slice(start.length), message);
    });
    let lost = false;
    client.on("close", () => {
      lost = true;
    });
    client.on("ready", () => {
      // ioredis subscribes again before it says so; what was sent in between is gone.
      if (lost) listeners.callAll();
      lost = false;
    });
    return client;
  }

  /** What this turn of the event loop has to say, by channel. */
  let outgoing = new Map<string, string[]>();

  /** A command costs some 30 µs, and a batch of commits settles many instances in one turn. */
  function send(): void {
    const messages = outgoing;
    outgoing = new Map();
    if (publisher.status !== "ready") return;
    for (const [channel, texts] of messages) {
      for (let from = 0; from < texts.length; from += mostTogether) {
        const list = texts.slice(from, from + mostTogether);
        publisher.publish(start + channel, `[${list.join(",")}]`).catch(() => {});
      }
    }
  }

  return {
    publish(channel, message) {
      if (publisher.status !== "ready") return;
      const text = JSON.stringify(message);
      if (outgoing.size === 0) setImmediate(send);
      const texts = outgoing.get(channel);
      if (texts === undefined) outgoing.set(channel, [text]);
      else texts.push(text);
    },
    subscribe(channel, listener) {
      const own: WakeListener = (message) => listener(message);
      if (listeners.add(channel, own)) {
        listening()
          .subscribe(start + channel)
          .catch(() => {});
      }
      return () => {
        if (!listeners.remove(channel, own)) return;
        client?.unsubscribe(start + channel).catch(() => {});
      };
    },
    async isHeard(channel) {
      if (publisher.status !== "ready") return false;
      const [, count] = await publisher.pubsub("NUMSUB", start + channel).catch(() => []);
      return Number(count) > 0;
    },
  };
}
