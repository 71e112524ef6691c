/**
 * Rows as arrays, one a column: `unnest($1::text[], $2::integer[])`. A statement over many rows then
 * has the same text however many there are, so that it is prepared once.
 *
 * Measured beside `json_to_recordset($1)` on Postgres 15, 3-step chains, two connections, CPU of server
 * and client together per commit: in batches of 100, 101 µs for arrays against 115 µs; of 20, 150 µs
 * against 190 µs. JSON is cheaper to write in Node (17 µs against 30 µs) and dearer to read in Postgres.
 */

export type Value = string | number | boolean | Date | null | undefined;

/** `json` takes JSON text. */
export type ColumnType =
  | "text"
  | "uuid"
  | "integer"
  | "bigint"
  | "boolean"
  | "timestamptz"
  | "json"
  | "jsonb";

export interface Column<Row> {
  readonly type: ColumnType;
  readonly of: (row: Row) => Value;
}

/** At least one column of a source has no nulls. */
export interface RowSource<Row> {
  /**
   * As it stands in `from`, its parameters numbered from `first`: all columns, or those that are
   * named, so that one set of parameters serves several parts of a statement.
   */
  from(alias: string, first: number, names?: readonly string[]): string;
  /** One parameter a column, in their order. */
  values(rows: readonly Row[]): string[];
  /**
   * The same for one row alone, without arrays: Postgres then plans and reads a statement of one row as
   * if it had been written for it (a commit alone: 470 → 280 µs).
   */
  fromOne(alias: string, first: number, names?: readonly string[]): string;
  valuesOfOne(row: Row): (string | null)[];
}

/** @param columns By name, in the order of the parameters. */
export function rowSource<Row>(columns: Readonly<Record<string, Column<Row>>>): RowSource<Row> {
  const entries = Object.entries(columns);
  const readers = entries.map(([, { of }]) => of);
  const numbered = entries.map(([name, { type }], index) => ({ name, type, index }));
  const chosenOf = (names?: readonly string[]) =>
    names ? numbered.filter(({ name }) => names.includes(name)) : numbered;
  return {
    from(alias, first, names) {
      const chosen = chosenOf(names);
      const arrays = chosen.map(({ type, index }) => `$${first + index}::${type}[]`);
      const list = chosen.map(({ name }) => name);
      return `unnest(${arrays.join(", ")}) as ${alias} (${list.join(", ")})`;
    },
    values: (rows) => entries.map(([, column]) => arrayLiteral(rows, column)),
    fromOne(alias, first, names) {
      const values = chosenOf(names).map(
        ({ name, type, index }) => `$${first + index}::${type} as ${name}`,
      );
      return `(select ${values.join(", ")}) as ${alias}`;
    },
    valuesOfOne: (row) => readers.map((of) => textOf(of(row))),
  };
}

function textOf(value: Value): string | null {
  if (value === null || value === undefined) return null;
  return value instanceof Date ? value.toISOString() : String(value);
}

/**
 * The array as Postgres reads it from text. The driver's own way costs twice as much. Nulls at the end
 * are left off: `unnest` puts them back, and most columns of most statements hold nothing else.
 */
function arrayLiteral<Row>(rows: readonly Row[], { type, of }: Column<Row>): string {
  const write = writers[type];
  let literal = "{";
  let nulls = 0;
  for (const row of rows) {
    const value = of(row);
    if (value === null || value === undefined) {
      nulls += 1;
      continue;
    }
    for (; nulls > 0; nulls--) literal += literal.length > 1 ? ",null" : "null";
    if (literal.length > 1) literal += ",";
    literal += value instanceof Date ? value.toISOString() : write(String(value));
  }
  return `${literal}}`;
}

const plain = (text: string) => text;

const writers: Readonly<Record<ColumnType, (text: string) => string>> = {
  text: quoted,
  // JSON text has no control characters, so that JSON's escapes are the two that Postgres knows; and
  // what is native takes a quarter of the time (1.3 µs against 5 µs for 100 characters).
  json: JSON.stringify,
  jsonb: JSON.stringify,
  uuid: plain,
  integer: plain,
  bigint: plain,
  boolean: plain,
  timestamptz: plain,
};

/** Most texts have nothing to escape, and two searches are cheaper than a replacement. */
function quoted(text: string): string {
  if (!text.includes('"') && !text.includes("\\")) return `"${text}"`;
  return `"${text.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;
}

/** One array parameter. */
export function textArray(values: readonly string[]): string {
  return `{${values.map(quoted).join(",")}}`;
}
