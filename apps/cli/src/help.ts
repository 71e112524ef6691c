import type { ArgumentSpec, Command, OptionSpec } from "./command.ts";
import { optionsOf } from "./parse-arguments.ts";
import { table } from "./table.ts";

export function generalHelp(commands: readonly Command[]): string {
  const rows = commands.map(({ name, summary }) => [`  ${name}`, summary]);
  return [
    "millrace: durable workflows",
    "",
    "Usage: millrace <command> [arguments] [options]",
    "",
    ...section("Commands", columns(rows)),
    ...section(
      "Options of every command",
      columns([
        ["  -h, --help", "what a command does, its arguments and options"],
        ["  --json", "print JSON, for programs"],
        ["  --version", "print the version"],
      ]),
    ),
    ...section(
      "Environment",
      columns([
        ["  MILLRACE_API", "where the API is (default: http://127.0.0.1:8080)"],
        ["  DATABASE_URL", "Postgres 15 or later; `dev` starts its own when absent"],
        ["  REDIS_URL", "Redis 6.2 or later, or Valkey; `dev` starts its own when absent"],
        ["  NO_COLOR", "print without colours"],
      ]),
    ),
    ...section("Exit codes", [
      "  0 done   1 failed   2 wrong command line   3 the API cannot be reached",
    ]),
    "Begin with: millrace demo, or millrace dev",
  ].join("\n");
}

/** @param width Of the terminal. */
export function commandHelp(command: Command, width: number): string {
  const { name, summary, arguments: args = [], details = [], examples } = command;
  const options = Object.entries(optionsOf(command)).map(([long, spec]) => [
    `  ${optionText(long, spec)}`,
    spec.description + (spec.isRepeatable ? "; may be repeated" : ""),
  ]);
  return [
    `millrace ${name}: ${summary}`,
    "",
    `Usage: ${usageOf(command)}`,
    "",
    ...section(
      "Arguments",
      columns(args.map((each) => [`  ${argumentText(each)}`, each.description])),
    ),
    ...section("Options", columns(options)),
    ...details.flatMap((paragraph) => [...wrapped(paragraph, Math.min(width, 100)), ""]),
    "Examples:",
    ...examples.map((example) => `  ${example}`),
  ].join("\n");
}

/** The line that a usage error shows. */
export function usageOf({ name, arguments: args = [] }: Command): string {
  return ["millrace", name, ...args.map(argumentText), "[options]"].join(" ");
}

function argumentText({ name, isOptional, isRest }: ArgumentSpec): string {
  const text = isRest ? `${name}…` : name;
  return isOptional ? `[${text}]` : `<${text}>`;
}

function optionText(long: string, { type, short, value = "value" }: OptionSpec): string {
  const names = short === undefined ? `--${long}` : `-${short}, --${long}`;
  return type === "boolean" ? names : `${names} <${value}>`;
}

function section(title: string, lines: readonly string[]): readonly string[] {
  return lines.length === 0 ? [] : [`${title}:`, ...lines, ""];
}

function columns(rows: readonly (readonly string[])[]): readonly string[] {
  return rows.length === 0 ? [] : table(["", ""], rows).slice(1);
}

function wrapped(text: string, width: number): readonly string[] {
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const last = lines.at(-1);
    if (last === undefined || last.length + 1 + word.length > width) lines.push(word);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines;
}
