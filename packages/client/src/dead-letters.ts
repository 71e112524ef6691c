import type {
  DeadLetterPage,
  DeadLetterView,
  ResolveDeadLetterRequest,
  ListDeadLettersQuery,
} from "@millrace/contract";
import type { CallOptions, Transport } from "./transport.ts";

export type DeadLetterCalls = ReturnType<typeof deadLetterCalls>;

export function deadLetterCalls(send: Transport) {
  const pathOf = (id: string) => `/v1/dead-letters/${encodeURIComponent(id)}`;
  return {
    /** Steps that killed their workers, the latest first; those that are open, unless asked otherwise. */
    async list({
      status,
      workflowId,
      instanceId,
      limit,
      cursor,
      ...options
    }: CallOptions & ListDeadLettersQuery = {}): Promise<DeadLetterPage> {
      const query = { status, workflowId, instanceId, limit, cursor };
      const path = "/v1/dead-letters";
      return (await send<DeadLetterPage>({ method: "GET", path, query, ...options })).data;
    },

    async get(id: string, options: CallOptions = {}): Promise<DeadLetterView> {
      return (await send<DeadLetterView>({ method: "GET", path: pathOf(id), ...options })).data;
    },

    /** Its instance goes on from the step. */
    async retry(
      id: string,
      { reason, requestedBy, ...options }: CallOptions & ResolveDeadLetterRequest = {},
    ): Promise<DeadLetterView> {
      const path = `${pathOf(id)}/retry`;
      const body = { reason, requestedBy };
      return (await send<DeadLetterView>({ method: "POST", path, body, ...options })).data;
    },

    /** Gives the step up; the compensation of its instance begins. */
    async discard(
      id: string,
      { reason, requestedBy, ...options }: CallOptions & ResolveDeadLetterRequest = {},
    ): Promise<DeadLetterView> {
      const path = `${pathOf(id)}/discard`;
      const body = { reason, requestedBy };
      return (await send<DeadLetterView>({ method: "POST", path, body, ...options })).data;
    },
  };
}
