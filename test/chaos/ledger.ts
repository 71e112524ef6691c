import { isMainThread, parentPort, Worker } from "node:worker_threads";
import { openLedger, type LedgerEntry } from "@millrace/testkit";

/**
 * The ledger in a thread of its own: what it keeps, and when, does not depend on how busy those are
 * who load and break the product. It lives as long as the run, whatever else is killed.
 */
export interface LedgerThread {
  readonly url: string;
  /** Everything it was told so far, in order. */
  entries(): Promise<readonly LedgerEntry[]>;
  close(): Promise<void>;
}

export async function openLedgerThread(): Promise<LedgerThread> {
  const thread = new Worker(new URL(import.meta.url));
  const next = <T>() => new Promise<T>((resolve) => thread.once("message", resolve));
  const url = await next<string>();
  return {
    url,
    entries: () => {
      const answer = next<readonly LedgerEntry[]>();
      thread.postMessage("entries");
      return answer;
    },
    close: async () => void (await thread.terminate()),
  };
}

if (!isMainThread && parentPort) {
  const ledger = await openLedger();
  const port = parentPort;
  port.on("message", () => port.postMessage(ledger.entries));
  port.postMessage(ledger.url);
}
