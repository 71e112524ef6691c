import type {
  ControlQueueRequest,
  HealthView,
  QueueList,
  QueueView,
  ReadinessView,
  StatsQuery,
  StatsView,
  TaskList,
  WorkerList,
} from "@millrace/contract";
import { type CalendarCalls, calendarCalls } from "./calendars.ts";
import { type DeadLetterCalls, deadLetterCalls } from "./dead-letters.ts";
import { type DefinitionCalls, definitionCalls } from "./definitions.ts";
import { type EventCalls, eventCalls } from "./events.ts";
import { type InstanceCalls, instanceCalls } from "./instances.ts";
import { type LimitCalls, limitCalls } from "./limits.ts";
import { openFollow } from "./stream.ts";
import { type ScheduleCalls, scheduleCalls } from "./schedules.ts";
import {
  type CallOptions,
  type ClientOptions,
  openTransport,
  type Transport,
} from "./transport.ts";
import { type WebhookCalls, webhookCalls } from "./webhooks.ts";

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
  readonly calendars: CalendarCalls;
  readonly limits: LimitCalls;
  readonly deadLetters: DeadLetterCalls;
  readonly schedules: ScheduleCalls;
  readonly webhooks: WebhookCalls;
  readonly #send: Transport;

  constructor(options: ClientOptions = {}) {
    this.#send = openTransport(options);
    this.definitions = definitionCalls(this.#send);
    this.instances = instanceCalls(this.#send, openFollow(options));
    this.events = eventCalls(this.#send);
    this.calendars = calendarCalls(this.#send);
    this.limits = limitCalls(this.#send);
    this.deadLetters = deadLetterCalls(this.#send);
    this.schedules = scheduleCalls(this.#send);
    this.webhooks = webhookCalls(this.#send);
  }

  async health(options: CallOptions = {}): Promise<HealthView> {
    return (await this.#send<HealthView>({ method: "GET", path: "/healthz", ...options })).data;
  }

  /** Also answers when the API is not ready, and then says what is missing. */
  async readiness(options: CallOptions = {}): Promise<ReadinessView> {
    const call = { method: "GET", path: "/readyz", accept: [503], ...options } as const;
    return (await this.#send<ReadinessView>(call)).data;
  }

  async stats({ workflowId, ...options }: CallOptions & StatsQuery = {}): Promise<StatsView> {
    const call = { method: "GET", path: "/v1/stats", query: { workflowId }, ...options } as const;
    return (await this.#send<StatsView>(call)).data;
  }

  /** The worker processes that are alive. */
  async workers(options: CallOptions = {}): Promise<WorkerList> {
    return (await this.#send<WorkerList>({ method: "GET", path: "/v1/workers", ...options })).data;
  }

  /** Tasks that live workers know, and those that steps wait for. */
  async tasks(options: CallOptions = {}): Promise<TaskList> {
    return (await this.#send<TaskList>({ method: "GET", path: "/v1/tasks", ...options })).data;
  }

  async queues(options: CallOptions = {}): Promise<QueueList> {
    return (await this.#send<QueueList>({ method: "GET", path: "/v1/queues", ...options })).data;
  }

  /** No step of it begins on any worker, for any tenant, until it is resumed; what runs goes on. */
  async pauseQueue(
    name: string,
    { reason, requestedBy, ...options }: CallOptions & ControlQueueRequest = {},
  ): Promise<QueueView> {
    const path = `/v1/queues/${encodeURIComponent(name)}/pause`;
    const body = { reason, requestedBy };
    return (await this.#send<QueueView>({ method: "POST", path, body, ...options })).data;
  }

  async resumeQueue(
    name: string,
    { reason, requestedBy, ...options }: CallOptions & ControlQueueRequest = {},
  ): Promise<QueueView> {
    const path = `/v1/queues/${encodeURIComponent(name)}/resume`;
    const body = { reason, requestedBy };
    return (await this.#send<QueueView>({ method: "POST", path, body, ...options })).data;
  }
}
