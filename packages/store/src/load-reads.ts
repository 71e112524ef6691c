import { anywhereKey, executionKey, mergeReads, noReads } from "@millrace/engine";
import type {
  ExecutionRead,
  ReadRequest,
  Reads,
  StepStatus,
  WorkflowError,
} from "@millrace/engine";
import type { Key } from "./commit.ts";
import { parseJson } from "./json.ts";
import type { Json } from "./json.ts";
import { prepared, run } from "./statement.ts";
import type { Db } from "./statement.ts";
import { rowSource } from "./unnest.ts";

/** The step rows that decisions ask for. */

/** Outputs that come along unasked are left out above this many bytes. */
const largeOutput = 65_536;

/** The rows that a decision asks for, in one round trip a kind. */
export async function loadReads(
  db: Db,
  key: Key,
  requests: readonly ReadRequest[],
): Promise<Reads> {
  if (requests.some(({ kind }) => kind === "all")) return loadAllReads(db, key, requests);
  const paths = requests.filter((request) => request.kind === "latest");
  const places = requests.filter((request) => request.kind === "execution");
  const inputPlaces = requests.filter((request) => request.kind === "input");
  const maps = requests.filter((request) => request.kind === "items");
  const loose = requests.filter((request) => request.kind === "anywhere");
  const [latest, executions, inputs, items, anywhere] = await Promise.all([
    paths.length === 0 ? [] : rowsOf(db, latestReads, key, pathSource.values(paths)),
    places.length === 0 ? [] : rowsOf(db, executionReads, key, placeSource.values(places)),
    inputPlaces.length === 0 ? [] : loadInputs(db, key, inputPlaces),
    Promise.all(maps.map((request) => loadItems(db, key, request))),
    Promise.all(loose.map((request) => loadAnywhere(db, key, request))),
  ]);
  return {
    ...noReads,
    latest: new Map<string, ExecutionRead | null>([
      ...paths.map(({ path }) => [path, null] as const),
      ...latest.map((read) => [read.path, read] as const),
    ]),
    executions: new Map<string, ExecutionRead | null>([
      ...places.map(({ path, iteration }) => [executionKey(path, iteration), null] as const),
      ...latest.map((read) => [executionKey(read.path, read.iteration), read] as const),
      ...executions.map((read) => [executionKey(read.path, read.iteration), read] as const),
    ]),
    items: new Map(items),
    inputs: new Map(inputs),
    anywhere: new Map(anywhere),
  };
}

/** Every row, and of what was asked for with them the outputs in full and the items. */
async function loadAllReads(db: Db, key: Key, requests: readonly ReadRequest[]): Promise<Reads> {
  const further = requests.filter(({ kind }) => kind === "execution" || kind === "input");
  const all = await rowsOf(db, everyRead, key, []);
  const every: Reads = {
    ...noReads,
    // Iterations of a path come in their order, so that the last one stays.
    latest: new Map(all.map((read) => [read.path, read])),
    executions: new Map(all.map((read) => [executionKey(read.path, read.iteration), read])),
    all: true,
  };
  return further.length === 0 ? every : mergeReads(every, await loadReads(db, key, further));
}

type RequestOf<K extends ReadRequest["kind"]> = Extract<ReadRequest, { kind: K }>;

async function loadInputs(
  db: Db,
  { tenantId, instanceId }: Key,
  places: readonly RequestOf<"input">[],
): Promise<readonly (readonly [string, Json])[]> {
  const values = [tenantId, instanceId, ...placeSource.values(places)];
  const rows = await run<Pick<StepReadRow, "path" | "iteration"> & { input: string | null }>(
    db,
    inputReads,
    values,
  );
  return rows.map(({ path, iteration, input }) => [
    executionKey(path, iteration),
    parseJson(input) ?? null,
  ]);
}

async function loadItems(
  db: Db,
  key: Key,
  { path, iteration, after, stepIds }: RequestOf<"items">,
): Promise<readonly [string, readonly ExecutionRead[]]> {
  const rows = await rowsOf(db, itemReads, key, [path, String(after), `{${stepIds.join(",")}}`]);
  return [executionKey(path, iteration), rows];
}

async function loadAnywhere(
  db: Db,
  key: Key,
  { path, stepId }: RequestOf<"anywhere">,
): Promise<readonly [string, ExecutionRead | null]> {
  const [row] = await rowsOf(db, anywhereReads, key, [path, stepId]);
  return [anywhereKey(path, stepId), row ?? null];
}

interface StepReadRow {
  readonly step_id: string;
  readonly path: string;
  readonly iteration: number;
  readonly status: string;
  readonly attempt: number;
  readonly fence: number;
  readonly output: string | null;
  readonly left_out: boolean;
  readonly error: string | null;
  readonly completion: number | null;
  readonly entry: number | null;
  readonly queue: string | null;
}

async function rowsOf(
  db: Db,
  text: string,
  { tenantId, instanceId }: Key,
  values: readonly string[],
): Promise<readonly ExecutionRead[]> {
  const rows = await run<StepReadRow>(db, text, [tenantId, instanceId, ...values]);
  return rows.map((row) => ({
    stepId: row.step_id,
    path: row.path,
    iteration: row.iteration,
    status: row.status as StepStatus,
    attempt: row.attempt,
    fence: row.fence,
    output: parseJson(row.output),
    outputLeftOut: row.left_out,
    error: (parseJson(row.error) ?? null) as WorkflowError | null,
    completion: row.completion,
    entry: row.entry,
    queue: row.queue,
  }));
}

const readColumns =
  "s.step_id, s.path, s.iteration, s.status, s.attempt, s.fence, s.error, s.completion, s.entry, s.queue";

const asked = `${readColumns}, s.output, false as left_out`;

const pathSource = rowSource<{ readonly path: string }>({
  path: { type: "text", of: ({ path }) => path },
});

/** One descent of the primary key a path, from its highest iteration. */
const latestReads = prepared(
  "reads_latest",
  `select ${asked} from ${pathSource.from("x", 3)}
  cross join lateral (
    select * from step_executions s
    where s.tenant_id = $1 and s.instance_id = $2 and s.path = x.path
    order by s.iteration desc limit 1) s`,
);

const placeSource = rowSource<{ readonly path: string; readonly iteration: number }>({
  path: { type: "text", of: ({ path }) => path },
  iteration: { type: "integer", of: ({ iteration }) => iteration },
});

/** `offset 0`: one descent of the primary key a place, and not all steps of the instance. */
const executionReads = prepared(
  "reads_execution",
  `select ${asked} from ${placeSource.from("x", 3)}
  cross join lateral (
    select * from step_executions s
    where s.tenant_id = $1 and s.instance_id = $2
      and s.path = x.path and s.iteration = x.iteration
    offset 0) s`,
);

const inputReads = prepared(
  "reads_input",
  `select s.path, s.iteration, s.input from ${placeSource.from("x", 3)}
  join step_executions s on s.tenant_id = $1 and s.instance_id = $2
    and s.path = x.path and s.iteration = x.iteration`,
);

/** Paths below a MAP: those that begin with its own and a bracket. The column sorts by bytes. */
const belowMap = `s.tenant_id = $1 and s.instance_id = $2
    and s.path > $3::text || '[' and s.path < $3::text || '\\'`;

const itemOfPath =
  "substr(s.path, 1, length($3::text) + strpos(substr(s.path, length($3::text) + 1), ']'))";

const itemReads = prepared(
  "reads_items",
  `select ${asked} from (
    select distinct on (${itemOfPath}) s.* from step_executions s
    where ${belowMap} and s.completion > $4::integer and s.step_id = any ($5::text[])
    order by ${itemOfPath}, s.completion desc) s`,
);

/** In the order of the engine's `latestOf`. */
const anywhereReads = prepared(
  "reads_anywhere",
  `select ${asked} from step_executions s
  where ${belowMap} and s.step_id = $4::text
  order by s.entry desc nulls last, s.completion desc nulls last, s.iteration desc, s.path desc
  limit 1`,
);

const everyRead = prepared(
  "reads_all",
  `select ${readColumns},
    case when octet_length(s.output::text) <= ${largeOutput} then s.output end as output,
    coalesce(octet_length(s.output::text) > ${largeOutput}, false) as left_out
  from step_executions s
  where s.tenant_id = $1 and s.instance_id = $2
  order by s.path, s.iteration`,
);
