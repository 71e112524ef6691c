import { type Command, defineCommand } from "../command.ts";
import { EXIT } from "../exit-codes.ts";
import { instanceArguments, reasonOption, tellStatus } from "../instance-verb.ts";

export const retry: Command = defineCommand({
  name: "retry",
  summary: "retry a failed instance from where it failed, or from a step",
  isClient: true,
  arguments: instanceArguments,
  options: {
    reason: reasonOption,
    from: { type: "string", value: "stepId", description: "the step to go on from" },
  },
  details: [
    "What was completed stays. An instance that is paused because retries are spent has another round " +
      "of them. One that has been compensated cannot be retried.",
  ],
  examples: ["millrace retry 0198c1de-…", "millrace retry 0198c1de-… --from ship"],
  run: async ({ client, output }, { options, positionals }) => {
    const [id = ""] = positionals;
    const instance = await client.instances.retry(id, {
      reason: options.reason,
      fromStepId: options.from,
    });
    tellStatus(output, instance);
    return EXIT.done;
  },
});
