import type { LimitPage, LimitSource, LimitView, ListLimitsQuery } from "@millrace/contract";
import type { ChangeOptions } from "./instances.ts";
import type { CallOptions, Transport } from "./transport.ts";

export type LimitCalls = ReturnType<typeof limitCalls>;

/** A limit is called `global`, `tenant`, `type:<workflow id>` or `user:<user id>`. */
export function limitCalls(send: Transport) {
  const pathOf = (id: string) => `/v1/limits/${encodeURIComponent(id)}`;
  return {
    /** Sets a limit, or changes it, from now on. */
    async put(
      id: string,
      limit: LimitSource,
      { ifMatch, ...options }: ChangeOptions = {},
    ): Promise<LimitView> {
      const headers = { "if-match": ifMatch === undefined ? undefined : `"${ifMatch}"` };
      const call = { method: "PUT", path: pathOf(id), body: limit, headers, ...options } as const;
      return (await send<LimitView>(call)).data;
    },

    /** With its use as it is now. */
    async get(id: string, options: CallOptions = {}): Promise<LimitView> {
      return (await send<LimitView>({ method: "GET", path: pathOf(id), ...options })).data;
    },

    /** In order of their ids, page by page. */
    async list({
      limit,
      cursor,
      ...options
    }: CallOptions & ListLimitsQuery = {}): Promise<LimitPage> {
      const query = { limit, cursor };
      const call = { method: "GET", path: "/v1/limits", query, ...options } as const;
      return (await send<LimitPage>(call)).data;
    },

    /** Whoever waits for it alone is admitted; a workflow goes back to what its definition says. */
    async delete(id: string, { ifMatch, ...options }: ChangeOptions = {}): Promise<void> {
      const headers = { "if-match": ifMatch === undefined ? undefined : `"${ifMatch}"` };
      await send({ method: "DELETE", path: pathOf(id), headers, ...options });
    },
  };
}
