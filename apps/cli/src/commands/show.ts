import type { StepExecutionView } from "@millrace/contract";
import { type Command, defineCommand } from "../command.ts";
import { EXIT } from "../exit-codes.ts";
import { executionLines, instanceLines } from "../instance-lines.ts";

export const show: Command = defineCommand({
  name: "show",
  summary: "show an instance: its steps with times, attempts and errors, waits and compensation",
  isClient: true,
  arguments: [{ name: "id", description: "the id of an instance" }],
  options: {
    wait: { type: "boolean", short: "w", description: "wait until it is settled" },
    path: {
      type: "string",
      description: "only every execution at and inside this path, as ship[3] or ship[3].label",
    },
    full: { type: "boolean", description: "do not shorten inputs, outputs and errors" },
  },
  examples: ["millrace show 0198c1de-…", "millrace show 0198c1de-… --path 'ship[3]'"],
  run: async ({ client, output }, { options, positionals }) => {
    const [id = ""] = positionals;
    const most = options.full ? Number.MAX_SAFE_INTEGER : undefined;
    if (options.path !== undefined) {
      const items: StepExecutionView[] = [];
      for await (const each of client.instances.eachStep(id, { path: options.path }))
        items.push(each);
      output.json({ items });
      if (!output.isJson) for (const line of executionLines(output, items, most)) output.line(line);
      return EXIT.done;
    }
    const instance = options.wait
      ? await client.instances.wait(id)
      : await client.instances.get(id);
    output.json(instance);
    if (output.isJson) return EXIT.done;
    for (const line of instanceLines(output, instance, most)) output.line(line);
    return EXIT.done;
  },
});
