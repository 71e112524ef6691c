import {
  INSTANCE_ORDERS,
  INSTANCE_STATUSES,
  type InstanceStatus,
  type InstanceView,
  type JsonValue,
} from "@millrace/contract";
import type { ListInstances } from "@millrace/client";
import { type Command, defineCommand } from "../command.ts";
import { UsageError } from "../errors.ts";
import { EXIT } from "../exit-codes.ts";
import { statusText } from "../instance-lines.ts";
import { didYouMean } from "../near.ts";
import { type Output, printable, shorten } from "../output.ts";
import { table } from "../table.ts";
import { timeText } from "../times.ts";
import { integerOf, oneOf, timeOf } from "../values.ts";

export const ls: Command = defineCommand({
  name: "ls",
  summary: "list instances",
  isClient: true,
  options: {
    status: {
      type: "string",
      short: "s",
      value: "status",
      isRepeatable: true,
      description: "of this status, or of several joined by commas",
    },
    workflow: { type: "string", value: "id", description: "of this workflow" },
    "workflow-version": { type: "string", value: "number", description: "of this version" },
    "correlation-id": { type: "string", value: "id", description: "with this correlation id" },
    tenant: { type: "string", value: "id", description: "of this tenant" },
    step: { type: "string", value: "stepId", description: "that now stand at this step" },
    "waiting-for": { type: "string", value: "pattern", description: "that wait for this event" },
    "created-after": { type: "string", value: "time", description: "created after" },
    "created-before": { type: "string", value: "time", description: "created before" },
    "updated-after": { type: "string", value: "time", description: "changed after" },
    "updated-before": { type: "string", value: "time", description: "changed before" },
    var: {
      type: "string",
      value: "path=json",
      isRepeatable: true,
      description: "whose variable at this path has this value",
    },
    order: { type: "string", value: "order", description: INSTANCE_ORDERS.join(", ") },
    limit: { type: "string", short: "n", value: "count", description: "at most (default: 50)" },
    cursor: { type: "string", value: "cursor", description: "go on after a former page" },
    all: { type: "boolean", description: "all of them, page after page" },
  },
  details: [`Statuses, in any case: ${INSTANCE_STATUSES.join(", ")}.`],
  examples: [
    "millrace ls --status running,waiting_for_event",
    "millrace ls --workflow order_processing --created-after 2026-01-31 --all",
    `millrace ls --var customer.tier='"gold"' --json`,
  ],
  run: async ({ client, output }, { options }) => {
    const filter = {
      status: statusesOf(options.status),
      workflowId: options.workflow,
      workflowVersion: integerOf("--workflow-version", options["workflow-version"], {
        min: 1,
        max: 2_147_483_647,
      }),
      correlationId: options["correlation-id"],
      tenantId: options.tenant,
      currentStep: options.step,
      waitingFor: options["waiting-for"],
      createdAfter: timeOf("--created-after", options["created-after"]),
      createdBefore: timeOf("--created-before", options["created-before"]),
      updatedAfter: timeOf("--updated-after", options["updated-after"]),
      updatedBefore: timeOf("--updated-before", options["updated-before"]),
      variables: variablesOf(options.var),
      order: oneOf("--order", options.order, INSTANCE_ORDERS),
      cursor: options.cursor,
    } satisfies ListInstances;

    if (options.all) {
      const items: InstanceView[] = [];
      for await (const each of client.instances.each(filter)) items.push(each);
      output.json({ items, nextCursor: null });
      if (!output.isJson) print(output, items);
      return EXIT.done;
    }
    const limit = integerOf("--limit", options.limit, { min: 1, max: 500 }) ?? 50;
    const { items, nextCursor } = await client.instances.list({ ...filter, limit });
    output.json({ items, nextCursor });
    if (!output.isJson) {
      print(output, items);
      if (nextCursor !== null) output.note(`There are more: --all, or --cursor ${nextCursor}`);
    }
    return EXIT.done;
  },
});

function print(output: Output, items: readonly InstanceView[]): void {
  if (items.length === 0) {
    output.note("No instance matches.");
    return;
  }
  const rows = items.map((each) => [
    each.id,
    printable(each.workflowId),
    statusText(output, each.status),
    printable(whereabouts(each)),
    `${each.progress.completed}/${each.progress.total}`,
    timeText(each.createdAt),
    shorten(printable(each.correlationId ?? ""), 40),
  ]);
  const header = ["ID", "WORKFLOW", "STATUS", "AT", "STEPS", "CREATED (UTC)", "CORRELATION"];
  for (const line of table(header, rows, ["STEPS"])) output.line(line);
}

const LIVE = ["PENDING", "RUNNING", "WAITING", "RETRYING"];

/** The steps an instance stands at, or why it stands no more. */
function whereabouts({ state, error, compensation }: InstanceView): string {
  const live = Object.entries(state.steps).filter(([, { status }]) => LIVE.includes(status));
  if (live.length > 0) return shorten(live.map(([stepId]) => stepId).join(", "), 40);
  if (compensation?.status === "IN_PROGRESS") return "compensating";
  return error === null ? "" : shorten(error.type, 40);
}

function statusesOf(given: readonly string[]): readonly InstanceStatus[] | undefined {
  const statuses = given
    .flatMap((each) => each.split(","))
    .map((each) => {
      const wanted = each.trim().toUpperCase().replaceAll("-", "_");
      const found = INSTANCE_STATUSES.find((status) => status === wanted);
      if (found !== undefined) return found;
      const near = didYouMean(wanted, INSTANCE_STATUSES);
      throw new UsageError(`there is no status ${JSON.stringify(each)}${near}`);
    });
  return statuses.length > 0 ? statuses : undefined;
}

function variablesOf(given: readonly string[]): Readonly<Record<string, JsonValue>> | undefined {
  if (given.length === 0) return undefined;
  return Object.fromEntries(
    given.map((each) => {
      const [, path, json] = /^([^=]+)=(.*)$/s.exec(each) ?? [];
      if (path === undefined || json === undefined) {
        throw new UsageError(`--var takes path=json, as total=100, not ${JSON.stringify(each)}`);
      }
      try {
        return [path, JSON.parse(json) as JsonValue];
      } catch {
        throw new UsageError(
          `--var ${path}: ${json} is not JSON; a text needs quotes: '"${json}"'`,
        );
      }
    }),
  );
}
