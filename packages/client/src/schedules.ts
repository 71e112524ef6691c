import type {
  BackfillAnswer,
  BackfillRequest,
  ControlScheduleRequest,
  JsonObject,
  ListScheduleRunsQuery,
  ListSchedulesQuery,
  NextTicksAnswer,
  NextTicksQuery,
  ScheduleDocument,
  SchedulePage,
  ScheduleRunPage,
  ScheduleRunView,
  ScheduleView,
} from "@millrace/contract";
import type { CallOptions, Transport } from "./transport.ts";

export type ScheduleCalls = ReturnType<typeof scheduleCalls>;

/** Of a change: the version that the caller has read, which must be the one that there is. */
export interface IfMatch {
  readonly ifMatch?: number | undefined;
}

export function scheduleCalls(send: Transport) {
  const pathOf = (id: string) => `/v1/schedules/${encodeURIComponent(id)}`;
  const headersOf = ({ ifMatch }: IfMatch) =>
    ifMatch === undefined ? {} : { headers: { "if-match": `"${ifMatch}"` } };
  return {
    /** Makes a schedule under its own id, or a new one. The same again is no other. */
    async create(schedule: ScheduleDocument, options: CallOptions = {}): Promise<ScheduleView> {
      const call = { method: "POST", path: "/v1/schedules", body: schedule, ...options } as const;
      return (await send<ScheduleView>(call)).data;
    },

    /** Makes it where there is none, else replaces it. */
    async put(
      id: string,
      schedule: ScheduleDocument,
      { ifMatch, ...options }: CallOptions & IfMatch = {},
    ): Promise<ScheduleView & { readonly created: boolean }> {
      const { data, status } = await send<ScheduleView>({
        method: "PUT",
        path: pathOf(id),
        body: schedule,
        ...headersOf({ ifMatch }),
        ...options,
      });
      return { ...data, created: status === 201 };
    },

    /** A JSON merge patch: null removes a member. */
    async patch(
      id: string,
      patch: JsonObject,
      { ifMatch, ...options }: CallOptions & IfMatch = {},
    ): Promise<ScheduleView> {
      const { data } = await send<ScheduleView>({
        method: "PATCH",
        path: pathOf(id),
        body: patch,
        ...headersOf({ ifMatch }),
        ...options,
      });
      return data;
    },

    /** With its next ticks and its last runs. */
    async get(id: string, options: CallOptions = {}): Promise<ScheduleView> {
      return (await send<ScheduleView>({ method: "GET", path: pathOf(id), ...options })).data;
    },

    async list(query: ListSchedulesQuery = {}, options: CallOptions = {}): Promise<SchedulePage> {
      const call = { method: "GET", path: "/v1/schedules", query, ...options } as const;
      return (await send<SchedulePage>(call)).data;
    },

    /** Instances that it has started stay. */
    async delete(id: string, { ifMatch, ...options }: CallOptions & IfMatch = {}): Promise<void> {
      const call = { method: "DELETE", path: pathOf(id), ...headersOf({ ifMatch }) } as const;
      await send<undefined>({ ...call, ...options });
    },

    async pause(
      id: string,
      { reason, requestedBy, ...options }: CallOptions & ControlScheduleRequest = {},
    ): Promise<ScheduleView> {
      const path = `${pathOf(id)}/pause`;
      const body = { reason, requestedBy };
      return (await send<ScheduleView>({ method: "POST", path, body, ...options })).data;
    },

    async resume(
      id: string,
      { reason, requestedBy, ...options }: CallOptions & ControlScheduleRequest = {},
    ): Promise<ScheduleView> {
      const path = `${pathOf(id)}/resume`;
      const body = { reason, requestedBy };
      return (await send<ScheduleView>({ method: "POST", path, body, ...options })).data;
    },

    /** Starts a run now, whatever its ticks say. */
    async trigger(
      id: string,
      {
        reason,
        requestedBy,
        idempotencyKey,
        ...options
      }: CallOptions &
        ControlScheduleRequest & { readonly idempotencyKey?: string | undefined } = {},
    ): Promise<ScheduleRunView> {
      const path = `${pathOf(id)}/trigger`;
      const body = { reason, requestedBy };
      const headers = { "idempotency-key": idempotencyKey };
      return (await send<ScheduleRunView>({ method: "POST", path, body, headers, ...options }))
        .data;
    },

    /** Runs the ticks of a range of the past that have not run. */
    async backfill(
      id: string,
      range: BackfillRequest,
      options: CallOptions = {},
    ): Promise<BackfillAnswer> {
      const path = `${pathOf(id)}/backfill`;
      return (await send<BackfillAnswer>({ method: "POST", path, body: range, ...options })).data;
    },

    async next(
      id: string,
      query: NextTicksQuery = {},
      options: CallOptions = {},
    ): Promise<NextTicksAnswer> {
      const path = `${pathOf(id)}/next`;
      return (await send<NextTicksAnswer>({ method: "GET", path, query, ...options })).data;
    },

    /** What has come of each tick, the latest first. */
    async runs(
      id: string,
      query: ListScheduleRunsQuery = {},
      options: CallOptions = {},
    ): Promise<ScheduleRunPage> {
      const path = `${pathOf(id)}/runs`;
      return (await send<ScheduleRunPage>({ method: "GET", path, query, ...options })).data;
    },
  };
}
