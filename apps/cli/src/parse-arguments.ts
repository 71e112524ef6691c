import { parseArgs } from "node:util";
import type { Call, Command, OptionSpec, OptionSpecs } from "./command.ts";
import { UsageError } from "./errors.ts";
import { didYouMean } from "./near.ts";

/** Options that every command has. */
const COMMON_OPTIONS = {
  help: { type: "boolean", short: "h", description: "show this help" },
  json: { type: "boolean", description: "print JSON, for programs" },
} as const satisfies OptionSpecs;

const API_OPTION = {
  api: {
    type: "string",
    value: "url",
    description: "where the API is (default: MILLRACE_API, or http://127.0.0.1:8080)",
  },
} as const satisfies OptionSpecs;

export function optionsOf(command: Command): OptionSpecs {
  return { ...command.options, ...(command.isClient ? API_OPTION : {}), ...COMMON_OPTIONS };
}

/**
 * Reads what follows the command's name.
 *
 * The checks are made on the tokens rather than by the strict mode of `parseArgs`, whose messages
 * speak of escaping positionals and know no near names.
 *
 * @throws {UsageError}
 */
export function parseArguments(command: Command, args: readonly string[]): Call {
  const specs = optionsOf(command);
  const { tokens } = parseArgs({
    args: [...args],
    options: Object.fromEntries(Object.entries(specs).map(toParseArgs)),
    strict: false,
    allowPositionals: true,
    tokens: true,
  });

  const given = new Map<string, string[]>();
  const positionals: string[] = [];
  for (const token of tokens) {
    if (token.kind === "positional") positionals.push(token.value);
    if (token.kind !== "option") continue;
    const spec = Object.hasOwn(specs, token.name) ? specs[token.name] : undefined;
    if (spec === undefined) throw unknownOption(token.rawName, specs);
    const value = valueOf(token.rawName, spec, token.value, token.inlineValue === true, specs);
    const former = given.get(token.name) ?? [];
    if (former.length > 0 && spec.type === "string" && !spec.isRepeatable) {
      throw new UsageError(`${token.rawName} is given twice`);
    }
    given.set(token.name, [...former, value]);
  }

  const options = Object.fromEntries(
    Object.entries(specs).map(([name, spec]) => [name, valueFor(spec, given.get(name))]),
  );
  if (options["help"] !== true) checkPositionals(command, positionals);
  return { options, positionals };
}

function toParseArgs([name, { type, short, isRepeatable = false }]: [string, OptionSpec]) {
  return [name, { type, multiple: isRepeatable, ...(short === undefined ? {} : { short }) }];
}

function valueOf(
  name: string,
  { type, value: placeholder = "value" }: OptionSpec,
  value: string | undefined,
  isInline: boolean,
  specs: OptionSpecs,
): string {
  if (type === "boolean") {
    if (value !== undefined) throw new UsageError(`${name} takes no value`);
    return "true";
  }
  // `--input --wait` means that the value was forgotten; `--input=--wait` that it was not.
  const isOption = !isInline && value !== undefined && isKnownOption(value, specs);
  if (value === undefined || isOption) throw new UsageError(`${name} needs a <${placeholder}>`);
  return value;
}

function isKnownOption(text: string, specs: OptionSpecs): boolean {
  const name = text.replace(/=.*/s, "");
  return Object.entries(specs).some(
    ([long, { short }]) => name === `--${long}` || (short !== undefined && name === `-${short}`),
  );
}

function valueFor(spec: OptionSpec, given: readonly string[] | undefined) {
  if (spec.type === "boolean") return given !== undefined;
  return spec.isRepeatable ? (given ?? []) : given?.[0];
}

function unknownOption(name: string, specs: OptionSpecs): UsageError {
  const known = Object.keys(specs).map((each) => `--${each}`);
  return new UsageError(`there is no option ${name}${didYouMean(name, known)}`);
}

function checkPositionals(command: Command, given: readonly string[]): void {
  const specs = command.arguments ?? [];
  const missing = specs.filter(
    ({ isOptional }, index) => !isOptional && given[index] === undefined,
  );
  if (missing.length > 0) {
    const names = missing.map(({ name, isRest }) => `<${name}${isRest ? "…" : ""}>`);
    throw new UsageError(`${names.join(" and ")} ${names.length > 1 ? "are" : "is"} missing`);
  }
  if (specs.at(-1)?.isRest || given.length <= specs.length) return;
  const extra = given.slice(specs.length).map((each) => JSON.stringify(each));
  throw new UsageError(`one argument too many: ${extra.join(", ")}`);
}
