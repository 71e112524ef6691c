import {
  type InstanceView,
  isJsonObject,
  isSettled,
  type JsonObject,
  type JsonValue,
} from "@millrace/contract";
import { type Command, defineCommand } from "../command.ts";
import { UsageError } from "../errors.ts";
import { EXIT, type ExitCode } from "../exit-codes.ts";
import { instanceLines } from "../instance-lines.ts";
import type { Output } from "../output.ts";
import { integerOf, jsonOf, timeOf } from "../values.ts";

export const start: Command = defineCommand({
  name: "start",
  summary: "start an instance of a workflow",
  isClient: true,
  arguments: [{ name: "workflowId", description: "the id of a registered definition" }],
  options: {
    input: {
      type: "string",
      short: "i",
      value: "json",
      description: "its input: JSON, @file (JSON or YAML), or - for the standard input",
    },
    wait: { type: "boolean", short: "w", description: "wait until it is settled, and show it" },
    timeout: { type: "string", value: "seconds", description: "with --wait: how long at most" },
    "correlation-id": { type: "string", value: "id", description: "ties related instances" },
    "idempotency-key": {
      type: "string",
      value: "key",
      description: "starting again with the same key and input gives the same instance",
    },
    "workflow-version": {
      type: "string",
      value: "number",
      description: "version of the definition (default: the latest)",
    },
    priority: { type: "string", value: "number", description: "-1000 to 1000, higher first" },
    deadline: { type: "string", value: "time", description: "orders the queue for admission" },
    tenant: { type: "string", value: "id", description: "the tenant it belongs to" },
    user: { type: "string", value: "id", description: "the user it is for" },
    metadata: { type: "string", value: "json", description: "an object kept with the instance" },
    "start-at": { type: "string", value: "time", description: "do not start before this time" },
  },
  details: [
    "With --wait the exit code is 0 when the instance COMPLETED, and 1 when it FAILED, was " +
      "CANCELLED, or is not settled in time. Ctrl-C ends the waiting, not the instance.",
  ],
  examples: [
    `millrace start order_processing --input '{"orderId":"42","lines":[{"sku":"a","quantity":1}]}'`,
    "millrace start order_processing --input @order.json --wait",
  ],
  run: async (context, { options, positionals }) => {
    const { client, output } = context;
    const [workflowId = ""] = positionals;
    const timeoutSeconds = integerOf("--timeout", options.timeout, { min: 1, max: 31_536_000 });
    const request = {
      workflowId,
      input: await jsonOf("--input", options.input, context),
      correlationId: options["correlation-id"],
      version: integerOf("--workflow-version", options["workflow-version"], VERSIONS),
      priority: integerOf("--priority", options.priority, { min: -1_000, max: 1_000 }),
      deadline: timeOf("--deadline", options.deadline),
      tenantId: options.tenant,
      userId: options.user,
      metadata: objectOf("--metadata", await jsonOf("--metadata", options.metadata, context)),
      startAt: timeOf("--start-at", options["start-at"]),
    };
    const started = await client.instances.start(request, {
      idempotencyKey: options["idempotency-key"],
    });
    if (!options.wait) {
      output.json(started);
      if (!output.isJson) printStarted(output, started);
      return EXIT.done;
    }
    output.note(`${started.id} is started; waiting until it is settled …`);
    const timeoutMs = timeoutSeconds === undefined ? undefined : timeoutSeconds * 1_000;
    return report(output, await client.instances.wait(started.id, { timeoutMs }));
  },
});

const VERSIONS = { min: 1, max: 2_147_483_647 };

function printStarted(output: Output, { id, workflowId, workflowVersion, status }: InstanceView) {
  output.line(id);
  output.note(`${workflowId} version ${workflowVersion} is ${status}: millrace show ${id}`);
}

function report(output: Output, instance: InstanceView): ExitCode {
  output.json(instance);
  if (!output.isJson) for (const line of instanceLines(output, instance)) output.line(line);
  return isSettled(instance) && instance.status === "COMPLETED" ? EXIT.done : EXIT.failed;
}

function objectOf(name: string, value: JsonValue | undefined): JsonObject | undefined {
  if (value === undefined || isJsonObject(value)) return value;
  throw new UsageError(`${name} must be a JSON object`);
}
