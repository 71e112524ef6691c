import { StreamEvent, StreamQuery } from "@millrace/contract";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { FastifyPluginAsyncZod } from "fastify-type-provider-zod";
import * as z from "zod";
import { callerOf, lastEventIdOf } from "../headers.ts";
import { InstancePath } from "../instance-path.ts";
import type { ApiContext, FollowRequest, Stream } from "../runtime.ts";
import { watchAnswers } from "../open-answers.ts";
import { SSE_MEDIA_TYPE, sseOf } from "../sse.ts";

const instanceSchema = {
  tags: ["instances"],
  operationId: "followInstance",
  summary: "Follow an instance: its history as server-sent events",
  description:
    "From the beginning, or behind the event that `Last-Event-ID` names; an id is also a cursor of the instance's history. The event's name is its `type`. The stream ends when the instance has settled as COMPLETED or CANCELLED, and is 204 to whoever asks for more then.",
  params: InstancePath,
  querystring: StreamQuery,
  response: { 200: StreamEvent, 204: z.null() },
};
const allSchema = {
  tags: ["instances"],
  operationId: "followAll",
  summary: "Follow all instances of the tenant",
  description:
    "From now on, or behind the event that `Last-Event-ID` names; `0` is the beginning of all that is stored. In the order of their transactions, so that none is passed over; those of one instance in the order of its versions. What retention has deleted is not there any more.",
  querystring: StreamQuery,
  response: { 200: StreamEvent },
};
const config = {
  mediaType: SSE_MEDIA_TYPE,
  requestHeaders: ["Last-Event-ID"],
} as const;

export const streamRoutes: FastifyPluginAsyncZod<ApiContext> = async (
  app,
  { runtime, stopping },
) => {
  const endOf = watchAnswers(stopping);
  app.get(
    "/v1/instances/:id/stream",
    {
      schema: instanceSchema,
      config: { ...config, errors: ["INSTANCE_NOT_FOUND", "INVALID_CURSOR"] },
      exposeHeadRoute: false,
    },
    async (request, reply) => {
      const asked = followRequest(request, reply, request.query);
      const stream = await runtime.followInstance(callerOf(request), request.params.id, asked);
      return stream === undefined ? reply.code(204).send(null) : answer(reply, stream);
    },
  );

  app.get(
    "/v1/stream",
    {
      schema: allSchema,
      config: { ...config, errors: ["INVALID_CURSOR"] },
      exposeHeadRoute: false,
    },
    async (request, reply) => {
      const asked = followRequest(request, reply, request.query);
      return answer(reply, await runtime.followAll(callerOf(request), asked));
    },
  );

  function followRequest(
    request: FastifyRequest,
    reply: FastifyReply,
    { lastEventId, types = [] }: StreamQuery,
  ): FollowRequest {
    return {
      after: lastEventIdOf(request) ?? lastEventId,
      types,
      signal: endOf(reply.raw),
    };
  }
};

function answer(reply: FastifyReply, stream: Stream): FastifyReply {
  return (
    reply
      .type(SSE_MEDIA_TYPE)
      .header("cache-control", "no-store")
      // nginx would hold back what comes in small pieces.
      .header("x-accel-buffering", "no")
      .send(sseOf(stream))
  );
}
