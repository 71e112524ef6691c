import type pg from "pg";

/**
 * A further run of a statement that its connection has prepared, in the form in which the driver takes queries that
 * are not its own.
 *
 * The driver writes each parameter and each length by itself, and has Postgres describe the columns of every answer
 * anew: some 150 calls for the commit of one step, which V8 does not optimize before it has seen thousands of steps.
 * Here the whole request is one text, a character a byte, and the columns are those that the first run had. Postgres
 * refuses a run whose columns would be others by now (0A000).
 */
export class PreparedQuery implements pg.Submittable {
  readonly rows: object[] = [];
  /** The driver puts one of its own around it, which also stops the clock. */
  callback: Settle;
  private readonly request: string;
  private readonly columns: Columns;
  private unreadable: unknown;

  /** @param request Of `requestOf`. */
  constructor(request: string, columns: Columns, settle: Settle) {
    this.request = request;
    this.columns = columns;
    this.callback = settle;
  }

  submit({ stream }: pg.Connection): void {
    // One that is not writable any more tells why by itself.
    if (stream.writable) stream.write(this.request, "latin1");
  }

  handleDataRow({ fields }: { readonly fields: readonly (string | null)[] }): void {
    const { names, parsers, empty } = this.columns;
    const row: Record<string, unknown> = { ...empty };
    try {
      for (let index = 0; index < fields.length; index++) {
        const field = fields[index] as string | null;
        if (field !== null) row[names[index] as string] = parsers[index]?.(field);
      }
    } catch (error) {
      this.unreadable ??= error;
    }
    this.rows.push(row);
  }

  handleCommandComplete(): void {}

  handleReadyForQuery(): void {
    if (this.unreadable === undefined) this.callback(undefined, this);
    else this.callback(this.unreadable);
  }

  handleError(error: unknown): void {
    this.callback(error);
  }
}

/** Without an error the answer is in the query. */
type Settle = (error: unknown, query?: PreparedQuery) => void;

/** The columns of a statement's answer. */
export interface Columns {
  readonly names: readonly string[];
  readonly parsers: readonly ((text: string) => unknown)[];
  /** A row of nulls. */
  readonly empty: Readonly<Record<string, null>>;
}

export function columnsOf(
  fields: readonly pg.FieldDef[],
  parserOf: (typeId: number) => (text: string) => unknown,
): Columns {
  return {
    names: fields.map(({ name }) => name),
    parsers: fields.map(({ dataTypeID }) => parserOf(dataTypeID)),
    empty: Object.fromEntries(fields.map(({ name }) => [name, null])),
  };
}

/**
 * Bind, Execute and Sync (PostgreSQL's manual, "Message Formats") as text, a character a byte: all parameters and
 * all columns as text, of the portal without a name.
 *
 * @param name Of the prepared statement; ASCII.
 * @returns Undefined where a value is none that is written as it reads: an object, say, is left to the driver.
 */
export function requestOf(name: string, values: readonly unknown[]): string | undefined {
  const isAscii = !beyondAscii.test(values.join(""));
  let parameters = "";
  for (let index = 0; index < values.length; index++) {
    const value = values[index];
    if (value === null || value === undefined) {
      parameters += absent;
      continue;
    }
    const text = textOf(value);
    if (text === undefined) return undefined;
    const bytes = isAscii ? text : Buffer.from(text).toString("latin1");
    parameters += int32(bytes.length) + bytes;
  }
  const bind = `\0${name}\0${allText}${int16(values.length)}${parameters}${allText}`;
  return `B${int32(bind.length + 4)}${bind}${executeAndSync}`;
}

function textOf(value: unknown): string | undefined {
  switch (typeof value) {
    case "string":
      return value;
    case "number":
    case "bigint":
    case "boolean":
      return String(value);
    default:
      return undefined;
  }
}

/** Most lengths are short. */
const shortInts = Array.from({ length: 256 }, (_, n) => `\0\0\0${String.fromCharCode(n)}`);

const beyondAscii = /[^\0-\x7f]/;

/** The length of a parameter that is null: -1. */
const absent = "\xff\xff\xff\xff";
/** No format codes. */
const allText = "\0\0";
const executeAndSync = `E${int32(9)}\0${int32(0)}S${int32(4)}`;

function int32(n: number): string {
  return shortInts[n] ?? int16(n >>> 16) + int16(n & 0xffff);
}

function int16(n: number): string {
  return String.fromCharCode(n >>> 8, n & 0xff);
}
