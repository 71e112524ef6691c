import { MillraceConnectionError, type MillraceClient } from "@millrace/client";
import { type Command, defineCommand } from "../command.ts";
import type { Check } from "../doctor/check.ts";
import { checkApi, checkDatabase } from "../doctor/connectivity.ts";
import { checkDrift, type Installation } from "../doctor/drift.ts";
import { checkInstances, type InstanceChecks } from "../doctor/instances.ts";
import { UsageError } from "../errors.ts";
import { EXIT, type ExitCode } from "../exit-codes.ts";
import { reportOf } from "../failure.ts";
import { type Output, printable, type Style } from "../output.ts";

export const doctor: Command = defineCommand({
  name: "doctor",
  summary: "check connections, schema, drift, and whether what is stored agrees with itself",
  isClient: true,
  options: {
    instance: { type: "string", short: "i", value: "id", description: "only this instance" },
    all: { type: "boolean", description: "every instance (default: a sample of the latest)" },
    repair: { type: "boolean", description: "make good what needs nobody's judgement" },
  },
  details: [
    "It can be run at any time, also with --repair: what is consistent is never touched, and what is " +
      "repaired of an instance is in its history. With DATABASE_URL it also looks at the database itself, and at " +
      "rows of instances that are gone.",
    "It ends with 1 where something does not work or an instance is damaged; warnings do not count.",
  ],
  examples: [
    "millrace doctor",
    "millrace doctor --instance 0198c1de-… --repair",
    "millrace doctor --all --json",
  ],
  run: async ({ client, output, settings, apiUrl }, { options }) => {
    const { instance: instanceId, all, repair } = options;
    if (instanceId !== undefined && all) {
      throw new UsageError("doctor takes --instance or --all, not both");
    }
    const checks: Check[] =
      instanceId === undefined ? [...(await checkDatabase(settings.databaseUrl, repair))] : [];
    let instances: InstanceChecks | undefined;
    try {
      if (instanceId === undefined) {
        checks.push(...(await checkApi(client, apiUrl)));
        checks.push(...checkDrift(await installationOf(client)));
      }
      instances = await checkInstances(client, { instanceId, all, repair });
    } catch (error) {
      const { message, advice, exitCode } = reportOf(error, apiUrl);
      checks.push({ name: "api", status: "FAILED", detail: message, ...(advice && { advice }) });
      report(output, checks, instances);
      return error instanceof MillraceConnectionError ? EXIT.unreachable : exitCode;
    }
    report(output, checks, instances);
    return exitCodeOf(checks, instances);
  },
});

async function installationOf(client: MillraceClient): Promise<Installation> {
  const [workers, tasks, queues, stats, definitions] = await Promise.all([
    client.workers(),
    client.tasks(),
    client.queues(),
    client.stats(),
    definitionsOf(client),
  ]);
  return {
    workers: workers.items,
    tasks: tasks.items,
    queues: queues.items,
    workflows: stats.workflows,
    definitions,
  };
}

async function definitionsOf(client: MillraceClient): Promise<Installation["definitions"]> {
  const found: Installation["definitions"][number][] = [];
  let cursor: string | undefined;
  do {
    const page = await client.definitions.list({ limit: 100, cursor });
    for (const { id } of page.items) found.push((await client.definitions.get(id)).definition);
    cursor = page.nextCursor ?? undefined;
  } while (cursor !== undefined);
  return found;
}

function exitCodeOf(checks: readonly Check[], { inconsistent }: InstanceChecks): ExitCode {
  const isDamaged = inconsistent.some(({ findings }) =>
    findings.some(({ severity }) => severity === "ERROR"),
  );
  return isDamaged || checks.some(({ status }) => status === "FAILED") ? EXIT.failed : EXIT.done;
}

const STYLES: Readonly<Record<Check["status"], Style>> = {
  OK: "green",
  WARNING: "yellow",
  FAILED: "red",
  SKIPPED: "dim",
};

function report(
  output: Output,
  checks: readonly Check[],
  instances: InstanceChecks | undefined,
): void {
  const isOk = instances !== undefined && exitCodeOf(checks, instances) === EXIT.done;
  output.json({ ok: isOk, checks, ...(instances && { instances }) });
  if (output.isJson) return;
  for (const { name, status, detail, advice } of checks) {
    const word = output.paint(STYLES[status], status.toLowerCase().padEnd(8));
    output.line(`${word}${name.padEnd(16)}${printable(detail)}`);
    if (advice !== undefined) output.line(`${" ".repeat(24)}${printable(advice)}`);
  }
  if (instances === undefined) return;
  const { checked, inconsistent, repaired } = instances;
  const status = inconsistent.length === 0 ? "OK" : "FAILED";
  const word = output.paint(STYLES[status], status.toLowerCase().padEnd(8));
  const what = `${checked} checked, ${inconsistent.length} not consistent, ${repaired.length} repaired`;
  output.line(`${word}${"instances".padEnd(16)}${what}`);
  for (const { instanceId, codes } of repaired) {
    output.line(`  ${instanceId} repaired: ${codes.join(", ")}`);
  }
  for (const { instanceId, findings } of inconsistent) {
    output.line(`  ${instanceId}`);
    for (const { code, severity, message, repair, advice } of findings) {
      const style = severity === "ERROR" ? "red" : "yellow";
      output.line(`    ${output.paint(style, code)}  ${printable(message)}`);
      const next = repair === undefined ? advice : `with --repair ${repair}`;
      if (next !== undefined) output.line(`      ${printable(next)}`);
    }
  }
}
