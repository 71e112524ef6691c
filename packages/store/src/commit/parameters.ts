import { prepared } from "../statement.ts";
import { rowSource, type Column, type RowSource, type Value } from "../unnest.ts";
import type { Draft } from "./draft.ts";

/** What the statements that write commits are made of: sections, and arrays for their rows. */

export interface Statement {
  readonly text: string;
  readonly values: readonly (string | null)[];
  /** To be called once the statement has been committed. */
  readonly remember?: () => void;
}

/** Rows of commits: how they stand in `from`, under an alias. */
export interface From {
  (alias: string, names?: readonly string[]): string;
  /** SQL for the key of the instance that the row `x` belongs to, and for the time of its commit. */
  readonly tenantId: string;
  readonly instanceId: string;
  readonly at: string;
}

/**
 * Parameters and sections of one statement. Sections come in a fixed order, so that a mask of those that have rows
 * names the text.
 */
export interface Parameters {
  /** One row a commit. The first of them has the columns of `identityColumns` before all others. */
  add(source: RowSource<Owned<undefined>>): From;
  /** Rows that commits may or may not have: undefined where none has any. */
  addRows<Row>(
    source: RowSource<Owned<Row>>,
    rowsOf: (draft: Draft) => readonly Row[],
  ): From | undefined;
  /** @param write Asked for a text that this process does not have yet: it depends on the mask alone. */
  statement(name: string, write: () => string, remember?: () => void): Statement;
}

/** A row, and the commit that it belongs to. */
export interface Owned<Row> {
  readonly ix: number;
  readonly draft: Draft;
  readonly row: Row;
}

export function openParameters(drafts: readonly Draft[]): Parameters {
  const values: (string | null)[] = [];
  const isAlone = drafts.length === 1;
  /** A digit to the base of three for each section: none, several rows or commits, or one row of one commit. */
  let mask = isAlone ? 1 : 0;
  let digit = 1;

  function add<Row>(source: RowSource<Owned<Row>>, rows: readonly Owned<Row>[]): From {
    const first = values.length + 1;
    const [row] = rows;
    if (isAlone && rows.length === 1 && row !== undefined) {
      values.push(...source.valuesOfOne(row));
      const one = (alias: string, names?: readonly string[]) => source.fromOne(alias, first, names);
      return Object.assign(one, keysOfOne);
    }
    values.push(...source.values(rows));
    const many = (alias: string, names?: readonly string[]) => source.from(alias, first, names);
    return Object.assign(many, isAlone ? keysOfOneForMany : keysAmongMany);
  }

  return {
    add: (source) => add(source, own(drafts)),
    addRows(source, rowsOf) {
      digit *= 3;
      let rows: Owned<ReturnType<typeof rowsOf>[number]>[] | undefined;
      for (let ix = 0; ix < drafts.length; ix++) {
        const draft = drafts[ix] as Draft;
        for (const row of rowsOf(draft)) (rows ??= []).push({ ix, draft, row });
      }
      // Most commits have rows for a few sections only.
      if (rows === undefined) return undefined;
      mask += digit * (isAlone && rows.length === 1 ? 2 : 1);
      return add(source, rows);
    },
    statement: (name, write, remember) => ({
      text: textOf(`${name}_${mask.toString(36)}`, write),
      values,
      ...(remember !== undefined && { remember }),
    }),
  };
}

/**
 * Texts by the names of their statements: a few dozen of some 4,000 characters. To write one anew for each commit costs a commit
 * alone a tenth of its JavaScript.
 */
const texts = new Map<string, string>();

function textOf(name: string, write: () => string): string {
  const known = texts.get(name);
  if (known !== undefined) return known;
  const text = prepared(name, write());
  texts.set(name, text);
  return text;
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
const keysAmongMany = {
  tenantId: "($2::text[])[x.ix + 1]",
  instanceId: "($3::uuid[])[x.ix + 1]",
  at: "($7::timestamptz[])[x.ix + 1]",
};
const keysOfOne = { tenantId: "$2::text", instanceId: "$3::uuid", at: "$7::timestamptz" };
/**
 * For several rows of a commit alone: the key hangs on the row, so that each row is looked up by its whole
 * key. As plain parameters they find all rows of the instance for each row that is meant: a fan-out of
 * 1,000 items cost 35 ms a commit, and 650 instead of 90 µs of Postgres an item.
 */
const keysOfOneForMany = {
  tenantId: "case x.ix when 0 then $2::text end",
  instanceId: "case x.ix when 0 then $3::uuid end",
  at: "$7::timestamptz",
};

export const isWritten = "x.ix = any ((select ixs from go)::integer[])";

/** Whether a row is the one that `x` names. */
export function samePlace(alias: string, { tenantId, instanceId }: From): string {
  return `${alias}.tenant_id = ${tenantId} and ${alias}.instance_id = ${instanceId}
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
