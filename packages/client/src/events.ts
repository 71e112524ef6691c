import type {
  PublishBatchAnswer,
  PublishEventAnswer,
  PublishEventRequest,
} from "@millrace/contract";
import type { CallOptions, Transport } from "./transport.ts";

export type EventCalls = ReturnType<typeof eventCalls>;

export function eventCalls(send: Transport) {
  return {
    /** Give the event an `id` to be able to publish it again without a second effect. */
    async publish(
      event: PublishEventRequest,
      options: CallOptions = {},
    ): Promise<PublishEventAnswer> {
      const { data } = await send<PublishEventAnswer>({
        method: "POST",
        path: "/v1/events",
        body: event,
        ...options,
      });
      return data;
    },

    /** Up to 1,000 events; each has its own result. */
    async publishBatch(
      events: readonly PublishEventRequest[],
      options: CallOptions = {},
    ): Promise<PublishBatchAnswer> {
      const { data } = await send<PublishBatchAnswer>({
        method: "POST",
        path: "/v1/events:batch",
        body: { items: events },
        ...options,
      });
      return data;
    },
  };
}
