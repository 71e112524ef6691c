import { type Command, defineCommand } from "../command.ts";
import { EXIT } from "../exit-codes.ts";
import { jsonOf, timeOf } from "../values.ts";

export const event: Command = defineCommand({
  name: "event",
  summary: "publish an event",
  isClient: true,
  arguments: [{ name: "pattern", description: "its kind, as payment.received" }],
  options: {
    payload: {
      type: "string",
      short: "p",
      value: "json",
      description: "JSON, @file (JSON or YAML), or - for the standard input (default: {})",
    },
    id: {
      type: "string",
      value: "id",
      description: "the same id again is a duplicate that does nothing (default: a new one)",
    },
    "occurred-at": {
      type: "string",
      value: "time",
      description: "when it happened (default: now)",
    },
    tenant: { type: "string", value: "id", description: "the tenant it belongs to" },
  },
  details: [
    "The answer says how many waits, cancellation triggers and start triggers it matched when it " +
      "was accepted. Accepted is durable: no wait that it matched can miss it.",
  ],
  examples: [`millrace event payment.received --payload '{"orderId":"42","id":"p-1","amount":99}'`],
  run: async (context, { options, positionals }) => {
    const { client, output } = context;
    const [pattern = ""] = positionals;
    const payload = await jsonOf("--payload", options.payload, context);
    const answer = await client.events.publish({
      pattern,
      payload: payload ?? {},
      id: options.id,
      occurredAt: timeOf("--occurred-at", options["occurred-at"]),
      tenantId: options.tenant,
    });
    output.json(answer);
    if (output.isJson) return EXIT.done;

    const { id, duplicate, delivered, cancelled, started, rejected = [] } = answer;
    output.line(
      duplicate
        ? `${id} was accepted before; it does nothing again`
        : `${id} accepted: ${delivered} delivered, ${cancelled} cancelled, ${started} started`,
    );
    for (const { workflowId, errors } of rejected) {
      const faults = errors.map(({ path, message }) => `${path || "/"}: ${message}`);
      output.note(`${workflowId} was not started, its input does not fit: ${faults.join("; ")}`);
    }
    return EXIT.done;
  },
});
