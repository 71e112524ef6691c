import { type Command, defineCommand } from "../command.ts";
import { EXIT } from "../exit-codes.ts";
import { instanceLines } from "../instance-lines.ts";
import { instanceArguments, reasonOption } from "../instance-verb.ts";

export const cancel: Command = defineCommand({
  name: "cancel",
  summary: "cancel an instance, undoing what it has done",
  isClient: true,
  arguments: instanceArguments,
  options: {
    reason: reasonOption,
    "no-compensate": { type: "boolean", description: "stop only; undo nothing" },
    wait: { type: "boolean", short: "w", description: "wait until the compensation has ended" },
  },
  details: [
    "The instance is CANCELLED at once. Its compensation steps then run beside that, the step that " +
      "completed last first; `millrace show` shows how far they are.",
  ],
  examples: [`millrace cancel 0198c1de-… --reason "ordered twice"`],
  run: async ({ client, output }, { options, positionals }) => {
    const [id = ""] = positionals;
    const cancelled = await client.instances.cancel(id, {
      reason: options.reason,
      shouldCompensate: options["no-compensate"] ? false : undefined,
    });
    const instance = options.wait ? await client.instances.wait(id) : cancelled;
    output.json(instance);
    if (output.isJson) return EXIT.done;

    if (options.wait) {
      for (const line of instanceLines(output, instance)) output.line(line);
    } else {
      const status = instance.compensation?.status;
      const more = status === undefined ? "" : `; compensation ${status}`;
      output.line(`${id} is ${instance.status}${more}`);
    }
    return EXIT.done;
  },
});
