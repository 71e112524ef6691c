import { setTimeout as sleep } from "node:timers/promises";
import type { InstanceView, PublishEventAnswer, ScheduleRunView } from "@millrace/contract";
import { isSettled } from "@millrace/contract";
import type { Operation, RequestRecord, Seen } from "./record.ts";

/**
 * A client that writes down each request and its answer, and does not give up: what found no server,
 * or one that was not able, is asked again in the same words. A connection that broke leaves the
 * outcome unknown, and the log says so.
 */
export interface LoggingClient {
  /** Tries until there is an answer that stands (2xx or 4xx), or `deadline` has come. */
  insist(request: Request): Promise<Answer | undefined>;
  /** Tries once. */
  once(request: Request): Promise<Answer | undefined>;
}

export interface Request {
  readonly operation: Operation;
  readonly method: "GET" | "POST" | "PUT" | "PATCH";
  readonly path: string;
  readonly subject: string;
  readonly caseNumber?: number;
  readonly body?: unknown;
  readonly idempotencyKey?: string;
  readonly ifMatch?: number;
}

export interface Answer {
  readonly status: number;
  readonly body: unknown;
}

export interface ClientOptions {
  readonly apiUrls: readonly string[];
  readonly log: (request: RequestRecord) => void;
  /** On `performance.now()`. */
  readonly deadline: () => number;
}

/** A long poll of 5 s, and an API that has just been started on a busy machine. */
const timeoutMs = 20_000;

export function openClient({ apiUrls, log, deadline }: ClientOptions): LoggingClient {
  let turn = 0;

  async function once(request: Request): Promise<Answer | undefined> {
    const { operation, subject, caseNumber, method, path, body } = request;
    const apiUrl = apiUrls[turn++ % apiUrls.length] ?? "";
    const sentAt = Date.now();
    const keep = (outcome: Partial<RequestRecord> & Pick<RequestRecord, "status">) =>
      log({ caseNumber, operation, subject, sentAt, answeredAt: Date.now(), ...outcome });
    try {
      const response = await fetch(`${apiUrl}${path}`, {
        method,
        headers: {
          ...(body === undefined ? {} : { "content-type": "application/json" }),
          ...(request.idempotencyKey && { "idempotency-key": request.idempotencyKey }),
          ...(request.ifMatch !== undefined && { "if-match": `"${request.ifMatch}"` }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        signal: AbortSignal.timeout(timeoutMs),
      });
      // The body is part of the answer: a server may die in the middle of it.
      const answer = {
        status: response.status,
        body: JSON.parse(await response.text()) as unknown,
      };
      keep({ status: answer.status, ...shown(operation, answer) });
      return answer;
    } catch (error) {
      keep({ status: undefined, problem: problemOf(error) });
      return undefined;
    }
  }

  return {
    once,
    async insist(request) {
      for (let attempt = 1; ; attempt += 1) {
        const answer = await once(request);
        if (answer && stands(answer)) return answer;
        if (performance.now() > deadline()) return undefined;
        await sleep(Math.min(50 * attempt, 1_000));
      }
    },
  };
}

/** Whether asking again in the same words would be no use. 501 is what this version cannot do. */
export function stands({ status }: Answer): boolean {
  return status === 501 || (status < 500 && status !== 429);
}

function problemOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { cause } = error;
  return cause instanceof Error ? `${error.message}: ${cause.message}` : error.message;
}

function shown(operation: Operation, { status, body }: Answer): Partial<RequestRecord> {
  if (status >= 300) {
    const { code, detail } = body as { code?: string; detail?: string };
    return { problem: `${code}: ${detail}` };
  }
  switch (operation) {
    case "register":
    case "limit":
    case "pause queue":
    case "resume queue":
    case "schedule":
    case "schedule edit":
    case "schedule pause":
    case "schedule resume":
    case "schedule backfill":
    case "schedule look":
      return {};
    case "schedule trigger":
      return { triggered: (body as ScheduleRunView).instanceId ?? "none" };
    case "publish":
      return { published: body as PublishEventAnswer };
    case "watch":
      return { seen: (body as { items: readonly InstanceView[] }).items.map(seenOf) };
    case "start":
    case "cancel":
    case "pause":
    case "resume":
    case "retry":
    case "patch":
    case "look":
      return { seen: [seenOf(body as InstanceView)] };
  }
}

export function seenOf(view: InstanceView): Seen {
  const steps = Object.entries(view.state.steps);
  return {
    id: view.id,
    status: view.status,
    version: view.version,
    isSettled: isSettled(view),
    waiting: view.state.waitingFor.map(({ stepId }) => stepId),
    running: steps.filter(([, { status }]) => status === "RUNNING").map(([stepId]) => stepId),
  };
}
