import { type Command, defineCommand } from "../command.ts";
import { EXIT } from "../exit-codes.ts";
import { instanceArguments, reasonOption, tellStatus } from "../instance-verb.ts";

export const resume: Command = defineCommand({
  name: "resume",
  summary: "resume a paused instance, with all that was held",
  isClient: true,
  arguments: instanceArguments,
  options: {
    reason: reasonOption,
  },
  details: [
    "It goes back to where it was. What came due or came in while it was paused is applied in order of time.",
  ],
  examples: ["millrace resume 0198c1de-…"],
  run: async ({ client, output }, { options, positionals }) => {
    const [id = ""] = positionals;
    const instance = await client.instances.resume(id, { reason: options.reason });
    tellStatus(output, instance);
    return EXIT.done;
  },
});
