import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";

/**
 * The witness that does not trust the product. Tasks under test tell it what they do, over HTTP;
 * what happened is then judged from its entries and not from what the product says of itself.
 *
 *     POST /entries   {"instance","step","branch"?,"attempt","idempotencyKey", …}   → 201 {"seq"}
 *     GET  /entries   → 200 {"entries": […]}
 *
 * An entry is kept the moment it arrives, before any delay or failure that a rule asks for: the
 * side effect has happened, whatever the task hears of it.
 */
export interface Ledger {
  readonly url: string;
  readonly entries: readonly LedgerEntry[];
  /** Makes it answer late or with an error where the rule applies; the newest such rule wins. */
  answer(rule: LedgerRule): void;
  clear(): void;
  close(): Promise<void>;
}

export interface LedgerEntry {
  /** Order of arrival, from 1. */
  readonly seq: number;
  /** Milliseconds since the epoch, on the ledger's clock. */
  readonly receivedAt: number;
  readonly instance: string;
  readonly step: string;
  readonly branch: string | undefined;
  readonly attempt: number;
  readonly idempotencyKey: string;
  /** Whatever else the task sent. */
  readonly details: Readonly<Record<string, unknown>>;
}

export interface LedgerRule {
  /** Entries with all of the named values; every entry when none is named. */
  readonly when?: Partial<Pick<LedgerEntry, "instance" | "step" | "attempt" | "idempotencyKey">>;
  readonly delayMs?: number;
  /** Holds the answer back until it settles: what the task does next can be timed from outside. */
  readonly until?: (entry: LedgerEntry) => Promise<unknown>;
  /** 201 when absent. */
  readonly status?: number;
  /** How many entries it applies to; all when absent. */
  readonly times?: number;
}

export async function openLedger(): Promise<Ledger> {
  const entries: LedgerEntry[] = [];
  const rules: { readonly rule: LedgerRule; left: number }[] = [];

  const record = async (request: IncomingMessage, response: ServerResponse) => {
    const entry = toEntry(await readJson(request), entries.length + 1);
    if (typeof entry === "string") return send(response, 400, { error: entry });
    entries.push(entry);
    const chosen = rules.findLast(({ rule, left }) => left > 0 && applies(rule, entry));
    if (chosen) chosen.left -= 1;
    const { delayMs = 0, until, status = 201 } = chosen?.rule ?? {};
    if (delayMs > 0) await sleep(delayMs);
    await until?.(entry);
    send(response, status, { seq: entry.seq });
  };
  const server = createServer((request, response) => {
    if (request.url !== "/entries") send(response, 404, { error: "only /entries" });
    else if (request.method === "GET") send(response, 200, { entries });
    else record(request, response).catch((error) => send(response, 400, { error: String(error) }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;

  return {
    url: `http://127.0.0.1:${port}`,
    entries,
    answer: (rule) => void rules.push({ rule, left: rule.times ?? Infinity }),
    clear: () => {
      entries.length = 0;
      rules.length = 0;
    },
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** An entry, or what is wrong with it. */
function toEntry(body: unknown, seq: number): LedgerEntry | string {
  if (typeof body !== "object" || body === null) return "not an object";
  const { instance, step, branch, attempt, idempotencyKey, ...details } = body as Record<
    string,
    unknown
  >;
  if (typeof instance !== "string" || typeof step !== "string") return "instance or step missing";
  if (typeof attempt !== "number") return "attempt missing";
  if (typeof idempotencyKey !== "string") return "idempotencyKey missing";
  return {
    seq,
    receivedAt: Date.now(),
    instance,
    step,
    branch: typeof branch === "string" ? branch : undefined,
    attempt,
    idempotencyKey,
    details,
  };
}

function applies({ when = {} }: LedgerRule, entry: LedgerEntry): boolean {
  return Object.entries(when).every(([name, value]) => entry[name as keyof LedgerEntry] === value);
}

async function readJson(request: IncomingMessage): Promise<unknown> {
  let text = "";
  for await (const chunk of request.setEncoding("utf8")) text += String(chunk);
  return JSON.parse(text);
}

/** The caller may be gone, killed in the middle of its request. */
function send(response: ServerResponse, status: number, body: unknown): void {
  if (response.writableEnded || response.destroyed) return;
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}
