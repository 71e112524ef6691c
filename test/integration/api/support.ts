import {
  closeServices,
  openServices,
  runScheduler,
  runWorker,
  type Services,
} from "@millrace/runtime";
import { createDatabase, createKeyPrefix } from "@millrace/testkit";
import { createApp } from "../../../apps/api/src/app.ts";
import { bindRuntime } from "../../../apps/api/src/bind.ts";

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  // What an answer holds is what the test is about.
  // oxlint-disable-next-line typescript/no-explicit-any
  readonly body: any;
}

export interface TestApi {
  readonly url: string;
  readonly services: Services;
  /** Sends JSON; a string goes as it is. */
  call(
    method: string,
    path: string,
    body?: unknown,
    headers?: Record<string, string>,
  ): Promise<Answer>;
  close(): Promise<void>;
}

export interface TestApiOptions {
  /** Whether a worker and a scheduler run too. */
  readonly isWorking?: boolean;
  /** Modules of tasks that the worker knows beside the built-in ones. */
  readonly tasks?: readonly string[];
  /** What `http.request` may reach. */
  readonly httpAllow?: readonly string[];
  readonly databaseUrl?: string;
  readonly redisUrl?: string;
  /** In place of ones of its own, and closed with it. */
  readonly services?: Services;
}

/** The API over a database of its own, in this process. */
export async function openTestApi(options: TestApiOptions = {}): Promise<TestApi> {
  const database = options.databaseUrl === undefined ? await createDatabase() : undefined;
  const redis = await createKeyPrefix();
  const services =
    options.services ??
    (await openServices({
      name: "api",
      databaseUrl: options.databaseUrl ?? database?.url ?? "",
      redisUrl: options.redisUrl ?? redis.url,
      queueBackend: "redis",
      keyPrefix: redis.prefix,
      poolSize: 10,
      logLevel: "silent",
    }));
  const running = options.isWorking
    ? [
        await runScheduler(services),
        await runWorker(services, {
          tasks: options.tasks ?? [],
          queues: ["default"],
          httpAllow: options.httpAllow ?? [],
          concurrency: 20,
          graceMs: 0,
        }),
      ]
    : [];
  const app = await createApp({ runtime: bindRuntime(services), log: services.log });
  const url = await app.http.listen({ port: 0, host: "127.0.0.1" });
  return {
    url,
    services,
    call: (...args) => call(url, ...args),
    async close() {
      await app.close();
      for (const each of running) await each.close();
      await closeServices(services);
      await redis.flush();
      await database?.drop();
    },
  };
}

export async function call(
  url: string,
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const response = await fetch(`${url}${path}`, {
    method,
    headers: { ...(body === undefined ? {} : { "content-type": "application/json" }), ...headers },
    ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  return {
    status: response.status,
    headers: response.headers,
    body: text === "" ? undefined : JSON.parse(text),
  };
}

/** One task that answers its input. */
export const echo = { id: "echo", steps: [{ stepId: "say", type: "TASK", taskId: "echo" }] };

/** Waits for an event that names its order. */
export const waiting = {
  id: "waiting",
  variables: { total: 1 },
  steps: [
    {
      stepId: "pay",
      type: "EVENT_WAIT",
      eventPattern: "paid",
      eventCondition: "event.payload.order === workflow.input.order",
    },
  ],
};
