import type { HealthView, ReadinessView, StatsView } from "@millrace/contract";
import { type DefinitionCalls, definitionCalls } from "./definitions.ts";
import { type EventCalls, eventCalls } from "./events.ts";
import { type InstanceCalls, instanceCalls } from "./instances.ts";
import {
  type CallOptions,
  type ClientOptions,
  openTransport,
  type Transport,
} from "./transport.ts";

/**
 * The HTTP API, typed. It holds no connection and needs no closing.
 *
 * Answers are trusted to have the contract's shape: they are not parsed again here, so that a
 * newer API may add to them.
 */
export class MillraceClient {
  readonly definitions: DefinitionCalls;
  readonly instances: InstanceCalls;
  readonly events: EventCalls;
  readonly #send: Transport;

  constructor(options: ClientOptions = {}) {
    this.#send = openTransport(options);
    this.definitions = definitionCalls(this.#send);
    this.instances = instanceCalls(this.#send);
    this.events = eventCalls(this.#send);
  }

  async health(options: CallOptions = {}): Promise<HealthView> {
    return (await this.#send<HealthView>({ method: "GET", path: "/healthz", ...options })).data;
  }

  /** Also answers when the API is not ready, and then says what is missing. */
  async readiness(options: CallOptions = {}): Promise<ReadinessView> {
    const call = { method: "GET", path: "/readyz", accept: [503], ...options } as const;
    return (await this.#send<ReadinessView>(call)).data;
  }

  async stats(options: CallOptions = {}): Promise<StatsView> {
    return (await this.#send<StatsView>({ method: "GET", path: "/v1/stats", ...options })).data;
  }
}
