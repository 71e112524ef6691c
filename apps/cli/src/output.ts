import type { Writable } from "node:stream";

/** Where a command's words go: results to the standard output, everything about them to the other. */
export interface Output {
  /** Whether results are JSON; a command then prints exactly one value. */
  readonly isJson: boolean;
  /** Whether somebody watches, so that lines may be drawn again. */
  readonly isTerminal: boolean;
  readonly columns: number;
  readonly rows: number;
  /** A line of the result. */
  line(text?: string): void;
  /** The result as JSON, when that is wanted; else nothing. */
  json(value: unknown): void;
  /** A remark that is no part of the result. */
  note(text: string): void;
  /** Unchanged where colours are not wanted. */
  paint(style: Style, text: string): string;
  /** Writes as it is, for what is drawn again. */
  draw(text: string): void;
}

export type Style = "bold" | "dim" | "red" | "green" | "yellow" | "blue" | "cyan";

export interface OutputOptions {
  readonly stdout: Writable & {
    readonly isTTY?: boolean;
    readonly columns?: number;
    readonly rows?: number;
  };
  readonly stderr: Writable;
  readonly isJson: boolean;
  readonly isColoured: boolean | undefined;
}

export function openOutput({ stdout, stderr, isJson, isColoured }: OutputOptions): Output {
  const isTerminal = stdout.isTTY === true && !isJson;
  const isPainted = isColoured ?? isTerminal;
  return {
    isJson,
    isTerminal,
    get columns() {
      return stdout.columns ?? 100;
    },
    get rows() {
      return stdout.rows ?? 24;
    },
    line: (text = "") => void stdout.write(`${text}\n`),
    json: (value) => {
      if (isJson) stdout.write(`${JSON.stringify(value, null, 2)}\n`);
    },
    note: (text) => void stderr.write(`${text}\n`),
    paint: (style, text) => (isPainted ? `\u001b[${CODES[style]}m${text}\u001b[0m` : text),
    draw: (text) => void stdout.write(text),
  };
}

const CODES: Readonly<Record<Style, number>> = {
  bold: 1,
  dim: 2,
  red: 31,
  green: 32,
  yellow: 33,
  blue: 34,
  cyan: 36,
};

const CONTROL = /[\p{Cc}\u202a-\u202e\u2066-\u2069]/gu;

/**
 * Text from outside in one line of a terminal: control characters, which could move the cursor or
 * worse, are shown as escapes.
 */
export function printable(text: string): string {
  return text.replaceAll(
    CONTROL,
    (found) => ESCAPES[found] ?? `\\u${found.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

const ESCAPES: Readonly<Record<string, string>> = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };

/** JSON in one line of at most `most` characters. */
export function jsonLine(value: unknown, most = 100): string {
  return shorten(printable(JSON.stringify(value) ?? ""), most);
}

export function shorten(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, Math.max(0, most - 1))}…`;
}
