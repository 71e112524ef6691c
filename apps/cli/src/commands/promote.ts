import { type Command, defineCommand } from "../command.ts";
import { EXIT } from "../exit-codes.ts";
import { instanceArguments, reasonOption, tellStatus } from "../instance-verb.ts";

export const promote: Command = defineCommand({
  name: "promote",
  summary: "put an instance that waits for a slot first in line",
  isClient: true,
  arguments: instanceArguments,
  options: {
    reason: reasonOption,
  },
  details: [
    "It goes before all that have not run either, whatever the order of the queue. One that waits for no slot is refused.",
  ],
  examples: ["millrace promote 0198c1de-…"],
  run: async ({ client, output }, { options, positionals }) => {
    const [id = ""] = positionals;
    const instance = await client.instances.promote(id, { reason: options.reason });
    tellStatus(output, instance);
    return EXIT.done;
  },
});
