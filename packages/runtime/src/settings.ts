import { readFileSync } from "node:fs";
import { isIP } from "node:net";
import { isRefusal, parseDuration } from "@millrace/engine";
import { type LogLevel, logLevels } from "@millrace/telemetry";
import * as z from "zod";

/**
 * Every setting of every program, as one table: what is checked at start is what `docs/settings.md`
 * and `.env.example` are written from. All of them are environment variables.
 */

export const PROGRAMS = ["api", "worker", "scheduler"] as const;
export type Program = (typeof PROGRAMS)[number];

export interface Setting {
  /** From the text of the variable to the value that the program uses. */
  readonly schema: z.ZodType<unknown, string>;
  /** As the variable would say it; absent where there is none. */
  readonly default?: string;
  /** What a good value looks like, for the table and for messages. */
  readonly form: string;
  readonly about: string;
  readonly programs: readonly Program[];
  /** Without it, and without a default, a program does not start. */
  readonly isRequired?: true;
  /** Holds a password or the like: a message never shows it. */
  readonly isSecret?: true;
  readonly example?: string;
}

export const SETTINGS = {
  DATABASE_URL: {
    schema: urlOf(["postgres:", "postgresql:"]),
    form: "a `postgres://` URL",
    about:
      "The Postgres that holds everything, version 15 or later. Its `sslmode` `prefer`, `require` and `verify-ca` are taken for `verify-full`, unless it says `uselibpqcompat=true` too. `millrace dev`, the demo and the tests bring their own where it is absent.",
    programs: PROGRAMS,
    isRequired: true,
    isSecret: true,
    example: "postgres://millrace:secret@localhost:5432/millrace",
  },
  REDIS_URL: {
    schema: urlOf(["redis:", "rediss:"]),
    form: "a `redis://` or `rediss://` URL",
    about: "The Redis (6.2 or later) or Valkey that carries the jobs.",
    programs: PROGRAMS,
    isSecret: true,
    example: "redis://localhost:6379/0",
  },
  MILLRACE_QUEUE_BACKEND: {
    schema: oneOf(["redis", "postgres"]),
    form: "`redis` or `postgres`",
    about:
      "Where the jobs travel. Default: `redis` where `REDIS_URL` is set, else `postgres`, which is slower and good for trying out.",
    programs: PROGRAMS,
  },
  MILLRACE_KEY_PREFIX: {
    schema: text(/^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/),
    default: "millrace",
    form: "letters, digits, `-` and `_`, at most 64",
    about: "What every key in Redis begins with; keeps installations that share one apart.",
    programs: PROGRAMS,
  },
  MILLRACE_POOL_SIZE: {
    schema: wholeNumber(1, 500),
    default: "10",
    form: "a whole number from 1 to 500",
    about: "Connections to Postgres that one process opens at most.",
    programs: PROGRAMS,
  },
  HOST: {
    schema: text(/^[A-Za-z0-9.:_%-]{1,255}$/),
    default: "127.0.0.1",
    form: "an address or host name",
    about:
      "Address that the API and the metrics servers listen on. `0.0.0.0` is every IPv4 address.",
    programs: PROGRAMS,
  },
  PORT: {
    schema: wholeNumber(0, 65_535),
    default: "8080",
    form: "a port; 0 takes a free one",
    about: "Port of the HTTP API.",
    programs: ["api"],
  },
  MILLRACE_METRICS_PORT: {
    schema: wholeNumber(0, 65_535),
    form: "a port; 0 takes a free one",
    about:
      "Port on which a worker or scheduler serves `/metrics` and `/healthz`. Absent: no such server. The API serves its own under `PORT`.",
    programs: ["worker", "scheduler"],
    example: "9090",
  },
  LOG_LEVEL: {
    schema: oneOf(logLevels),
    default: "info",
    form: "`fatal`, `error`, `warn`, `info`, `debug`, `trace` or `silent`",
    about: "The least grave entries that are logged, as JSON lines on the standard output.",
    programs: PROGRAMS,
  },
  MILLRACE_CONCURRENCY: {
    schema: wholeNumber(1, 1_000),
    default: "50",
    form: "a whole number from 1 to 1000",
    about: "Tasks that one worker process runs at the same time.",
    programs: ["worker"],
  },
  MILLRACE_CELLS: {
    schema: wholeNumber(1, 100),
    form: "a whole number from 1 to 100",
    about:
      "Processes that a worker has at most, for each of its queues, in which steps run alone whose task is isolated, or under which workers have died (docs/reliability.md). Each needs up to 150 MB and four connections to Postgres, and is there only while it has such a step. Absent: one for each 512 MB of memory that there is, at least 2, at most 8.",
    programs: ["worker"],
    example: "4",
  },
  MILLRACE_TASKS: {
    schema: list(),
    default: "",
    form: "paths separated by commas",
    about: "Files and folders of task modules that a worker loads.",
    programs: ["worker"],
    example: "./tasks",
  },
  MILLRACE_QUEUES: {
    schema: list(/^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$/),
    default: "default",
    form: "names separated by commas",
    about: "Queues that a worker takes steps from, and whose depth the API tells in its metrics.",
    programs: ["api", "worker"],
  },
  MILLRACE_HTTP_ALLOW: {
    schema: list().refine((items) => items.every(isHostOrRange)),
    default: "",
    form: "hosts, addresses and ranges separated by commas",
    about:
      "Whom the task `http.request`, and a scheduler's webhooks, may reach although the address is not one of the public internet (docs/built-in-tasks.md, docs/webhooks.md); `*.example.com` is every host below that name. A host that is named may be at any address.",
    programs: ["worker", "scheduler"],
    example: "billing.internal,10.1.0.0/16",
  },
  MILLRACE_GRACE: {
    schema: duration(0, 3_600_000),
    default: "PT10S",
    form: "an ISO 8601 duration of at most an hour",
    about:
      "How long a process that was asked to end (SIGTERM, SIGINT) lets what runs come to its end. A second signal ends it at once.",
    programs: PROGRAMS,
  },
  MILLRACE_CHECKS_PER_MINUTE: {
    schema: wholeNumber(0, 600),
    default: "6",
    form: "a whole number from 0 to 600",
    about:
      "Instances whose consistency each scheduler checks in a minute, whichever they are (docs/reliability.md). 0: none.",
    programs: ["scheduler"],
  },
  MILLRACE_RETENTION: {
    schema: duration(60_000, 36_500 * 86_400_000),
    form: "an ISO 8601 duration of at least a minute, in days or less",
    about:
      "Instances that have settled longer ago are deleted with all that is stored of them, and so is what else has had its time (docs/reliability.md). Give every scheduler the same. Absent: nothing is ever deleted.",
    programs: ["scheduler"],
    example: "P90D",
  },
  MILLRACE_AUTH: {
    schema: oneOf(["none"]),
    default: "none",
    form: "`none`",
    about:
      "How callers of the API prove who they are. There is only `none` so far: keep the API on a network that you trust.",
    programs: ["api"],
  },
} as const satisfies Readonly<Record<string, Setting>>;

export type SettingName = keyof typeof SETTINGS;

export interface Settings {
  readonly databaseUrl: string;
  readonly redisUrl?: string;
  readonly queueBackend: "redis" | "postgres";
  readonly keyPrefix: string;
  readonly poolSize: number;
  readonly host: string;
  readonly port: number;
  readonly metricsPort?: number;
  readonly logLevel: LogLevel;
  readonly concurrency: number;
  /** Absent: as many as the memory is good for. */
  readonly cells?: number;
  readonly tasks: readonly string[];
  readonly queues: readonly string[];
  /** Hosts, addresses and ranges that `http.request` and webhooks may reach beside public ones. */
  readonly httpAllow: readonly string[];
  readonly graceMs: number;
  readonly checksPerMinute: number;
  /** Absent: nothing is deleted. */
  readonly retentionMs?: number;
  /** Variables that look like settings and are none, to be warned of. */
  readonly unknown: readonly string[];
}

export type Environment = Readonly<Record<string, string | undefined>>;

/** What is wrong with the settings, all of it: nothing starts before it is put right. */
export class SettingsError extends Error {
  override readonly name = "SettingsError";
  readonly problems: readonly string[];
  constructor(program: Program, problems: readonly string[]) {
    const lines = problems.map((problem) => `  - ${problem}`).join("\n");
    super(`the ${program} cannot start with these settings:\n${lines}\nSee docs/settings.md.`);
    this.problems = problems;
  }
}

/**
 * Reads the settings of one program. A variable that is empty counts as absent.
 *
 * @throws {SettingsError} With every problem at once.
 */
export function parseSettings(env: Environment, program: Program): Settings {
  const problems: string[] = [];
  const read = <Name extends SettingName>(name: Name) =>
    readSetting(name, env, program, problems) as z.output<(typeof SETTINGS)[Name]["schema"]>;
  const readOptional = <Name extends SettingName>(name: Name) => read(name) ?? undefined;

  const redisUrl = readOptional("REDIS_URL");
  const metricsPort = readOptional("MILLRACE_METRICS_PORT");
  const cells = readOptional("MILLRACE_CELLS");
  const retentionMs = readOptional("MILLRACE_RETENTION");
  const queueBackend =
    readOptional("MILLRACE_QUEUE_BACKEND") ?? (redisUrl === undefined ? "postgres" : "redis");
  read("MILLRACE_AUTH");
  const settings: Settings = {
    databaseUrl: read("DATABASE_URL"),
    ...(redisUrl === undefined ? {} : { redisUrl }),
    queueBackend,
    keyPrefix: read("MILLRACE_KEY_PREFIX"),
    poolSize: read("MILLRACE_POOL_SIZE"),
    host: read("HOST"),
    port: read("PORT"),
    ...(metricsPort === undefined ? {} : { metricsPort }),
    logLevel: read("LOG_LEVEL"),
    concurrency: read("MILLRACE_CONCURRENCY"),
    ...(cells === undefined ? {} : { cells }),
    tasks: read("MILLRACE_TASKS"),
    queues: read("MILLRACE_QUEUES"),
    httpAllow: read("MILLRACE_HTTP_ALLOW"),
    graceMs: read("MILLRACE_GRACE"),
    checksPerMinute: read("MILLRACE_CHECKS_PER_MINUTE"),
    ...(retentionMs === undefined ? {} : { retentionMs }),
    unknown: unknownSettings(env),
  };

  problems.push(...tlsProblems(settings.databaseUrl));
  if (queueBackend === "redis" && valueOf(env, "REDIS_URL") === undefined) {
    problems.push("REDIS_URL is missing, and MILLRACE_QUEUE_BACKEND says redis");
  }
  if (problems.length > 0) throw new SettingsError(program, problems);
  return settings;
}

/**
 * What the URL asks of TLS. The driver takes a mode that it does not know for the strictest, breaks on other
 * values of `ssl`, reads the files with each connection that it opens, and passes over one that holds nothing.
 */
function tlsProblems(databaseUrl: string | undefined): string[] {
  if (databaseUrl === undefined) return [];
  const { searchParams } = new URL(databaseUrl);
  const said = (name: string) => searchParams.getAll(name).at(-1) || undefined;
  const mode = said("sslmode");
  const problems: string[] = [];
  if (mode !== undefined && !sslModes.includes(mode)) {
    problems.push(`its sslmode must be ${listOf(sslModes)}`);
  }
  const ssl = said("ssl");
  const isOverruled = [mode, said("sslrootcert"), said("sslcert"), said("sslkey")].some(Boolean);
  if (ssl !== undefined && !isOverruled && !sslSwitches.includes(ssl)) {
    problems.push(`its ssl must be ${listOf(sslSwitches)}; sslmode says more`);
  }
  const isByLibpq = said("uselibpqcompat") === "true";
  if (isByLibpq && mode === "verify-ca" && said("sslrootcert") === undefined) {
    problems.push("its sslmode verify-ca needs an sslrootcert, or is to be verify-full");
  }
  for (const name of ["sslrootcert", "sslcert", "sslkey"]) {
    const file = said(name);
    const why = file === undefined ? undefined : whyNoPem(file);
    if (why !== undefined) problems.push(`its ${name} must name a file in PEM to read: ${why}`);
  }
  return problems.map((problem) => `DATABASE_URL: ${problem}`);
}

const sslModes = ["disable", "prefer", "require", "verify-ca", "verify-full", "no-verify"];
const sslSwitches = ["1", "true", "0", "no-verify"];

function listOf(words: readonly string[]): string {
  return `${words.slice(0, -1).join(", ")} or ${words.at(-1)}`;
}

function whyNoPem(file: string): string | undefined {
  try {
    const isPem = readFileSync(file, "latin1").includes("-----BEGIN ");
    return isPem ? undefined : `there is no "-----BEGIN" in '${file}'`;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** Variables of the command line, the demo and the tests, which also begin like ours. */
const OTHERS = /^MILLRACE_(?:API$|DEMO_|TEST_)/;

/** Variables that begin like ours and are none: a slip of the hand that would go unnoticed. */
function unknownSettings(env: Environment): string[] {
  return Object.keys(env).filter(
    (name) => name.startsWith("MILLRACE_") && !Object.hasOwn(SETTINGS, name) && !OTHERS.test(name),
  );
}

function readSetting(
  name: SettingName,
  env: Environment,
  program: Program,
  problems: string[],
): unknown {
  const setting: Setting = SETTINGS[name];
  const isUsed = setting.programs.includes(program);
  // What another program reads is not this one's to refuse.
  const found = (isUsed ? valueOf(env, name) : undefined) ?? setting.default;
  const form = setting.form.replaceAll("`", "");
  if (found === undefined) {
    if (isUsed && setting.isRequired) problems.push(`${name} is missing; it must be ${form}`);
    return undefined;
  }
  const parsed = setting.schema.safeParse(found);
  if (parsed.success) return parsed.data;
  const shown = setting.isSecret ? "its value" : JSON.stringify(found);
  problems.push(`${name}: ${shown} is not ${form}`);
  return undefined;
}

function valueOf(env: Environment, name: SettingName): string | undefined {
  const value = env[name]?.trim();
  return value === "" ? undefined : value;
}

function text(pattern: RegExp) {
  return z.string().regex(pattern);
}

function oneOf<const Choice extends string>(choices: readonly Choice[]) {
  return z.enum(choices) as z.ZodType<Choice, string>;
}

function wholeNumber(least: number, most: number) {
  return z.string().regex(/^\d+$/).transform(Number).pipe(z.int().min(least).max(most));
}

function list(item = /^.+$/) {
  return z
    .string()
    .transform((value) => value.split(",").map((each) => each.trim()))
    .transform((items) => items.filter((each) => each !== ""))
    .pipe(z.array(z.string().regex(item)));
}

/** A host name, with `*.` before it or without, an address, or a range of them. */
function isHostOrRange(entry: string): boolean {
  const [host = "", bits] = entry.split("/");
  const version = isIP(host);
  if (bits !== undefined) return version !== 0 && Number(bits) <= (version === 4 ? 32 : 128);
  // A last label of digits would be an address, if a wrong one.
  const name = /^(?:\*\.)?(?:[\w-]{1,63}\.)*(?!\d+\.?$)[\w-]{1,63}\.?$/;
  return version !== 0 || (host.length <= 255 && name.test(host));
}

function duration(leastMs: number, mostMs: number) {
  return z
    .string()
    .transform((value) => {
      const parsed = parseDuration(value);
      return isRefusal(parsed) || parsed.months > 0 ? Number.NaN : parsed.ms;
    })
    .pipe(z.number().min(leastMs).max(mostMs));
}

function urlOf(protocols: readonly string[]) {
  return z
    .string()
    .refine((value) => URL.canParse(value) && protocols.includes(new URL(value).protocol));
}
