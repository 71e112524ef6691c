/**
 * A question that is asked in parts, each of which goes on behind the last row of the one before: so that
 * rows which stay where they are keep nobody from those behind them.
 */

/** Where a row stands in the order of its question, times to the microsecond. */
export type RowPlace = readonly string[];

/** What has such a place. */
export interface Placed {
  readonly place: RowPlace;
}

export interface Parts {
  /** For `select`: the column `place`. */
  readonly place: string;
  /** For `where`: what stands behind the place that the parameters name. */
  readonly behind: string;
  /** For `order by`. */
  readonly order: string;
  /** @param after Undefined: from the start. */
  values(after: RowPlace | undefined): RowPlace;
}

/** Before whatever is stored. */
const leastOf = {
  timestamptz: "-infinity",
  text: "",
  uuid: "00000000-0000-0000-0000-000000000000",
  integer: "0",
} as const;

/**
 * @param columns By which it is ordered, the first of them by an index; together they tell the rows apart.
 * @param firstParameter From 1; the others follow.
 */
export function inParts(
  columns: Readonly<Record<string, keyof typeof leastOf>>,
  firstParameter: number,
): Parts {
  const names = Object.keys(columns);
  const types = Object.values(columns);
  const texts = names.map((name) => `${name}::text`);
  const parameters = types.map((type, index) => `$${firstParameter + index}::${type}`);
  const start = types.map((type) => leastOf[type]);
  return {
    place: `array[${texts.join(", ")}] as place`,
    behind: `(${names.join(", ")}) > (${parameters.join(", ")})`,
    order: names.join(", "),
    values: (after = start) => after,
  };
}
