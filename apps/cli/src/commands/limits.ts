import { BOUNDS, type LimitView } from "@millrace/contract";
import { type Command, defineCommand } from "../command.ts";
import { UsageError } from "../errors.ts";
import { EXIT } from "../exit-codes.ts";
import { didYouMean } from "../near.ts";
import { type Output, printable } from "../output.ts";
import { table } from "../table.ts";
import { integerOf, oneOf } from "../values.ts";

const VERBS = ["ls", "show", "set", "rm"] as const;
const QUEUES = ["FIFO", "PRIORITY", "DEADLINE"] as const;

export const limits: Command = defineCommand({
  name: "limits",
  summary: "list, set and delete limits of how many instances run at once",
  isClient: true,
  arguments: [
    { name: "verb", description: `${VERBS.join(", ")} (default: ls)`, isOptional: true },
    {
      name: "id",
      description: "global, tenant, type:<workflow id> or user:<user id>",
      isOptional: true,
    },
    { name: "slots", description: "set: how many run at once", isOptional: true },
  ],
  options: {
    queue: { type: "string", value: "order", description: `set: ${QUEUES.join(", ")}` },
    "max-queued": { type: "string", value: "count", description: "set: starts that may wait" },
    limit: { type: "string", short: "n", value: "count", description: "ls: at most (default: 50)" },
    cursor: { type: "string", value: "cursor", description: "ls: go on after a former page" },
  },
  details: [
    "A limit that is set holds within a second. What runs already goes on, and is counted. " +
      "That of a workflow goes before the concurrency of its definition.",
  ],
  examples: [
    "millrace limits",
    "millrace limits set type:order 10 --queue FIFO",
    "millrace limits rm user:ada",
  ],
  run: async ({ client, output }, { options, positionals }) => {
    const [given = "ls", id, slots] = positionals;
    const verb = VERBS.find((each) => each === given);
    if (verb === undefined) {
      throw new UsageError(
        `limits knows ${VERBS.join(", ")}, not ${JSON.stringify(given)}${didYouMean(given, VERBS)}`,
      );
    }
    if (verb === "ls") {
      const limit = integerOf("--limit", options.limit, { min: 1, max: 500 }) ?? 50;
      const page = await client.limits.list({ limit, cursor: options.cursor });
      output.json(page);
      if (!output.isJson) print(output, page.items);
      return EXIT.done;
    }
    if (id === undefined) throw new UsageError(`limits ${verb} needs the id of a limit`);
    if (verb === "rm") {
      await client.limits.delete(id);
      output.json({ id });
      if (!output.isJson) output.line(`limit ${printable(id)} is deleted`);
      return EXIT.done;
    }
    if (verb === "set" && slots === undefined) {
      throw new UsageError("limits set needs to know how many run at once");
    }
    const range = { min: 0, max: BOUNDS.admitted };
    const limit =
      verb === "show"
        ? await client.limits.get(id)
        : await client.limits.put(id, {
            limit: integerOf("<slots>", slots, range) ?? 0,
            queue: oneOf("--queue", options.queue, QUEUES),
            maxQueued: integerOf("--max-queued", options["max-queued"], range),
          });
    output.json(limit);
    if (!output.isJson) print(output, [limit]);
    return EXIT.done;
  },
});

function print(output: Output, items: readonly LimitView[]): void {
  if (items.length === 0) return output.note("There are no limits.");
  const rows = items.map(({ id, limit, queue, maxQueued, usage, source }) => [
    printable(id),
    String(limit),
    String(usage.held),
    String(usage.queued),
    maxQueued === null ? "–" : String(maxQueued),
    queue,
    source,
  ]);
  const heads = ["id", "limit", "held", "queued", "max queued", "queue", "source"];
  for (const line of table(heads, rows)) output.line(line);
}
