import {
  BOUNDS,
  type BulkAnswer,
  type BulkRequest,
  type CancelRequest,
  type CompensationPlanView,
  type ConsistencyView,
  type HistoryEntry,
  type HistoryPage,
  type HistoryQuery,
  type InstanceOrder,
  type InstancePage,
  type InstanceStatus,
  type InstanceView,
  isSettled,
  type JsonValue,
  type ListStepsQuery,
  type PatchRequest,
  type PauseRequest,
  type PromoteRequest,
  type RepairView,
  type ResumeRequest,
  type RetryRequest,
  type StartBatchAnswer,
  type StartInstanceRequest,
  type StateAtView,
  type StepExecutionView,
  type StepPage,
  type WhyView,
} from "@millrace/contract";
import { MillraceWaitTimeoutError } from "./errors.ts";
import type { Follow, FollowOptions } from "./stream.ts";
import { type CallOptions, sleep, type Transport } from "./transport.ts";

export interface StartOptions extends CallOptions {
  /** The same key and body again, within 24 hours, answer the instance of the first time. */
  readonly idempotencyKey?: string | undefined;
}

export interface ChangeOptions extends CallOptions {
  /** The version that the caller has read: 412 when the instance has moved on since. */
  readonly ifMatch?: number | undefined;
}

export interface GetOptions extends CallOptions {
  /** Answer when settled, but no later than after this many seconds. */
  readonly waitSeconds?: number | undefined;
}

export interface WaitOptions extends CallOptions {
  /** Default: as long as it takes, or until `signal` is aborted. */
  readonly timeoutMs?: number | undefined;
}

export interface InstanceFilter {
  readonly ids?: readonly string[] | undefined;
  readonly status?: InstanceStatus | readonly InstanceStatus[] | undefined;
  readonly workflowId?: string | undefined;
  readonly workflowVersion?: number | undefined;
  readonly correlationId?: string | undefined;
  readonly tenantId?: string | undefined;
  readonly currentStep?: string | undefined;
  readonly waitingFor?: string | undefined;
  readonly createdAfter?: string | undefined;
  readonly createdBefore?: string | undefined;
  readonly updatedAfter?: string | undefined;
  readonly updatedBefore?: string | undefined;
  /** Path below `variables` → the value that stands there. */
  readonly variables?: Readonly<Record<string, JsonValue>> | undefined;
}

export interface ListInstances extends InstanceFilter {
  readonly order?: InstanceOrder | undefined;
  readonly limit?: number | undefined;
  readonly cursor?: string | undefined;
}

/** One long poll of `wait`. Proxies tend to cut connections that are silent for a minute. */
const POLL_SECONDS = 30;
/** Between polls, so that an API which answers at once is not called in a tight loop. */
const POLL_PAUSE_MS = 100;

export type InstanceCalls = ReturnType<typeof instanceCalls>;

export function instanceCalls(send: Transport, follow: Follow) {
  return {
    async start(request: StartInstanceRequest, options: StartOptions = {}): Promise<InstanceView> {
      const { data } = await send<InstanceView>({
        method: "POST",
        path: "/v1/instances",
        body: request,
        headers: { "idempotency-key": options.idempotencyKey },
        signal: options.signal,
      });
      return data;
    },

    /** Up to 1,000 starts; each has its own result. */
    async startBatch(
      requests: readonly StartInstanceRequest[],
      options: StartOptions = {},
    ): Promise<StartBatchAnswer> {
      const { data } = await send<StartBatchAnswer>({
        method: "POST",
        path: "/v1/instances:batch",
        body: { items: requests },
        headers: { "idempotency-key": options.idempotencyKey },
        signal: options.signal,
      });
      return data;
    },

    get,

    /**
     * Waits until the instance is settled: ended, and its compensation too.
     *
     * @throws {MillraceWaitTimeoutError} When that takes longer than `timeoutMs`.
     */
    async wait(id: string, options: WaitOptions = {}): Promise<InstanceView> {
      const { signal, timeoutMs = Number.POSITIVE_INFINITY } = options;
      const until = performance.now() + timeoutMs;
      for (;;) {
        const leftMs = Math.max(0, until - performance.now());
        const waitSeconds = Math.min(POLL_SECONDS, Math.ceil(leftMs) / 1_000);
        const instance = await get(id, { waitSeconds, signal });
        if (isSettled(instance)) return instance;
        if (performance.now() >= until) throw new MillraceWaitTimeoutError(instance, timeoutMs);
        await sleep(POLL_PAUSE_MS, signal);
      }
    },

    list,

    /**
     * Every change as it is committed, from the beginning or behind `lastEventId`, until the instance has
     * settled as COMPLETED or CANCELLED. A connection that is lost is taken up again.
     *
     * @throws {MillraceConnectionError} When nobody answers at the first.
     */
    follow: (id: string, options: FollowOptions = {}) => follow(`${pathOf(id)}/stream`, options),

    /** Every change of all instances from now on, or behind `lastEventId`. */
    followAll: (options: FollowOptions = {}) => follow("/v1/stream", options),

    /** All instances that match, read page by page. */
    async *each(
      filter: ListInstances = {},
      options: CallOptions = {},
    ): AsyncGenerator<InstanceView, void, undefined> {
      let cursor = filter.cursor;
      do {
        const page = await list({ limit: BOUNDS.pageSize, ...filter, cursor }, options);
        yield* page.items;
        cursor = page.nextCursor ?? undefined;
      } while (cursor !== undefined);
    },

    /** The same to many instances, each for itself; `nextCursor` goes on with those behind them. */
    async bulk(request: BulkRequest, options: CallOptions = {}): Promise<BulkAnswer> {
      const path = "/v1/instances:bulk";
      return (await send<BulkAnswer>({ method: "POST", path, body: request, ...options })).data;
    },

    cancel: (id: string, request: CancelRequest = {}, options: ChangeOptions = {}) =>
      change("POST", `${pathOf(id)}/cancel`, request, options),

    pause: (id: string, request: PauseRequest = {}, options: ChangeOptions = {}) =>
      change("POST", `${pathOf(id)}/pause`, request, options),

    resume: (id: string, request: ResumeRequest = {}, options: ChangeOptions = {}) =>
      change("POST", `${pathOf(id)}/resume`, request, options),

    retry: (id: string, request: RetryRequest = {}, options: ChangeOptions = {}) =>
      change("POST", `${pathOf(id)}/retry`, request, options),

    /** To the head of the queues in which it waits for a slot. */
    promote: (id: string, request: PromoteRequest = {}, options: ChangeOptions = {}) =>
      change("POST", `${pathOf(id)}/promote`, request, options),

    /** JSON merge patch; the API insists on the version that the caller has read. */
    patch: (
      id: string,
      patch: PatchRequest,
      options: ChangeOptions & { readonly ifMatch: number },
    ) => change("PATCH", pathOf(id), patch, options),

    /** What a cancel, for this reason, would undo now. Cancels nothing. */
    async compensationPlan(
      id: string,
      { reason, ...options }: CallOptions & { readonly reason?: string | undefined } = {},
    ): Promise<CompensationPlanView> {
      const { data } = await send<CompensationPlanView>({
        method: "GET",
        path: `${pathOf(id)}/compensation-plan`,
        query: { reason },
        ...options,
      });
      return data;
    },

    /** As it was at one of its versions; the latest where none is named. */
    async state(
      id: string,
      { version, ...options }: CallOptions & { readonly version?: number | undefined } = {},
    ): Promise<StateAtView> {
      const { data } = await send<StateAtView>({
        method: "GET",
        path: `${pathOf(id)}/state`,
        query: { version },
        ...options,
      });
      return data;
    },

    /** Why it is not moving. */
    async why(id: string, options: CallOptions = {}): Promise<WhyView> {
      const path = `${pathOf(id)}/why`;
      return (await send<WhyView>({ method: "GET", path, ...options })).data;
    },

    /** Whether what is stored of it agrees with itself. */
    async consistency(id: string, options: CallOptions = {}): Promise<ConsistencyView> {
      const path = `${pathOf(id)}/consistency`;
      return (await send<ConsistencyView>({ method: "GET", path, ...options })).data;
    },

    /** Makes good what the check finds, as far as that needs nobody's judgement. */
    async repair(id: string, options: CallOptions = {}): Promise<RepairView> {
      const path = `${pathOf(id)}/repair`;
      return (await send<RepairView>({ method: "POST", path, ...options })).data;
    },

    /** One page of the executions of its steps, those of one path where one is named. */
    steps,

    /** Every execution of its steps, read page by page. */
    async *eachStep(
      id: string,
      query: ListStepsQuery = {},
      options: CallOptions = {},
    ): AsyncGenerator<StepExecutionView, void, undefined> {
      let cursor = query.cursor;
      do {
        const page = await steps(id, { limit: BOUNDS.pageSize, ...query, cursor }, options);
        yield* page.items;
        cursor = page.nextCursor ?? undefined;
      } while (cursor !== undefined);
    },

    /** One page of every change, oldest first. */
    history,

    /** Every change, oldest first, read page by page. */
    async *eachChange(
      id: string,
      options: CallOptions = {},
    ): AsyncGenerator<HistoryEntry, void, undefined> {
      let cursor: string | undefined;
      do {
        const page = await history(id, { limit: BOUNDS.pageSize, cursor }, options);
        yield* page.items;
        cursor = page.nextCursor ?? undefined;
      } while (cursor !== undefined);
    },
  };

  async function get(id: string, { waitSeconds, signal }: GetOptions = {}): Promise<InstanceView> {
    const { data } = await send<InstanceView>({
      method: "GET",
      path: pathOf(id),
      query: { wait: waitSeconds },
      patienceMs: (waitSeconds ?? 0) * 1_000,
      signal,
    });
    return data;
  }

  async function list(query: ListInstances = {}, options: CallOptions = {}): Promise<InstancePage> {
    const { variables = {}, ...rest } = query;
    const filters = Object.entries(variables).map(([path, value]) => [
      `variables.${path}`,
      JSON.stringify(value),
    ]);
    const { data } = await send<InstancePage>({
      method: "GET",
      path: "/v1/instances",
      query: { ...rest, ...Object.fromEntries(filters) },
      ...options,
    });
    return data;
  }

  async function steps(
    id: string,
    query: ListStepsQuery = {},
    options: CallOptions = {},
  ): Promise<StepPage> {
    const path = `${pathOf(id)}/steps`;
    return (await send<StepPage>({ method: "GET", path, query, ...options })).data;
  }

  async function history(
    id: string,
    query: HistoryQuery = {},
    options: CallOptions = {},
  ): Promise<HistoryPage> {
    const { data } = await send<HistoryPage>({
      method: "GET",
      path: `${pathOf(id)}/history`,
      query,
      ...options,
    });
    return data;
  }

  async function change(
    method: "POST" | "PATCH",
    path: string,
    body: unknown,
    { ifMatch, signal }: ChangeOptions,
  ): Promise<InstanceView> {
    const headers = { "if-match": ifMatch === undefined ? undefined : `"${ifMatch}"` };
    const { data } = await send<InstanceView>({ method, path, body, headers, signal });
    return data;
  }
}

function pathOf(id: string): string {
  return `/v1/instances/${encodeURIComponent(id)}`;
}
