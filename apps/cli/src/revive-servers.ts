import type { Stack } from "@millrace/devstack";
import { messageOf } from "./errors.ts";

/** Between looks; the processes of Millrace are watched by the stack itself. */
const INTERVAL_MS = 1_000;

/**
 * Starts the private Postgres and Redis again when they have died, on their old addresses: the
 * processes of Millrace wait for them and go on.
 *
 * @returns A function that ends this, and waits for a start that is under way.
 */
export function reviveServers(
  { postgres, redis }: Pick<Stack, "postgres" | "redis">,
  say: (line: string) => void,
): () => Promise<void> {
  const servers = [
    { name: "Postgres", server: postgres },
    { name: "Redis", server: redis },
  ].flatMap(({ name, server }) => (server === undefined ? [] : { name, server }));
  let current: Promise<unknown> = Promise.resolve();
  let isBusy = false;

  const look = async () => {
    for (const { name, server } of servers) {
      if (server.pid !== undefined) continue;
      say(`${name} has ended; starting it again`);
      await server.start().catch((error: unknown) => say(`${name}: ${messageOf(error)}`));
    }
    isBusy = false;
  };
  const timer = setInterval(() => {
    if (isBusy) return;
    isBusy = true;
    current = look();
  }, INTERVAL_MS);
  return async () => {
    clearInterval(timer);
    await current;
  };
}
