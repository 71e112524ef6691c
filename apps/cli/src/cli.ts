import { readFileSync } from "node:fs";
import type { Readable, Writable } from "node:stream";
import { text as textOf } from "node:stream/consumers";
import { MillraceClient } from "@millrace/client";
import type { Call, Command, Context } from "./command.ts";
import { commandNames, loadCommand, loadCommands } from "./commands/index.ts";
import { DEFAULT_API_URL, readSettings, type Settings } from "./config.ts";
import { UsageError } from "./errors.ts";
import { EXIT, type ExitCode } from "./exit-codes.ts";
import { reportOf } from "./failure.ts";
import { commandHelp, generalHelp, usageOf } from "./help.ts";
import { didYouMean } from "./near.ts";
import { openOutput, type Output } from "./output.ts";
import { parseArguments } from "./parse-arguments.ts";

export interface Streams {
  readonly stdin: Readable;
  readonly stdout: Writable & { readonly isTTY?: boolean; readonly columns?: number };
  readonly stderr: Writable;
}

/**
 * Runs one command line to its end.
 *
 * @returns Its exit code; `undefined` when the command has started a server in this process.
 */
export async function run(
  args: readonly string[],
  streams: Streams,
  settings: Settings = readSettings(),
): Promise<number | undefined> {
  const isJson = args.includes("--json");
  const output = openOutput({ ...streams, isJson, isColoured: settings.isColoured });
  const [name, ...rest] = commandFirst(args);

  if (name === undefined || name === "help" || name === "--help" || name === "-h") {
    return help(rest, name === undefined, output);
  }
  if (name === "--version" || name === "-V" || name === "version") {
    return version(output);
  }
  const command = await loadCommand(name);
  if (command === undefined) return unknownCommand(name, output);

  let apiUrl = settings.apiUrl;
  try {
    const call = parseArguments(command, rest);
    if (call.options["help"] === true) {
      output.line(commandHelp(command, output.columns));
      return EXIT.done;
    }
    apiUrl = apiUrlOf(call, settings);
    return await command.run(contextOf(apiUrl, settings, output, streams.stdin), call);
  } catch (error) {
    return fail(error, command, apiUrl, output);
  }
}

/** `millrace --api <url> ls` as `millrace ls --api <url>`. */
function commandFirst(args: readonly string[]): readonly string[] {
  let count = 0;
  for (let arg = args[0]; arg !== undefined; arg = args[count]) {
    if (arg === "--json" || arg.startsWith("--api=")) count += 1;
    else if (arg === "--api") count += 2;
    else break;
  }
  return count < args.length ? [...args.slice(count), ...args.slice(0, count)] : args;
}

async function help(rest: readonly string[], isBare: boolean, output: Output): Promise<ExitCode> {
  const topic = rest.find((each) => !each.startsWith("-"));
  const command = topic === undefined ? undefined : await loadCommand(topic);
  if (topic !== undefined && command === undefined) return unknownCommand(topic, output);
  const text =
    command === undefined
      ? generalHelp(await loadCommands())
      : commandHelp(command, output.columns);
  // Without a command nothing was done that was asked for.
  if (isBare) output.note(text);
  else output.line(text);
  return isBare ? EXIT.usage : EXIT.done;
}

function version(output: Output): ExitCode {
  const file = new URL("../package.json", import.meta.url);
  const { version: number } = JSON.parse(readFileSync(file, "utf8")) as { version: string };
  if (output.isJson) output.json({ version: number });
  else output.line(number);
  return EXIT.done;
}

function unknownCommand(name: string, output: Output): ExitCode {
  const hint = didYouMean(name, commandNames);
  if (output.isJson) {
    const message = `there is no command ${JSON.stringify(name)}${hint}`;
    output.note(JSON.stringify({ error: { code: "USAGE", message } }));
    return EXIT.usage;
  }
  output.note(`millrace: there is no command ${JSON.stringify(name)}${hint}`);
  output.note(
    hint === "" ? `Commands: ${commandNames.join(", ")}` : "All commands: millrace --help",
  );
  return EXIT.usage;
}

function apiUrlOf({ options }: Call, settings: Settings): string {
  const { api } = options as { readonly api?: string };
  const url = api ?? settings.apiUrl;
  if (URL.canParse(url) && /^https?:$/.test(new URL(url).protocol)) return url;
  const source = api === undefined ? "MILLRACE_API" : "--api";
  throw new UsageError(
    `${source} must be a URL such as ${DEFAULT_API_URL}, not ${JSON.stringify(url)}`,
  );
}

function contextOf(apiUrl: string, settings: Settings, output: Output, stdin: Readable): Context {
  const client = new MillraceClient({ baseUrl: apiUrl, fetch: fetchJson });
  return { output, settings, apiUrl, client, readInput: () => textOf(stdin) };
}

/** A web server that is no API of Millrace answers with pages. */
const fetchJson: typeof fetch = async (input, init) => {
  const response = await fetch(input, init);
  const type = response.headers.get("content-type") ?? "no content type";
  if (response.ok && !/\bjson\b/.test(type)) {
    await response.body?.cancel();
    throw new Error(`it answers, but with ${type} instead of JSON`);
  }
  return response;
};

function fail(error: unknown, command: Command, apiUrl: string, output: Output): ExitCode {
  const { exitCode, code, message, details, advice } = reportOf(error, apiUrl);
  if (output.isJson) {
    output.note(JSON.stringify({ error: { code, message, ...(details && { errors: details }) } }));
    return exitCode;
  }
  output.note(`millrace ${command.name}: ${message}`);
  for (const { path, message: what } of details ?? []) output.note(`  ${path || "/"}: ${what}`);
  if (exitCode === EXIT.usage) {
    output.note(`Usage: ${usageOf(command)}`);
    output.note(`More: millrace ${command.name} --help`);
  } else if (advice !== undefined) {
    output.note(advice);
  }
  return exitCode;
}
