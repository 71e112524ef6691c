import type { DeadLetterView } from "@millrace/contract";
import type { MillraceClient } from "@millrace/client";
import { type Command, defineCommand } from "../command.ts";
import { UsageError } from "../errors.ts";
import { EXIT } from "../exit-codes.ts";
import { didYouMean } from "../near.ts";
import { jsonLine, type Output, printable } from "../output.ts";
import { table } from "../table.ts";
import { timeText } from "../times.ts";
import { integerOf } from "../values.ts";

const VERBS = ["ls", "show", "retry", "discard"] as const;
type Verb = (typeof VERBS)[number];

export const deadLetters: Command = defineCommand({
  name: "dead-letters",
  summary: "list, show, retry and discard steps that killed their workers",
  isClient: true,
  arguments: [
    { name: "verb", description: `${VERBS.join(", ")} (default: ls)`, isOptional: true },
    { name: "id", description: "the id of a dead letter", isOptional: true },
  ],
  options: {
    reason: { type: "string", short: "r", value: "text", description: "retry, discard: why" },
    workflow: { type: "string", value: "id", description: "ls: of this workflow" },
    all: { type: "boolean", description: "ls: resolved ones, too" },
    limit: { type: "string", short: "n", value: "count", description: "ls: at most (default: 50)" },
    cursor: { type: "string", value: "cursor", description: "ls: go on after a former page" },
  },
  details: [
    "A step whose workers died of it five times fails its instance and waits here. Retried, " +
      "the instance goes on from the step; discarded, what it has done is undone.",
  ],
  examples: [
    "millrace dead-letters",
    "millrace dead-letters show 5f0c…",
    `millrace dead-letters discard 5f0c… --reason "bad input"`,
  ],
  run: async ({ client, output }, { options, positionals }) => {
    const [given = "ls", id] = positionals;
    const verb = verbOf(given);
    if (verb === "ls") {
      const limit = integerOf("--limit", options.limit, { min: 1, max: 500 }) ?? 50;
      const { workflow: workflowId, cursor } = options;
      const status = options.all ? ("ALL" as const) : undefined;
      const page = await client.deadLetters.list({ workflowId, cursor, limit, status });
      output.json(page);
      if (!output.isJson) printList(output, page.items);
      return EXIT.done;
    }
    if (id === undefined)
      throw new UsageError(`dead-letters ${verb} needs the id of a dead letter`);
    const letter = await act(client, verb, id, options.reason);
    output.json(letter);
    if (output.isJson) return EXIT.done;
    if (verb === "show") printOne(output, letter);
    else output.line(`dead letter ${letter.id} is ${letter.status}`);
    return EXIT.done;
  },
});

function verbOf(given: string): Verb {
  const found = VERBS.find((verb) => verb === given);
  if (found !== undefined) return found;
  throw new UsageError(
    `dead-letters knows ${VERBS.join(", ")}, not ${JSON.stringify(given)}${didYouMean(given, VERBS)}`,
  );
}

function act(
  client: MillraceClient,
  verb: Exclude<Verb, "ls">,
  id: string,
  reason: string | undefined,
): Promise<DeadLetterView> {
  switch (verb) {
    case "show":
      return client.deadLetters.get(id);
    case "retry":
      return client.deadLetters.retry(id, { reason });
    case "discard":
      return client.deadLetters.discard(id, { reason });
  }
}

function printList(output: Output, letters: readonly DeadLetterView[]): void {
  if (letters.length === 0) return output.note("There are no dead letters.");
  const rows = letters.map(({ id, status, workflowId, stepId, instanceId, createdAt }) => [
    id,
    status,
    printable(workflowId),
    printable(stepId),
    instanceId,
    timeText(createdAt),
  ]);
  const lines = table(["id", "status", "workflow", "step", "instance", "since (UTC)"], rows);
  for (const line of lines) output.line(line);
}

function printOne(output: Output, letter: DeadLetterView): void {
  const { id, status, workflowId, stepId, executionId, instanceId, taskId, error } = letter;
  const { deliveries, createdAt, resolvedAt, resolvedBy, reason } = letter;
  output.line(`dead letter ${id}  ${status}`);
  output.line(`  step       ${printable(stepId)} (${printable(executionId)})`);
  output.line(`  task       ${printable(taskId ?? "–")}`);
  output.line(`  instance   ${instanceId} of ${printable(workflowId)}`);
  output.line(`  since      ${timeText(createdAt)} UTC`);
  output.line(`  error      ${printable(error.message)}`);
  if (resolvedAt !== null) {
    const why = reason === null ? "" : `: ${printable(reason)}`;
    output.line(
      `  resolved   ${timeText(resolvedAt)} UTC by ${printable(resolvedBy ?? "?")}${why}`,
    );
  }
  for (const { host, pid, lastBeatAt, rssBytes, exit, log } of deliveries) {
    const facts = [
      `worker ${printable(host ?? "?")}, pid ${pid ?? "?"}`,
      `last heard of at ${timeText(lastBeatAt)} UTC`,
      ...(rssBytes === null ? [] : [`${Math.round(rssBytes / 1_048_576)} MiB`]),
      ...(exit === null ? [] : [jsonLine(exit, 40)]),
    ];
    output.line(`  died of it ${facts.join(", ")}`);
    if (log) output.line(`    its log  ${printable(log)}`);
  }
}
