import { createServer } from "node:http";
import type { Server, ServerResponse } from "node:http";
import { problemOf } from "./error-handler.ts";

/**
 * Answers while a process that has just been started waits for its database: it is alive, it is not ready, and
 * whoever asks for anything is to ask again (CONTRACT 3). The API takes over its port.
 */
export async function answerMeanwhile<T>(
  where: { readonly host: string; readonly port: number },
  open: () => Promise<T>,
): Promise<T> {
  const server = createServer(({ url = "" }, response) => {
    if (url.startsWith("/healthz")) send(response, 200, { status: "ok" });
    else if (url.startsWith("/readyz")) send(response, 503, notReady, retryAfter);
    else send(response, 503, problem, { ...headers, "content-type": "application/problem+json" });
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(where, resolve);
  });
  try {
    return await open();
  } finally {
    await closeNow(server);
  }
}

const { problem, headers } = problemOf(
  Object.assign(new Error("not there yet"), { code: "DATABASE_UNAVAILABLE" }),
);
const retryAfter = { "retry-after": "1" };
const notReady = {
  status: "unavailable",
  checks: { postgres: { status: "down", required: true, detail: "waiting for the database" } },
};

function send(
  response: ServerResponse,
  status: number,
  body: object,
  more: Readonly<Record<string, string>> = {},
): void {
  response.writeHead(status, { "content-type": "application/json", connection: "close", ...more });
  response.end(JSON.stringify(body));
}

async function closeNow(server: Server): Promise<void> {
  await new Promise((resolve) => {
    server.close(resolve);
    server.closeAllConnections();
  });
}
