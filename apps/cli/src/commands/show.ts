import { type Command, defineCommand } from "../command.ts";
import { EXIT } from "../exit-codes.ts";
import { instanceLines } from "../instance-lines.ts";

export const show: Command = defineCommand({
  name: "show",
  summary: "show an instance: its steps with times, attempts and errors, waits and compensation",
  isClient: true,
  arguments: [{ name: "id", description: "the id of an instance" }],
  options: {
    wait: { type: "boolean", short: "w", description: "wait until it is settled" },
    full: { type: "boolean", description: "do not shorten inputs, outputs and errors" },
  },
  examples: ["millrace show 0198c1de-…", "millrace show 0198c1de-… --json"],
  run: async ({ client, output }, { options, positionals }) => {
    const [id = ""] = positionals;
    const instance = options.wait
      ? await client.instances.wait(id)
      : await client.instances.get(id);
    output.json(instance);
    if (output.isJson) return EXIT.done;
    const most = options.full ? Number.MAX_SAFE_INTEGER : undefined;
    for (const line of instanceLines(output, instance, most)) output.line(line);
    return EXIT.done;
  },
});
