import { type Command, defineCommand } from "../command.ts";
import { EXIT } from "../exit-codes.ts";
import { instanceArguments, reasonOption, tellStatus } from "../instance-verb.ts";

export const pause: Command = defineCommand({
  name: "pause",
  summary: "pause an instance: nothing new starts, and nothing is lost",
  isClient: true,
  arguments: instanceArguments,
  options: {
    reason: reasonOption,
    until: { type: "string", value: "time", description: "when it resumes by itself, ISO 8601" },
  },
  details: [
    "Running steps finish and their results are kept; events and timers are held, and applied in order " +
      "when the instance resumes. `millrace why` shows what it holds.",
  ],
  examples: [
    `millrace pause 0198c1de-… --reason "the bank is down"`,
    "millrace pause 0198c1de-… --until 2026-07-01T08:00:00Z",
  ],
  run: async ({ client, output }, { options, positionals }) => {
    const [id = ""] = positionals;
    const instance = await client.instances.pause(id, {
      reason: options.reason,
      until: options.until,
    });
    tellStatus(output, instance);
    return EXIT.done;
  },
});
