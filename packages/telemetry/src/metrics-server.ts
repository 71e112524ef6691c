import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { HealthReport } from "./health.ts";
import type { Metrics } from "./metrics.ts";

export interface MetricsServer {
  readonly port: number;
  close(): Promise<void>;
}

/**
 * Serves `/metrics`, `/healthz` (the process lives) and `/readyz` (its dependencies answer; 503 when
 * one does not) for a process without an API.
 *
 * @param options.port 0 takes a free one.
 * @throws When the port is taken.
 */
export async function openMetricsServer(options: {
  readonly port: number;
  readonly host: string;
  readonly metrics: Pick<Metrics, "text" | "contentType">;
  readonly health: () => Promise<HealthReport>;
}): Promise<MetricsServer> {
  const { port, host, metrics, health } = options;
  const server = createServer((request, response) => {
    answer(request, response).catch((error: unknown) => {
      if (!response.headersSent) response.writeHead(500, { "content-type": "text/plain" });
      response.end(error instanceof Error ? error.message : "failed");
    });
  });

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method !== "GET" && request.method !== "HEAD") {
      send(response, 405, "text/plain", "only GET and HEAD\n", { allow: "GET, HEAD" });
      return;
    }
    const [path = ""] = (request.url ?? "").split("?");
    switch (path) {
      case "/metrics":
        send(response, 200, metrics.contentType, await metrics.text());
        return;
      case "/healthz":
        send(response, 200, "application/json", '{"status":"ok"}');
        return;
      case "/readyz": {
        const report = await health();
        const status = report.status === "ok" ? 200 : 503;
        send(response, status, "application/json", JSON.stringify(report));
        return;
      }
      default:
        send(response, 404, "text/plain", "not found\n");
    }
  }

  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, resolve);
  });
  // A server that listens on a port has an address of this form.
  const address = server.address() as AddressInfo;
  return {
    port: address.port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function send(
  response: ServerResponse,
  status: number,
  contentType: string,
  body: string,
  headers: Readonly<Record<string, string>> = {},
): void {
  response.writeHead(status, {
    "content-type": contentType,
    "cache-control": "no-store",
    ...headers,
  });
  response.end(body);
}
