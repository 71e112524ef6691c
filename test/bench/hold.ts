import { once } from "node:events";
import { Socket } from "node:net";

// Loaded into a worker by `--import`: lets it load all that it loads, and says so when it makes its first
// connection, which it gets when it is told to begin. Of several workers that are to begin together none then works
// while others still load on the same cores.

/** A signal that is waited for does not keep a process alive. */
const alive = setInterval(() => {}, 60_000);
let begun: Promise<unknown> | undefined;
/** A worker takes it away from what it loads. */
const tell = process.send?.bind(process);
const connect = Socket.prototype.connect as (...to: unknown[]) => Socket;

Socket.prototype.connect = function connectLater(this: Socket, ...to: unknown[]) {
  if (begun === undefined) {
    begun = once(process, "SIGUSR2").then(() => clearInterval(alive));
    tell?.({ kind: "loaded" });
  }
  void begun.then(() => connect.apply(this, to));
  return this;
};
