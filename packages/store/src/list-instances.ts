import type { InstanceStatus } from "@millrace/engine";
import { stepIdOf } from "@millrace/engine";
import { sql } from "kysely";
import type { ExpressionBuilder, SelectQueryBuilder } from "kysely";
import { decodeCursor, encodeCursor, readPage } from "./cursor.ts";
import { BadCursorError } from "./errors.ts";
import { readWithSize } from "./instances.ts";
import type { InstanceRead } from "./instances.ts";
import type { Key } from "./commit.ts";
import { pageCharacters, readAtOnce } from "./page-size.ts";
import { planned, run, type Db } from "./statement.ts";
import type { Database } from "./tables.ts";

/**
 * Lists of instances. Ids are UUIDv7 whose milliseconds equal `created_at`, so that the order of ids is
 * the order of creation: pages go by the primary key, and instances of one millisecond, or new ones
 * that arrive between two pages, shift nothing.
 *
 * `currentStep` and `waitingFor` are answered from the partial indexes on live step rows and open
 * waits. `variables` and the `updated` bounds have no index (one would be written with every step):
 * they filter what the other conditions leave.
 */

export interface InstanceFilter {
  readonly ids?: readonly string[] | undefined;
  readonly status?: readonly InstanceStatus[] | undefined;
  readonly workflowId?: string | undefined;
  readonly workflowVersion?: number | undefined;
  readonly correlationId?: string | undefined;
  /** Step id, or path, of a live execution. */
  readonly currentStep?: string | undefined;
  /** Event pattern of an open wait, or the id or path of the step that waits. */
  readonly waitingFor?: string | undefined;
  /** Bounds are not part of what they bound. */
  readonly createdAfter?: Date | undefined;
  readonly createdBefore?: Date | undefined;
  readonly updatedAfter?: Date | undefined;
  readonly updatedBefore?: Date | undefined;
  /** Each variable at a path is equal to the JSON given as text. */
  readonly variables?: readonly { readonly path: readonly string[]; readonly json: string }[];
}

export type InstanceOrder = "createdAt" | "-createdAt" | "updatedAt" | "-updatedAt";

export interface InstanceQuery {
  readonly tenantId: string;
  readonly filter: InstanceFilter;
  /** Default: the latest first. */
  readonly order?: InstanceOrder | undefined;
  readonly limit: number;
  readonly cursor?: string | undefined;
}

export interface InstanceList {
  readonly items: readonly InstanceRead[];
  readonly nextCursor: string | null;
}

/** @throws BadCursorError; DataRefusedError where the JSON of a variable is none. */
export async function listInstances(db: Db, query: InstanceQuery): Promise<InstanceList> {
  const { tenantId, filter, order = "-createdAt", limit, cursor } = query;
  const direction = order.startsWith("-") ? "desc" : "asc";
  const byUpdate = order.endsWith("updatedAt");
  const updatedAt = sql<string>`i.updated_at::text`;
  const found = await planned(db, (trx) => {
    let rows = filtered(trx, tenantId, filter).select(["i.id", updatedAt.as("updated")]);
    if (cursor !== undefined) rows = rows.where(isBeyond(order, cursor, direction, byUpdate));
    if (byUpdate) rows = rows.orderBy("i.updated_at", direction);
    const ordered = rows.orderBy("i.id", direction).limit(limit + 1);
    return readPage(cursor, () => ordered.execute());
  });
  const page = found.slice(0, limit);
  const { items, length } = await readPart(
    db,
    page.map(({ id }) => ({ tenantId, instanceId: id })),
  );
  const last = found.length > length ? page[length - 1] : undefined;
  return {
    items,
    nextCursor: last ? encodeCursor(order, byUpdate ? [last.updated, last.id] : [last.id]) : null,
  };
}

/**
 * Their ids alone, in the order in which they were created.
 *
 * @throws BadCursorError
 */
export async function findInstances(
  db: Db,
  { tenantId, filter, limit, cursor }: Omit<InstanceQuery, "order">,
): Promise<{ readonly ids: readonly string[]; readonly nextCursor: string | null }> {
  const found = await planned(db, (trx) => {
    let rows = filtered(trx, tenantId, filter).select("i.id");
    if (cursor !== undefined) rows = rows.where(isBeyond("createdAt", cursor, "asc", false));
    return rows
      .orderBy("i.id")
      .limit(limit + 1)
      .execute();
  });
  const ids = found.slice(0, limit).map(({ id }) => id);
  const last = found.length > limit ? ids.at(-1) : undefined;
  return { ids, nextCursor: last === undefined ? null : encodeCursor("createdAt", [last]) };
}

/** The first ones, as many as make a page. `length` also counts those that are gone since. */
async function readPart(
  db: Db,
  keys: readonly Key[],
): Promise<{ readonly items: readonly InstanceRead[]; readonly length: number }> {
  const items: InstanceRead[] = [];
  let length = 0;
  let read = 0;
  while (length < keys.length && read < pageCharacters) {
    const next = keys.slice(length, length + readAtOnce);
    const { instances, characters } = await readWithSize(db, next);
    items.push(...instances);
    length += next.length;
    read += characters;
  }
  return { items, length };
}

function isBeyond(order: string, cursor: string, direction: "asc" | "desc", byUpdate: boolean) {
  const comparison = sql.raw(direction === "asc" ? ">" : "<");
  if (!byUpdate) {
    const [id = ""] = decodeCursor(order, cursor, 1);
    return sql<boolean>`i.id ${comparison} ${checkedUuid(id)}::uuid`;
  }
  const [updated = "", id = ""] = decodeCursor(order, cursor, 2);
  if (Number.isNaN(Date.parse(updated))) {
    throw new BadCursorError("the cursor was not given out by this API");
  }
  return sql<boolean>`(i.updated_at, i.id) ${comparison}
    (${updated}::timestamptz, ${checkedUuid(id)}::uuid)`;
}

function checkedUuid(id: string): string {
  if (uuid.test(id)) return id;
  throw new BadCursorError("the cursor was not given out by this API");
}

const uuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

type Tables = Database & { readonly i: Database["workflow_instances"] };
type Filtered = SelectQueryBuilder<Tables, "i", object>;

function filtered(db: Db, tenantId: string, filter: InstanceFilter): Filtered {
  const conditions = conditionsOf(filter);
  return db
    .selectFrom("workflow_instances as i")
    .where("i.tenant_id", "=", tenantId)
    .where((builder) => builder.and(conditions(builder)));
}

function conditionsOf(filter: InstanceFilter) {
  return (builder: ExpressionBuilder<Tables, "i">) => {
    const { ids, status, workflowId, workflowVersion, correlationId } = filter;
    const { currentStep, waitingFor, variables = [] } = filter;
    const { createdAfter, createdBefore, updatedAfter, updatedBefore } = filter;
    return [
      ...(ids ? [sql<boolean>`i.id = any (${ids.filter((id) => uuid.test(id))}::uuid[])`] : []),
      ...(status ? [sql<boolean>`i.status = any (${status}::text[])`] : []),
      ...(workflowId === undefined ? [] : [builder("i.workflow_id", "=", workflowId)]),
      ...(workflowVersion === undefined
        ? []
        : [builder("i.workflow_version", "=", workflowVersion)]),
      ...(correlationId === undefined ? [] : [builder("i.correlation_id", "=", correlationId)]),
      ...(createdAfter ? [sql<boolean>`i.id > ${lastIdOf(createdAfter)}::uuid`] : []),
      ...(createdBefore ? [sql<boolean>`i.id < ${firstIdOf(createdBefore)}::uuid`] : []),
      ...(updatedAfter ? [builder("i.updated_at", ">", updatedAfter)] : []),
      ...(updatedBefore ? [builder("i.updated_at", "<", updatedBefore)] : []),
      ...(currentStep === undefined ? [] : [isAt(currentStep)]),
      ...(waitingFor === undefined ? [] : [waitsFor(waitingFor)]),
      ...variables.map(
        ({ path, json }) => sql<boolean>`i.variables #> ${path}::text[] = ${json}::jsonb`,
      ),
    ];
  };
}

/** Every id of an earlier millisecond is smaller. */
function firstIdOf(time: Date): string {
  return `${timePart(time)}-0000-0000-000000000000`;
}

/** Every id of a later millisecond is greater. */
function lastIdOf(time: Date): string {
  return `${timePart(time)}-ffff-ffff-ffffffffffff`;
}

function timePart(time: Date): string {
  const hex = Math.min(Math.max(time.getTime(), 0), 2 ** 48 - 1)
    .toString(16)
    .padStart(12, "0");
  return `${hex.slice(0, 8)}-${hex.slice(8)}`;
}

function isAt(path: string) {
  return sql<boolean>`i.id in (
    select s.instance_id from step_executions s
    where s.tenant_id = i.tenant_id and ${isStep(path)} and s.completed_at is null
      and s.status in ('PENDING', 'RUNNING', 'WAITING', 'RETRYING'))`;
}

/** The index is by step id, which is the end of a path. */
function isStep(path: string) {
  const stepId = stepIdOf(path);
  return stepId === path
    ? sql<boolean>`s.step_id = ${stepId}`
    : sql<boolean>`s.step_id = ${stepId} and s.path = ${path}`;
}

function waitsFor(patternOrStep: string) {
  return sql<boolean>`i.id in (
    select w.instance_id from waits w
    where w.tenant_id = i.tenant_id and w.purpose = 'STEP' and w.matched_event_id is null
      and w.pattern = ${patternOrStep}
    union all
    select s.instance_id from step_executions s
    where s.tenant_id = i.tenant_id and ${isStep(patternOrStep)} and s.completed_at is null
      and s.status = 'WAITING')`;
}

/** How many instances there are of each status; those without any are absent. The index is for those who ask by it. */
export async function countByStatus(
  db: Db,
  tenantId?: string,
): Promise<ReadonlyMap<InstanceStatus, number>> {
  const rows = await run<{ status: InstanceStatus; n: number }>(
    db,
    `select status, count(*) as n from workflow_instances
    where status > '' and ($1::text is null or tenant_id = $1)
    group by status`,
    [tenantId ?? null],
  );
  return new Map(rows.map(({ status, n }) => [status, n]));
}
