import { prepared } from "../statement.ts";
import { rowSource, type Column, type RowSource, type Value } from "../unnest.ts";
import type { Draft } from "./draft.ts";

/** What the statements that write commits are made of: sections, and arrays for their rows. */

export interface Statement {
  readonly text: string;
  readonly values: readonly string[];
  /** To be called once the statement has been committed. */
  readonly remember?: () => void;
}

/** As it stands in `from`, under an alias. */
export type From = (alias: string, names?: readonly string[]) => string;

/** Parameters and sections of one statement; sections come in a fixed order, so that a mask names them. */
export interface Parameters {
  add<Row>(source: RowSource<Row>, rows: readonly Row[]): From;
  /** The same, for rows that commits may or may not have: undefined where none has any. */
  addRows<Row>(
    source: RowSource<Owned<Row>>,
    drafts: readonly Draft[],
    rowsOf: (draft: Draft) => readonly Row[],
  ): From | undefined;
  statement(name: string, text: string, remember?: () => void): Statement;
}

/** A row, and the commit that it belongs to. */
export interface Owned<Row> {
  readonly ix: number;
  readonly draft: Draft;
  readonly row: Row;
}

export function openParameters(): Parameters {
  const values: string[] = [];
  let mask = 0;
  let sections = 0;

  function add<Row>(source: RowSource<Row>, rows: readonly Row[]): From {
    const first = values.length + 1;
    values.push(...source.values(rows));
    return (alias, names) => source.from(alias, first, names);
  }

  return {
    add,
    addRows(source, drafts, rowsOf) {
      const bit = 2 ** sections++;
      const rows = drafts.flatMap((draft, ix) => rowsOf(draft).map((row) => ({ ix, draft, row })));
      if (rows.length === 0) return undefined;
      mask += bit;
      return add(source, rows);
    },
    statement: (name, text, remember) => ({
      text: prepared(`${name}_${mask.toString(36)}`, text),
      values,
      ...(remember !== undefined && { remember }),
    }),
  };
}

/** One row a commit. */
export function own(drafts: readonly Draft[]): readonly Owned<undefined>[] {
  return drafts.map((draft, ix) => ({ ix, draft, row: undefined }));
}

export type Columns<Row> = Readonly<
  Record<string, { type: Column<Row>["type"]; of: (row: Row) => Value }>
>;

/** A source of rows that belong to commits, and carry their index. */
export function ownedSource<Row>(columns: Columns<Row>): RowSource<Owned<Row>> {
  return rowSource<Owned<Row>>({
    ix: { type: "integer", of: ({ ix }) => ix },
    ...Object.fromEntries(
      Object.entries(columns).map(([name, { type, of }]) => [
        name,
        { type, of: ({ row }: Owned<Row>) => of(row) },
      ]),
    ),
  });
}

/**
 * The key of the instance that a row belongs to, out of the commits' own parameters, which every
 * statement has first. Arrays of their own for each kind of row cost 5 µs of server CPU a commit.
 */
export const tenantOf = "($2::text[])[x.ix + 1]";
export const instanceOf = "($3::uuid[])[x.ix + 1]";
export const atOf = "($7::timestamptz[])[x.ix + 1]";

export const isWritten = "x.ix = any ((select ixs from go)::integer[])";

/** Whether a row is the one that `x` names. */
export function samePlace(alias: string): string {
  return `${alias}.tenant_id = ${tenantOf} and ${alias}.instance_id = ${instanceOf}
      and ${alias}.path = x.path and ${alias}.iteration = x.iteration`;
}

/** Names an execution of the commit's instance. */
export interface Place {
  readonly path: string;
  readonly iteration: number;
}

export const placeColumns: Columns<Place> = {
  path: { type: "text", of: ({ path }) => path },
  iteration: { type: "integer", of: ({ iteration }) => iteration },
};
