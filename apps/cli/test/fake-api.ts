import { createServer } from "node:http";

export interface Exchange {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: unknown;
}

export interface FakeApi {
  readonly url: string;
  readonly exchanges: readonly Exchange[];
  close(): Promise<void>;
}

export interface FakeAnswer {
  readonly status?: number;
  readonly type?: string;
  readonly body: unknown;
}

/** An HTTP server that answers as told; the real API is tested end to end. */
export async function openFakeApi(answer: (exchange: Exchange) => FakeAnswer): Promise<FakeApi> {
  const exchanges: Exchange[] = [];
  const server = createServer((request, response) => {
    let text = "";
    request.setEncoding("utf8").on("data", (piece: string) => {
      text += piece;
    });
    request.on("end", () => {
      const { method = "", url: path = "", headers } = request;
      const exchange = { method, path, headers, body: text === "" ? undefined : parse(text) };
      exchanges.push(exchange);
      const { status = 200, type = "application/json", body } = answer(exchange);
      response.writeHead(status, { "content-type": type });
      response.end(typeof body === "string" ? body : JSON.stringify(body));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  return {
    url: `http://127.0.0.1:${port}`,
    exchanges,
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

export function problem(
  status: number,
  code: string,
  detail: string,
  errors?: readonly object[],
): FakeAnswer {
  const body = { type: `urn:millrace:problem:${code}`, title: code, status, detail, code, errors };
  return { status, type: "application/problem+json", body };
}

function parse(text: string): unknown {
  return JSON.parse(text);
}
