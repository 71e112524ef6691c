import { type Command, defineCommand } from "../command.ts";
import { EXIT } from "../exit-codes.ts";
import { jsonLine, printable } from "../output.ts";
import { timeText } from "../times.ts";

export const why: Command = defineCommand({
  name: "why",
  summary: "say why an instance is not moving",
  isClient: true,
  arguments: [{ name: "id", description: "the id of an instance" }],
  options: {},
  details: [
    "For an event wait it shows the condition with the instance's values, and the last events that came close, each with the part of the condition that was false.",
  ],
  examples: ["millrace why 0198c1de-…", "millrace why 0198c1de-… --json"],
  run: async ({ client, output }, { positionals }) => {
    const [id = ""] = positionals;
    const view = await client.instances.why(id);
    output.json(view);
    if (output.isJson) return EXIT.done;
    if (view.reasons.length === 0) output.line(printable(view.summary));
    for (const { message, nearMisses = [] } of view.reasons) {
      output.line(printable(message));
      for (const { eventId, payload, receivedAt, because, failed } of nearMisses) {
        const when = `${timeText(receivedAt)} UTC`;
        output.line(`  event ${printable(eventId)} at ${when} missed: ${jsonLine(payload, 60)}`);
        if (because === "BEFORE_WAIT") output.line("    it came before the wait was open");
        for (const { source, filledIn } of failed) {
          output.line(`    false: ${printable(source)}, that is ${printable(filledIn)}`);
        }
      }
    }
    return EXIT.done;
  },
});
