import { Agent, request } from "node:http";

/**
 * A lean HTTP client with connections that are kept: the driver shares the cores with what it
 * measures, so what it costs itself has to be little.
 */
export interface Http {
  /** The parsed body of a 2xx. @throws Error with status and body of any other. */
  call<T>(method: "GET" | "POST" | "PUT", path: string, body?: unknown): Promise<T>;
  close(): void;
}

export function openHttp(baseUrl: string, connections = 64): Http {
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  const { hostname, port } = new URL(baseUrl);
  return {
    call: <T>(method: string, path: string, body?: unknown) =>
      new Promise<T>((resolve, reject) => {
        const text = body === undefined ? undefined : JSON.stringify(body);
        const sent = request(
          {
            agent,
            hostname,
            port,
            method,
            path,
            headers:
              text === undefined
                ? {}
                : {
                    "content-type": "application/json",
                    "content-length": Buffer.byteLength(text),
                  },
          },
          (response) => {
            const chunks: Buffer[] = [];
            response.on("data", (chunk: Buffer) => chunks.push(chunk));
            response.once("error", reject);
            response.once("end", () => {
              const answer = Buffer.concat(chunks).toString("utf8");
              const status = response.statusCode ?? 0;
              if (status >= 200 && status < 300) resolve(JSON.parse(answer) as T);
              else reject(new Error(`${method} ${path}: ${status} ${answer.slice(0, 500)}`));
            });
          },
        );
        sent.once("error", reject);
        sent.end(text);
      }),
    close: () => agent.destroy(),
  };
}
