import { createServer } from "node:net";
import { join, resolve } from "node:path";
import type { Stack, StackEvent } from "@millrace/devstack";
import { type Command, type Context, defineCommand } from "../command.ts";
import { CommandError } from "../errors.ts";
import { EXIT } from "../exit-codes.ts";
import { listenForInterrupt } from "../interrupt.ts";
import type { Output } from "../output.ts";
import { queueChoice, queueText } from "../queue-choice.ts";
import { reviveServers } from "../revive-servers.ts";
import { withoutPassword } from "../secrets.ts";
import { startStack } from "../start-stack.ts";
import { taskPaths } from "../task-paths.ts";
import { integerOf } from "../values.ts";

export const dev: Command = defineCommand({
  name: "dev",
  summary:
    "run everything on this machine until Ctrl-C: API, scheduler, workers and what they need",
  isClient: false,
  arguments: [{ name: "path", description: "more task modules", isOptional: true, isRest: true }],
  options: {
    workers: { type: "string", value: "count", description: "worker processes (default: 2)" },
    port: {
      type: "string",
      value: "port",
      description: "of the API; 0 takes a free one (default: 8080)",
    },
    "data-dir": {
      type: "string",
      value: "folder",
      description: "where Postgres, Redis and logs live (default: .millrace)",
    },
    tasks: {
      type: "string",
      value: "path",
      isRepeatable: true,
      description: "file or folder of task modules",
    },
    "ready-json": {
      type: "boolean",
      description: "when all is up, print one line of JSON with addresses and process ids",
    },
    "no-restart": { type: "boolean", description: "do not replace a process that dies" },
  },
  details: [
    "Without DATABASE_URL it runs a Postgres of its own in the data folder, which keeps its data. " +
      "Without REDIS_URL it runs a Redis of its own where redis-server or valkey-server is on the " +
      "PATH, and else keeps the queue in Postgres. MILLRACE_QUEUE_BACKEND=postgres asks for that.",
    "A process that dies is replaced. What they print goes to <data folder>/logs.",
  ],
  examples: [
    "millrace dev --tasks ./tasks",
    "millrace dev --port 0 --workers 4 --data-dir /tmp/millrace --ready-json",
  ],
  run: async (context, { options, positionals }) => {
    const { output } = context;
    const port = integerOf("--port", options.port, { min: 0, max: 65_535 }) ?? 8_080;
    const workers = integerOf("--workers", options.workers, { min: 0, max: 64 }) ?? 2;
    const dataDir = resolve(options["data-dir"] ?? ".millrace");
    const tasks = taskPaths([...options.tasks, ...positionals]);
    const isReadyJson = options["ready-json"] || output.isJson;
    const say = isReadyJson ? output.note : output.line;
    await checkPort(port);

    const queue = queueChoice(context.settings);
    say(`Starting Millrace in ${dataDir} …`);
    const interrupt = listenForInterrupt(() => output.note("Stopping at once."));
    const starting = watchStart(output, dataDir);
    try {
      const isRestarted = !options["no-restart"];
      const stack = await startStack({
        dataDir,
        databaseUrl: context.settings.databaseUrl,
        redisUrl: queue.redisUrl,
        queueBackend: queue.backend,
        port,
        workers,
        tasks,
        isRestarted,
        onEvent: (event) => {
          starting.note(event);
          tell(output, event, interrupt.signal);
        },
        signal: interrupt.signal,
      });
      starting.end();
      if (stack === undefined) {
        say("Stopped before it was ready.");
        return EXIT.done;
      }
      const stopReviving = isRestarted ? reviveServers(stack, output.note) : async () => {};
      try {
        if (!interrupt.signal.aborted) {
          if (isReadyJson) printReadyLine(output, stack, queue.reason, dataDir);
          else printAddresses(context, stack, queue.reason, dataDir);
        }
        const signal = await interrupt.happened;
        say(`${signal}: stopping …`);
      } finally {
        await stopReviving();
        await stack.close();
      }
      say("Stopped.");
      return EXIT.done;
    } finally {
      starting.end();
      interrupt.dispose();
    }
  },
});

/** Says what is waited for where the start takes long: a task module, say, that never comes to its end. */
function watchStart(output: Output, dataDir: string) {
  const awaited = new Set<string>();
  const timer = setTimeout(() => {
    const names = [...awaited].join(", ") || "Postgres or Redis";
    output.note(`Still waiting for ${names}; see ${join(dataDir, "logs")}.`);
  }, LONG_START_MS);
  return {
    note({ kind, name }: StackEvent): void {
      if (kind === "started") awaited.add(name);
      else if (kind === "ready") awaited.delete(name);
    },
    end: () => clearTimeout(timer),
  };
}

const LONG_START_MS = 10_000;

/** Before anything else is started: the API itself would notice only at the end. */
async function checkPort(port: number): Promise<void> {
  if (port === 0) return;
  await new Promise<void>((pass, refuse) => {
    const server = createServer();
    server.once("error", (cause: NodeJS.ErrnoException) => {
      const reason = cause.code === "EADDRINUSE" ? "is in use" : `cannot be used: ${cause.message}`;
      const advice = "Choose another with --port <port>; --port 0 takes a free one.";
      refuse(new CommandError("PORT_IN_USE", `port ${port} ${reason}`, { advice, cause }));
    });
    server.listen(port, "127.0.0.1", () => server.close(() => pass()));
  });
}

function tell(output: Output, event: StackEvent, stopping: AbortSignal): void {
  const { kind, name, pid, exit } = event;
  if (stopping.aborted || exit === undefined) return;
  const how = exit.signal ?? `exit code ${exit.code}`;
  const then = kind === "restarting" ? "starting another" : "it is not replaced";
  output.note(`${name} (process ${pid}) has ended (${how}); ${then}`);
}

/** One line, for programs that start `dev` and wait for it. */
function printReadyLine(output: Output, stack: Stack, queueReason: string, dataDir: string): void {
  const line = {
    ready: true,
    api: stack.apiUrl,
    databaseUrl: stack.databaseUrl,
    redisUrl: stack.redisUrl ?? null,
    pids: stack.pids(),
    queue: stack.queueBackend,
    queueReason,
    dataDir,
    servers: { postgres: stack.postgres?.pid ?? null, redis: stack.redis?.pid ?? null },
  };
  output.line(JSON.stringify(line));
}

function printAddresses(
  { output }: Context,
  stack: Stack,
  queueReason: string,
  dataDir: string,
): void {
  const { apiUrl, postgres, databaseUrl } = stack;
  const pids = Object.entries(stack.pids()).map(([role, list]) => `${role} ${list.join(" ")}`);
  const rows = [
    ["API", apiUrl],
    ["API docs", `${apiUrl}/docs`],
    ["Metrics", `${apiUrl}/metrics`],
    ["Database", databaseText(databaseUrl, postgres && dataDir)],
    ["Queue", queueText(stack, queueReason)],
    ["Processes", pids.join(", ")],
    ["Logs", join(dataDir, "logs")],
  ];
  output.line(output.paint("green", "Ready."));
  for (const [name = "", value] of rows) output.line(`  ${name.padEnd(10)} ${value}`);
  const api = new URL(apiUrl).port === "8080" ? "" : ` --api ${apiUrl}`;
  output.line(`In another terminal: millrace apply <file>${api}. Ctrl-C stops everything.`);
}

function databaseText(url: string, dataDir: string | undefined): string {
  if (dataDir === undefined) return withoutPassword(url);
  return `${withoutPassword(url, "")} (password in ${join(dataDir, "postgres/password")})`;
}
