import { createServer } from "node:net";

/**
 * A TCP port of 127.0.0.1 that nobody listens on now.
 *
 * Nothing reserves it: between this answer and its use somebody else may take it. The system hands
 * out ports in turn rather than the same one again, so in practice this is rare; callers that start
 * a server on it report the failure.
 */
export async function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      if (address === null || typeof address === "string") {
        reject(new Error("the system gave no TCP port"));
        return;
      }
      server.close(() => resolve(address.port));
    });
  });
}
