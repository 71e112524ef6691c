import type { CompensationPlanView } from "@millrace/contract";
import { type Command, defineCommand } from "../command.ts";
import { EXIT } from "../exit-codes.ts";
import { jsonLine, type Output, printable } from "../output.ts";
import { table } from "../table.ts";
import { timeText } from "../times.ts";

export const plan: Command = defineCommand({
  name: "plan",
  summary: "show what a cancel of an instance would undo now, without cancelling it",
  isClient: true,
  arguments: [{ name: "id", description: "the id of an instance" }],
  options: {
    reason: { type: "string", value: "text", description: "the reason that the cancel would have" },
    full: { type: "boolean", description: "do not shorten inputs" },
  },
  examples: ["millrace plan 0198c1de-…", "millrace plan 0198c1de-… --json"],
  run: async ({ client, output }, { options, positionals }) => {
    const [id = ""] = positionals;
    const { reason, full } = options;
    const view = await client.instances.compensationPlan(id, { reason });
    output.json(view);
    if (!output.isJson) print(output, view, full ? Number.MAX_SAFE_INTEGER : 80);
    return EXIT.done;
  },
});

function print(output: Output, view: CompensationPlanView, most: number): void {
  const { steps, awaited, skipped, failed, cancellable, status } = view;
  if (!cancellable) output.note(`The instance is ${status}: it can no longer be cancelled.`);
  else if (steps.length === 0) output.note("A cancel would undo nothing.");
  const rows = steps.map(({ stepId, executionId, taskId, input, error }, index) => [
    String(index + 1),
    printable(stepId),
    placeText(executionId),
    printable(taskId ?? "–"),
    error ? `would fail: ${printable(error.message)}` : jsonLine(input, most),
  ]);
  if (rows.length > 0) {
    const header = ["", "STEP", "UNDOES", "TASK", "INPUT"];
    for (const line of table(header, rows, [""])) output.line(line);
  }
  for (const { executionId, compensatedBy, until } of awaited) {
    const step = placeText(executionId);
    output.note(
      `${step} is running: it would be awaited until ${timeText(until)} UTC, and if it succeeds be undone first by ${printable(compensatedBy)}.`,
    );
  }
  for (const { stepId } of skipped) output.note(`${printable(stepId)}: its condition is false.`);
  for (const { stepId, error } of failed) {
    output.note(`${printable(stepId)} would fail: ${printable(error.message)}`);
  }
}

/** Where the execution stands: its path, and its pass where it is not the first. */
function placeText(executionId: string): string {
  return printable(executionId.replace(/#1$/, ""));
}
