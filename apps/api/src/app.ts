import { BOUNDS } from "@millrace/contract";
import {
  fastify,
  type FastifyBaseLogger,
  type FastifyInstance,
  LogController,
  type RouteOptions,
} from "fastify";
import type { ZodTypeProvider } from "fastify-type-provider-zod";
import { answerClientError, errorAnswers } from "./error-handler.ts";
import { ApiError } from "./errors.ts";
import { requestIdOf } from "./headers.ts";
import { addJsonDoor } from "./json-door.ts";
import { openApiDocument } from "./openapi.ts";
import { addNotFound } from "./not-found.ts";
import { calendarRoutes } from "./routes/calendars.ts";
import { deadLetterRoutes } from "./routes/dead-letters.ts";
import { definitionRoutes } from "./routes/definitions.ts";
import { documentRoutes } from "./routes/documents.ts";
import { eventRoutes } from "./routes/events.ts";
import { healthRoutes } from "./routes/health.ts";
import { insightRoutes } from "./routes/insight.ts";
import { controlRoutes } from "./routes/control.ts";
import { instanceRoutes } from "./routes/instances.ts";
import { operationRoutes } from "./routes/operations.ts";
import { limitRoutes } from "./routes/limits.ts";
import { scheduleRoutes } from "./routes/schedules.ts";
import { streamRoutes } from "./routes/streams.ts";
import { webhookRoutes } from "./routes/webhooks.ts";
import type { ApiContext, Runtime } from "./runtime.ts";
import { validatorCompiler } from "./validation.ts";

/** One answered request. `route` is the template, never the path: paths have ids in them. */
export interface Answered {
  readonly method: string;
  readonly route: string;
  readonly status: number;
  readonly seconds: number;
}

export interface AppOptions {
  readonly runtime: Runtime;
  readonly log: FastifyBaseLogger;
  readonly onAnswered?: (answered: Answered) => void;
}

export interface ServedRoute {
  readonly method: string;
  /** In Fastify's form: a colon that is meant as such is there twice. */
  readonly url: string;
}

export interface App {
  readonly http: FastifyInstance;
  /** Every route that is served. */
  readonly routes: readonly ServedRoute[];
  /** Takes in nothing new, lets what is in flight come to its end, long polls at once. */
  close(): Promise<void>;
}

export async function createApp({ runtime, log, onAnswered }: AppOptions): Promise<App> {
  const stopping = new AbortController();
  const answerError = errorAnswers();
  const http = fastify({
    loggerInstance: log,
    // One line per request is written below, with the route and without headers.
    logController: new LogController({
      disableRequestLogging: true,
      requestIdLogLabel: "requestId",
    }),
    genReqId: requestIdOf,
    requestIdHeader: false,
    bodyLimit: BOUNDS.bodyBytes,
    // The request line counts as a header, and a list may name its 500 ids there.
    http: { maxHeaderSize: 65_536 },
    keepAliveTimeout: 72_000,
    // Answered by the hook below, as a problem.
    return503OnClosing: false,
    routerOptions: { maxParamLength: 1_000 },
    frameworkErrors: answerError,
    clientErrorHandler: answerClientError,
  }).withTypeProvider<ZodTypeProvider>();

  http.setValidatorCompiler(validatorCompiler);
  // Views are made by our own code; parsing each answer again would cost more than making it.
  http.setSerializerCompiler(() => JSON.stringify);
  http.setErrorHandler(answerError);
  addJsonDoor(http);

  let inFlight = 0;
  let onIdle: (() => void) | undefined;
  http.addHook("onRequest", (request, reply, done) => {
    inFlight += 1;
    // Comes after the last byte, and also when the caller hangs up, of which `onResponse` hears nothing.
    reply.raw.once("close", () => {
      inFlight -= 1;
      if (inFlight === 0) onIdle?.();
    });
    void reply.header("x-request-id", request.id);
    done(
      stopping.signal.aborted
        ? new ApiError("SHUTTING_DOWN", "this process is shutting down; ask another one", {
            retryAfterSeconds: 1,
            headers: { connection: "close" },
          })
        : undefined,
    );
  });
  http.addHook("onResponse", (request, reply, done) => {
    const { method } = request;
    const route = request.is404 ? "unmatched" : (request.routeOptions.url ?? "unmatched");
    const { statusCode: status, elapsedTime } = reply;
    onAnswered?.({ method, route, status, seconds: elapsedTime / 1_000 });
    const line = { method, route, status, ms: Math.round(elapsedTime * 10) / 10 };
    // Of an outage the first failure says that it has begun.
    if (status >= 500 && status !== 503) request.log.warn(line, "answered");
    else request.log.debug(line, "answered");
    done();
  });

  const routes: RouteOptions[] = [];
  http.addHook("onRoute", (route) => void routes.push(route));
  const options: ApiContext = { runtime, stopping: stopping.signal };
  addNotFound(http, routes);
  await http.register(definitionRoutes, options);
  await http.register(instanceRoutes, options);
  await http.register(controlRoutes, options);
  await http.register(insightRoutes, options);
  await http.register(streamRoutes, options);
  await http.register(webhookRoutes, options);
  await http.register(eventRoutes, options);
  await http.register(calendarRoutes, options);
  await http.register(deadLetterRoutes, options);
  await http.register(scheduleRoutes, options);
  await http.register(operationRoutes, options);
  await http.register(healthRoutes, options);
  await http.register(limitRoutes, options);
  await http.register(documentRoutes, { document: () => openApiDocument(routes) });
  await http.ready();

  return {
    http,
    routes: routes.flatMap(({ url, method }) =>
      [method].flat().map((each) => ({ method: each, url })),
    ),
    async close() {
      stopping.abort();
      // A connection over which nothing was asked yet is not idle to Node, and would be waited for.
      onIdle = () => http.server.closeAllConnections();
      if (inFlight === 0) onIdle();
      await http.close();
    },
  };
}
