import type { HistoryEntry } from "@millrace/contract";
import { type Command, defineCommand } from "../command.ts";
import { EXIT } from "../exit-codes.ts";
import { jsonLine, type Output, printable } from "../output.ts";
import { table } from "../table.ts";
import { clockText, timeText } from "../times.ts";

export const history: Command = defineCommand({
  name: "history",
  summary: "list every change of an instance, oldest first",
  isClient: true,
  arguments: [{ name: "id", description: "the id of an instance" }],
  options: {
    full: { type: "boolean", description: "do not shorten the data" },
  },
  examples: ["millrace history 0198c1de-…", "millrace history 0198c1de-… --json"],
  run: async ({ client, output }, { options, positionals }) => {
    const [id = ""] = positionals;
    const items: HistoryEntry[] = [];
    for await (const each of client.instances.eachChange(id)) items.push(each);
    output.json({ items });
    if (!output.isJson) print(output, items, options.full);
    return EXIT.done;
  },
});

function print(output: Output, items: readonly HistoryEntry[], isFull: boolean): void {
  const rows = items.map(({ seq, at, type, stepId, path, actor, data }) => [
    String(seq),
    clockText(at),
    printable(type),
    printable(path ?? stepId ?? ""),
    isFull ? printable(actor) : actorText(actor),
    isEmpty(data) ? "" : jsonLine(data, isFull ? Number.MAX_SAFE_INTEGER : 80),
  ]);
  const [first] = items;
  if (first) output.note(`Times are UTC; the first is ${timeText(first.at)}.`);
  const header = ["SEQ", "AT", "CHANGE", "STEP", "BY", "DATA"];
  for (const line of table(header, rows, ["SEQ"])) output.line(line);
}

function isEmpty(data: unknown): boolean {
  if (data === null || data === undefined) return true;
  return typeof data === "object" && Object.keys(data).length === 0;
}

/** Worker ids begin alike, with the time; their ends tell them apart. */
function actorText(actor: string): string {
  return printable(actor).replace(/^(\w+:)[\da-f-]{28}([\da-f]{8})$/, "$1…$2");
}
