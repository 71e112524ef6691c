import { type Command, defineCommand } from "../command.ts";
import { setEnvironment } from "../config.ts";
import { integerOf } from "../values.ts";

/** The apps by name: they are programs, which start when they are loaded. */
const PROGRAMS = {
  api: () => import("@millrace/api/main"),
  worker: () => import("@millrace/worker/main"),
  scheduler: () => import("@millrace/scheduler/main"),
} as const;

const SETTINGS =
  "Everything else is set by the environment (DATABASE_URL, REDIS_URL, LOG_LEVEL, …); what is " +
  "missing or wrong is named at start.";

export const api: Command = defineCommand({
  name: "api",
  summary: "run the HTTP API in this process",
  isClient: false,
  options: {
    port: {
      type: "string",
      value: "port",
      description: "where to listen (default: PORT, or 8080)",
    },
    host: { type: "string", value: "address", description: "on which address (default: HOST)" },
  },
  details: [SETTINGS],
  examples: ["DATABASE_URL=postgres://… REDIS_URL=redis://… millrace api --port 8080"],
  run: async (_, { options }) => {
    const port = integerOf("--port", options.port, { min: 0, max: 65_535 });
    return serve("api", { PORT: port?.toString(), HOST: options.host });
  },
});

export const worker: Command = defineCommand({
  name: "worker",
  summary: "run a worker in this process",
  isClient: false,
  arguments: [{ name: "path", description: "more task modules", isOptional: true, isRest: true }],
  options: {
    tasks: {
      type: "string",
      value: "path",
      isRepeatable: true,
      description: "file or folder of task modules (default: MILLRACE_TASKS)",
    },
    queues: {
      type: "string",
      value: "names",
      isRepeatable: true,
      description: "queues to serve, joined by commas (default: MILLRACE_QUEUES)",
    },
    concurrency: {
      type: "string",
      value: "count",
      description: "tasks at a time (default: MILLRACE_CONCURRENCY)",
    },
  },
  details: [SETTINGS],
  examples: [
    "millrace worker --tasks ./tasks",
    "millrace worker --tasks ./tasks --queues mail,reports --concurrency 50",
  ],
  run: async (_, { options, positionals }) => {
    const concurrency = integerOf("--concurrency", options.concurrency, { min: 1, max: 1_000 });
    return serve("worker", {
      MILLRACE_TASKS: listOf([...options.tasks, ...positionals]),
      MILLRACE_QUEUES: listOf(options.queues),
      MILLRACE_CONCURRENCY: concurrency?.toString(),
    });
  },
});

export const scheduler: Command = defineCommand({
  name: "scheduler",
  summary: "run a scheduler in this process",
  isClient: false,
  options: {},
  details: [
    "It fires timers and puts right what a crash has left. Several may run; none is the leader.",
    SETTINGS,
  ],
  examples: ["millrace scheduler"],
  run: async () => serve("scheduler", {}),
});

async function serve(
  role: keyof typeof PROGRAMS,
  environment: Readonly<Record<string, string | undefined>>,
): Promise<undefined> {
  setEnvironment(environment);
  await PROGRAMS[role]();
}

function listOf(values: readonly string[]): string | undefined {
  return values.length > 0 ? values.join(",") : undefined;
}
