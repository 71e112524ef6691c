import type { MillraceClient } from "@millrace/client";
import type { Settings } from "./config.ts";
import type { Output } from "./output.ts";

export interface OptionSpec {
  readonly type: "string" | "boolean";
  readonly short?: string;
  /** May be given several times. */
  readonly isRepeatable?: boolean;
  /** What help shows for the value, as `json`. */
  readonly value?: string;
  /** For help; with the default, where there is one. */
  readonly description: string;
}

export type OptionSpecs = Readonly<Record<string, OptionSpec>>;

export interface ArgumentSpec {
  readonly name: string;
  readonly description: string;
  readonly isOptional?: boolean;
  /** Takes all that is left. */
  readonly isRest?: boolean;
}

type ValueOf<Spec extends OptionSpec> = Spec["type"] extends "boolean"
  ? boolean
  : Spec extends { readonly isRepeatable: true }
    ? readonly string[]
    : string | undefined;

/** Of specs that are not known by name, any value of any option. */
type ValuesOf<Specs extends OptionSpecs> = string extends keyof Specs
  ? Readonly<Record<string, boolean | string | readonly string[] | undefined>>
  : { readonly [Name in keyof Specs]: ValueOf<Specs[Name]> };

/** What a command is given to work with. */
export interface Context {
  readonly output: Output;
  readonly settings: Settings;
  /** Where the API is, from `--api` or the environment. */
  readonly apiUrl: string;
  readonly client: MillraceClient;
  /** The whole of the standard input, for values given as `-`. */
  readInput(): Promise<string>;
}

export interface Call<Specs extends OptionSpecs = OptionSpecs> {
  readonly options: ValuesOf<Specs>;
  readonly positionals: readonly string[];
}

export interface Command<Specs extends OptionSpecs = OptionSpecs> {
  readonly name: string;
  /** One line, for the list of commands. */
  readonly summary: string;
  readonly arguments?: readonly ArgumentSpec[];
  /** Its own; `--api`, `--json` and `--help` are everybody's. */
  readonly options: Specs;
  /** Whether it talks to an API, and so knows `--api`. */
  readonly isClient: boolean;
  /** Paragraphs of `--help` after the options. */
  readonly details?: readonly string[];
  readonly examples: readonly string[];
  /** Its exit code; `undefined` when it goes on in this process, as a server does. */
  run(context: Context, call: Call<Specs>): Promise<number | undefined>;
}

/** Gives `run` the types of the options above it. */
export function defineCommand<const Specs extends OptionSpecs>(command: Command<Specs>): Command {
  // Its options are parsed by its own specs, so that `run` gets what it declares.
  return command;
}
