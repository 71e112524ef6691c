import { childrenOf } from "./child-links.ts";
import type { Key } from "./commit.ts";
import { decodeCursor, encodeCursor, readPage } from "./cursor.ts";
import { parseJson } from "./json.ts";
import type { Json } from "./json.ts";
import { pageCharacters, readAtOnce } from "./page-size.ts";
import { prepared, run, type Db } from "./statement.ts";
import { childPlaceOf, stepColumns, stepReadOf } from "./step-read.ts";
import type { StepRead, StepRow } from "./step-read.ts";
import { textArray } from "./unnest.ts";

/** Every execution of an instance's steps, page by page: those of ten thousand items too. */

export interface StepQuery {
  /** A step, branch or item: itself and all that is inside it. Undefined: everything. */
  readonly path?: string | undefined;
  /** Empty: any. */
  readonly status: readonly string[];
  readonly limit: number;
  readonly cursor?: string | undefined;
}

export interface ListedStep extends StepRead {
  /** Undefined: the instance's input. */
  readonly input: Json | undefined;
}

export interface StepList {
  /** By path, byte by byte, and then by iteration. */
  readonly items: readonly ListedStep[];
  readonly nextCursor: string | null;
}

/** A page ends early behind `pageCharacters`. @throws BadCursorError */
export async function listSteps(
  db: Db,
  { tenantId, instanceId }: Key,
  { path = "", status, limit, cursor }: StepQuery,
): Promise<StepList> {
  // What is inside a path goes on with a dot or a bracket, and both come before a backslash.
  const end = path === "" ? "\u007f" : `${path}\\`;
  const common = [tenantId, instanceId, path, textArray(status)];
  let after = cursor === undefined ? [path, "0"] : decodeCursor("steps", cursor, 2);
  const shown: (StepRow & Input)[] = [];
  let characters = 0;
  let isMore = true;
  while (isMore && shown.length < limit && characters < pageCharacters) {
    const wanted = Math.min(readAtOnce, limit - shown.length);
    const values = [...common, ...after, end, wanted + 1];
    const rows = await readPage(cursor, () => run<StepRow & Input>(db, page, values));
    isMore = rows.length > wanted;
    for (const row of rows.slice(0, wanted)) {
      shown.push(row);
      characters += lengthOf(row);
      after = [row.path, String(row.iteration)];
    }
  }
  const children = await childrenOf(db, shown.flatMap(childPlaceOf));
  const items = shown.map((row) => ({
    ...stepReadOf(row, children),
    input: parseJson(row.input),
  }));
  return { items, nextCursor: isMore ? encodeCursor("steps", after) : null };
}

interface Input {
  readonly input: string | null;
}

/** One range of the primary key; others whose names begin alike are left out of it. */
const page = prepared(
  "list_steps",
  `select ${stepColumns}, s.input::text as input
  from step_executions s
  where s.tenant_id = $1 and s.instance_id = $2
    and (s.path, s.iteration) > ($5::text collate "C", $6::integer)
    and s.path < $7::text collate "C"
    and ($3::text = '' or s.path = $3::text
      or left(s.path, length($3::text) + 1) in ($3::text || '.', $3::text || '['))
    and (cardinality($4::text[]) = 0 or s.status = any ($4::text[]))
  order by s.path, s.iteration
  limit $8`,
);

function lengthOf({ input, output, progress, error }: StepRow & Input): number {
  return [input, output, progress, error].reduce((sum, text) => sum + (text?.length ?? 0), 0);
}
