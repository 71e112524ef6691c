import { connect, createServer } from "node:net";
import type { AddressInfo, Socket } from "node:net";
import { eventually } from "@millrace/testkit";

export interface Relay {
  readonly url: string;
  cutAnswers(): void;
  mend(): void;
  close(): Promise<void>;
}

/** Passes bytes to Postgres and back, until answers are cut: what was sent then still arrives. */
export async function openRelay(url: string): Promise<Relay> {
  const target = new URL(url);
  const sockets = new Set<Socket>();
  let isCut = false;
  const server = createServer((client) => {
    const upstream = connect(Number(target.port || 5432), target.hostname);
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => sockets.delete(socket));
    }
    client.pipe(upstream);
    upstream.on("data", (data) => {
      if (isCut) {
        client.destroy();
        upstream.end();
      } else {
        client.write(data);
      }
    });
    upstream.on("close", () => client.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const relayed = new URL(url);
  relayed.hostname = "127.0.0.1";
  relayed.port = String(port);
  return {
    url: relayed.href,
    cutAnswers(): void {
      isCut = true;
    },
    mend(): void {
      isCut = false;
    },
    async close(): Promise<void> {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
      await eventually("the relay to close", () => sockets.size === 0);
    },
  };
}
