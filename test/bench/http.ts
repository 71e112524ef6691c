import { connect } from "node:net";
import type { Socket } from "node:net";

/**
 * A lean HTTP client: plain sockets that are kept, one call at a time on each. The driver shares the
 * cores with what it measures, and Node's own client costs as much as a small server does.
 */
export interface Http {
  /** The parsed body of a 2xx. @throws Error with status and body of any other. */
  call<T>(method: "GET" | "POST" | "PUT", path: string, body?: unknown): Promise<T>;
  close(): void;
}

export function openHttp(baseUrl: string): Http {
  const { hostname, port } = new URL(baseUrl);
  const idle: Connection[] = [];
  const all = new Set<Connection>();
  const head = `host: ${hostname}:${port}\r\n`;

  function take(): Connection {
    for (let found = idle.pop(); found !== undefined; found = idle.pop()) {
      if (found.isOpen()) return found;
      all.delete(found);
    }
    const opened = openConnection(hostname, Number(port));
    all.add(opened);
    return opened;
  }

  return {
    async call<T>(method: string, path: string, body?: unknown) {
      const text = body === undefined ? "" : JSON.stringify(body);
      const type =
        body === undefined
          ? ""
          : `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(text)}\r\n`;
      const connection = take();
      const answer = await connection.send(
        `${method} ${path} HTTP/1.1\r\n${head}${type}\r\n${text}`,
      );
      idle.push(connection);
      if (answer.status >= 200 && answer.status < 300) return JSON.parse(answer.body) as T;
      throw new Error(`${method} ${path}: ${answer.status} ${answer.body.slice(0, 500)}`);
    },
    close() {
      for (const connection of all) connection.close();
    },
  };
}

interface Answer {
  readonly status: number;
  readonly body: string;
}

interface Connection {
  isOpen(): boolean;
  send(request: string): Promise<Answer>;
  close(): void;
}

function openConnection(host: string, port: number): Connection {
  const socket: Socket = connect({ host, port, noDelay: true });
  let received: Buffer = Buffer.alloc(0);
  let waiting: { resolve(answer: Answer): void; reject(error: Error): void } | undefined;

  socket.on("data", (chunk) => {
    received = received.length === 0 ? chunk : Buffer.concat([received, chunk]);
    const answer = parseAnswer(received);
    if (answer === undefined) return;
    received = Buffer.alloc(0);
    waiting?.resolve(answer);
    waiting = undefined;
  });
  const fail = (error: Error) => {
    waiting?.reject(error);
    waiting = undefined;
  };
  socket.once("error", fail);
  socket.once("close", () => fail(new Error("the connection was closed")));
  return {
    isOpen: () => !socket.destroyed && socket.writable,
    send: (request) =>
      new Promise((resolve, reject) => {
        waiting = { resolve, reject };
        socket.write(request);
      }),
    close: () => socket.destroy(),
  };
}

/** Undefined while the answer is not whole. The servers here always send a content-length. */
function parseAnswer(received: Buffer): Answer | undefined {
  const end = received.indexOf("\r\n\r\n");
  if (end < 0) return undefined;
  const head = received.toString("latin1", 0, end);
  const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1];
  if (length === undefined) throw new Error(`an answer without a content-length:\n${head}`);
  const from = end + 4;
  const to = from + Number(length);
  if (received.length < to) return undefined;
  return { status: Number(head.slice(9, 12)), body: received.toString("utf8", from, to) };
}
