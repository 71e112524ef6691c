import { executionKey, executionOfWait } from "@millrace/engine";
import type { ItemCounts, Snapshot, StepStatus, TimerKind, WorkflowError } from "@millrace/engine";
import { childrenOf, placeName } from "./children.ts";
import type { ChildLink, StepPlace } from "./children.ts";
import type { Commit, Key } from "./commit.ts";
import { instanceColumnsAsText, snapshotOf } from "./instance-row.ts";
import type { InstanceRow } from "./instance-row.ts";
import { parseJson } from "./json.ts";
import type { Json } from "./json.ts";
import { keyName, keySource } from "./load.ts";
import { prepared, run, type Db } from "./statement.ts";

/** Instances as people see them. */

/**
 * Items of one MAP that are shown with their instance of those that are live, of those that failed, and
 * of the others: the last so many in the order of their paths. `listSteps` has all of them.
 */
const mostItems = 100;

/**
 * An instance with the latest execution of each of its steps, and what it waits for. Of the items of a
 * MAP only some are there, so that one of ten thousand is read as fast as one of a hundred.
 */
export interface InstanceRead {
  readonly snapshot: Snapshot;
  readonly metadata: Json;
  readonly deadline: Date | null;
  readonly updatedAt: Date;
  /** One a path, in the order in which they began. Compensation steps are among them. */
  readonly steps: readonly StepRead[];
  readonly waits: readonly WaitRead[];
  readonly timers: readonly TimerRead[];
}

export interface StepRead {
  readonly stepId: string;
  readonly path: string;
  readonly iteration: number;
  readonly type: string;
  readonly status: StepStatus;
  readonly attempt: number;
  readonly deliveries: number;
  readonly taskId: string | null;
  readonly queue: string | null;
  /** Execution key of what a compensation step undoes; null for any other step. */
  readonly compensates: string | null;
  readonly output: Json | undefined;
  readonly error: WorkflowError | null;
  readonly completion: number | null;
  readonly createdAt: Date;
  readonly startedAt: Date | null;
  readonly completedAt: Date | null;
  readonly retryAt: Date | null;
  readonly workerId: string | null;
  readonly awaited: boolean;
  /** Why no worker takes it. */
  readonly blocked: string | null;
  readonly progress: Json | undefined;
  /** Of a SUB_WORKFLOW the latest one. */
  readonly child?: ChildLink | undefined;
  /** MAP only, as they were when it last was written: when it began, and when it settled. */
  readonly items: ItemCounts | undefined;
}

export interface WaitRead {
  readonly path: string;
  /** Of the execution that waits: several waits may be of one. */
  readonly executionPath: string;
  readonly iteration: number;
  readonly stepId: string | null;
  readonly purpose: "STEP" | "CANCEL";
  readonly pattern: string;
  readonly deliver: "ALL" | "ONE";
  readonly openedAt: Date;
  /** The event that has it, while the instance has not moved on yet. */
  readonly matchedEventId: string | null;
}

export interface TimerRead {
  readonly path: string;
  readonly iteration: number;
  readonly kind: TimerKind;
  readonly dueAt: Date;
}

export async function readInstance(db: Db, key: Key): Promise<InstanceRead | undefined> {
  return (await readInstances(db, [key]))[0];
}

/**
 * In the order of the keys; what does not exist is left out.
 *
 * One statement, so that everything is of one moment: an instance that is shown as settled has its
 * steps shown as they settled.
 */
export async function readInstances(
  db: Db,
  keys: readonly Key[],
): Promise<readonly InstanceRead[]> {
  if (keys.length === 0) return [];
  const [found] = await run<Record<"instances" | "steps" | "waits" | "timers", string>>(
    db,
    read,
    keySource.values(keys),
  );
  // The columns are those that each part selects.
  const instances = rowsOf(found?.instances) as readonly InstanceReadRow[];
  const steps = rowsOf(found?.steps) as readonly StepRow[];
  const waits = rowsOf(found?.waits) as readonly WaitRow[];
  const timers = rowsOf(found?.timers) as readonly TimerRow[];
  const byKey = new Map(instances.map((row) => [nameOf(row.i_tenant_id, row.i_id), row]));
  const stepsOf = grouped(steps);
  const waitsOf = grouped(waits);
  const timersOf = grouped(timers);
  const children = await childrenOf(db, steps.flatMap(childPlaceOf));
  return keys.flatMap((key) => {
    const name = keyName(key);
    const row = byKey.get(name);
    if (row === undefined) return [];
    return {
      snapshot: snapshotOf(row),
      metadata: parseJson(row.metadata) ?? null,
      deadline: row.deadline,
      updatedAt: row.updated_at,
      steps: (stepsOf.get(name) ?? []).map((step) => stepReadOf(step, children)),
      waits: (waitsOf.get(name) ?? []).map(waitReadOf),
      timers: (timersOf.get(name) ?? []).map(timerReadOf),
    };
  });
}

/** Whose child is asked for, in a statement of its own: few instances have any. */
export function childPlaceOf(row: StepRow): readonly StepPlace[] {
  const { type, tenant_id: tenantId, instance_id: instanceId, path, iteration } = row;
  return type === "SUB_WORKFLOW" ? [{ tenantId, instanceId, path, iteration }] : [];
}

/** Rows that came as a JSON array: times in their columns are texts, and become dates again. */
function rowsOf(text = "[]"): readonly unknown[] {
  const rows = JSON.parse(text) as readonly Record<string, unknown>[];
  for (const row of rows) {
    for (const [column, value] of Object.entries(row)) {
      if (typeof value === "string" && timeColumn.test(column)) row[column] = new Date(value);
    }
  }
  return rows;
}

const timeColumn = /_at$|^deadline$/;

function nameOf(tenantId: string, instanceId: string): string {
  return keyName({ tenantId, instanceId });
}

interface OfInstance {
  readonly tenant_id: string;
  readonly instance_id: string;
}

function grouped<Row extends OfInstance>(
  rows: readonly Row[],
): ReadonlyMap<string, readonly Row[]> {
  const groups = new Map<string, Row[]>();
  for (const row of rows) {
    const name = nameOf(row.tenant_id, row.instance_id);
    const group = groups.get(name);
    if (group === undefined) groups.set(name, [row]);
    else group.push(row);
  }
  return groups;
}

interface InstanceReadRow extends InstanceRow {
  readonly metadata: string | null;
  readonly deadline: Date | null;
  readonly updated_at: Date;
}

const instancesByKey = `select ${instanceColumnsAsText}, i.metadata::text as metadata, i.deadline,
    i.updated_at
  from ${keySource.from("x", 1)}
  join workflow_instances i on i.tenant_id = x.tenant_id and i.id = x.instance_id`;

export interface StepRow extends OfInstance {
  readonly step_id: string;
  readonly path: string;
  readonly iteration: number;
  readonly type: string;
  readonly status: string;
  readonly attempt: number;
  readonly deliveries: number;
  readonly task_id: string | null;
  readonly queue: string | null;
  readonly compensates: string | null;
  readonly output: string | null;
  readonly error: string | null;
  readonly completion: number | null;
  readonly created_at: Date;
  readonly started_at: Date | null;
  readonly completed_at: Date | null;
  readonly retry_at: Date | null;
  readonly worker_id: string | null;
  readonly awaited: boolean;
  readonly blocked: string | null;
  readonly progress: string | null;
  readonly items: string | null;
}

/** The outermost MAP around an item's path and its bracket; empty for the path of no item. */
const mapOf = (path: string) => `left(${path}, strpos(${path}, '['))`;

/**
 * The latest execution of each path, by hopping backwards through the primary key from path to path:
 * a loop of ten thousand passes costs as much as one. After so many items of a MAP it leaps over the
 * rest of them, since all below a MAP is one range of the key.
 */
const latestPaths = `latest as (
    select s.*, ${mapOf("s.path")} as map, 1 as hops
    from ${keySource.from("x", 1)}
    cross join lateral (
      select s.tenant_id, s.instance_id, s.path, s.iteration from step_executions s
      where s.tenant_id = x.tenant_id and s.instance_id = x.instance_id
      order by s.path desc, s.iteration desc limit 1) s
    union all
    select s.*, ${mapOf("s.path")},
      case when l.map = ${mapOf("s.path")} then l.hops + 1 else 1 end
    from latest l
    cross join lateral (
      select s.tenant_id, s.instance_id, s.path, s.iteration from step_executions s
      where s.tenant_id = l.tenant_id and s.instance_id = l.instance_id
        and s.path < case when l.map <> '' and l.hops >= ${mostItems} then l.map else l.path end
      order by s.path desc, s.iteration desc limit 1) s)`;

/** The snapshot names them: it holds the live frontier (engine/state/codec.ts). */
const liveItems = `live_items as (
    select i.tenant_id, i.id as instance_id,
      regexp_replace(k.key, '#[0-9]+$', '') collate "C" as path,
      substring(k.key, '[0-9]+$')::integer as iteration
    from ${keySource.from("x", 1)}
    join workflow_instances i on i.tenant_id = x.tenant_id and i.id = x.instance_id
    cross join lateral (
      select key from json_object_keys(i.snapshot -> 'live') key
      where strpos(key, '[') > 0 limit ${mostItems}) k)`;

/** By an index of their own. */
const failedItems = `failed_items as (
    select s.*
    from ${keySource.from("x", 1)}
    cross join lateral (
      select s.tenant_id, s.instance_id, s.path, s.iteration from step_executions s
      where s.tenant_id = x.tenant_id and s.instance_id = x.instance_id
        and s.status = 'FAILED' and strpos(s.path, '[') > 0
        and s.iteration = (
          select n.iteration from step_executions n
          where n.tenant_id = s.tenant_id and n.instance_id = s.instance_id and n.path = s.path
          order by n.iteration desc limit 1)
      order by s.path limit ${mostItems}) s)`;

const shownPaths = `shown as (
    ${["latest", "live_items", "failed_items"]
      .map((part) => `select tenant_id, instance_id, path, iteration from ${part}`)
      .join(" union ")})`;

export const stepColumns = `s.tenant_id, s.instance_id, s.step_id, s.path, s.iteration, s.type,
    s.status, s.attempt, s.deliveries, s.task_id, s.queue, s.compensates, s.output::text as output,
    s.error::text as error, s.completion, s.created_at, s.started_at, s.completed_at, s.retry_at,
    s.worker_id, s.awaited, s.blocked, s.progress::text as progress, s.items::text as items`;

/** `offset 0`: one descent of the primary key a row, whatever the estimates say. */
const latestSteps = `select ${stepColumns}
  from shown l
  cross join lateral (
    select * from step_executions s
    where s.tenant_id = l.tenant_id and s.instance_id = l.instance_id
      and s.path = l.path and s.iteration = l.iteration
    offset 0) s
  order by s.created_at, s.completion, s.path`;

export function stepReadOf(row: StepRow, children: ReadonlyMap<string, ChildLink>): StepRead {
  const [place] = childPlaceOf(row);
  return {
    stepId: row.step_id,
    path: row.path,
    iteration: row.iteration,
    type: row.type,
    status: row.status as StepStatus,
    attempt: row.attempt,
    deliveries: row.deliveries,
    taskId: row.task_id,
    queue: row.queue,
    compensates: row.compensates,
    output: parseJson(row.output),
    error: (parseJson(row.error) ?? null) as WorkflowError | null,
    completion: row.completion,
    createdAt: row.created_at,
    startedAt: row.started_at,
    completedAt: row.completed_at,
    retryAt: row.retry_at,
    workerId: row.worker_id,
    awaited: row.awaited,
    blocked: row.blocked,
    progress: parseJson(row.progress),
    items: parseJson(row.items) as ItemCounts | undefined,
    child: place && children.get(placeName(place)),
  };
}

interface WaitRow extends OfInstance {
  readonly path: string;
  readonly iteration: number;
  readonly step_id: string | null;
  readonly purpose: string;
  readonly pattern: string;
  readonly deliver: string;
  readonly opened_at: Date;
  readonly matched_event_id: string | null;
}

const openWaits = `select w.tenant_id, w.instance_id, w.path, w.iteration, w.step_id, w.purpose, w.pattern,
    w.deliver, w.opened_at, w.matched_event_id
  from ${keySource.from("x", 1)}
  join waits w on w.tenant_id = x.tenant_id and w.instance_id = x.instance_id
  order by w.opened_at, w.path, w.iteration`;

function waitReadOf(row: WaitRow): WaitRead {
  return {
    path: row.path,
    executionPath: executionOfWait(row.path).path,
    iteration: row.iteration,
    stepId: row.step_id,
    purpose: row.purpose as WaitRead["purpose"],
    pattern: row.pattern,
    deliver: row.deliver as WaitRead["deliver"],
    openedAt: row.opened_at,
    matchedEventId: row.matched_event_id,
  };
}

interface TimerRow extends OfInstance {
  readonly path: string;
  readonly iteration: number;
  readonly kind: string;
  readonly due_at: Date;
}

const setTimers = `select t.tenant_id, t.instance_id, t.path, t.iteration, t.kind, t.due_at
  from ${keySource.from("x", 1)}
  join timers t on t.tenant_id = x.tenant_id and t.instance_id = x.instance_id
  order by t.due_at, t.path`;

const list = (rows: string) => `(select coalesce(json_agg(r), '[]') from (${rows}) r)`;

const read = prepared(
  "read_instances",
  `with recursive ${[latestPaths, liveItems, failedItems, shownPaths].join(", ")}
  select ${list(instancesByKey)} as instances, ${list(latestSteps)} as steps,
    ${list(openWaits)} as waits, ${list(setTimers)} as timers`,
);

function timerReadOf(row: TimerRow): TimerRead {
  return {
    path: row.path,
    iteration: row.iteration,
    kind: row.kind as TimerKind,
    dueAt: row.due_at,
  };
}

/**
 * Whose an instance is. Ids are unique over all tenants, keys begin with the tenant: this hops from
 * tenant to tenant, so it is for those who may see all of them and do not say which.
 */
export async function tenantOf(db: Db, instanceId: string): Promise<string | undefined> {
  const [row] = await run<{ tenant_id: string }>(db, owner, [instanceId]);
  return row?.tenant_id;
}

const owner = prepared(
  "tenant_of",
  `with recursive tenants as (
    (select tenant_id from workflow_instances order by tenant_id limit 1)
    union all
    select (select i.tenant_id from workflow_instances i where i.tenant_id > t.tenant_id
      order by i.tenant_id limit 1)
    from tenants t where t.tenant_id is not null)
  select t.tenant_id from tenants t
  where exists (
    select from workflow_instances i where i.tenant_id = t.tenant_id and i.id = $1::uuid)
  limit 1`,
);

/** The instance as its first commit makes it, without asking the database. */
export function instanceReadOf({ decision, at, create }: Commit): InstanceRead {
  const { snapshot, inserts, commands } = decision;
  const isOver = commands.some(({ kind }) => kind === "settle");
  const children = linksOf(snapshot, commands, at);
  return {
    snapshot,
    metadata: create?.metadata ?? null,
    deadline: create?.deadline ?? null,
    updatedAt: at,
    // Field by field: to spread and then add so many fields takes V8 some 30 µs.
    steps: inserts.map((row) => ({
      stepId: row.stepId,
      path: row.path,
      iteration: row.iteration,
      type: row.type,
      status: row.status,
      attempt: row.attempt,
      deliveries: 0,
      taskId: row.taskId,
      queue: row.queue,
      compensates: row.compensates,
      output: row.output,
      error: row.error,
      completion: row.completion,
      createdAt: at,
      startedAt: row.startedAt,
      completedAt: row.completedAt,
      retryAt: null,
      workerId: null,
      awaited: false,
      blocked: null,
      progress: undefined,
      items: row.items,
      child: children.get(executionKey(row.path, row.iteration)),
    })),
    waits: isOver
      ? []
      : commands.flatMap((command) =>
          command.kind === "openWait"
            ? [
                {
                  ...command.wait,
                  executionPath: executionOfWait(command.wait.path).path,
                  openedAt: at,
                  matchedEventId: null,
                },
              ]
            : [],
        ),
    timers: isOver
      ? []
      : commands.flatMap((command) =>
          command.kind === "setTimer"
            ? [
                {
                  path: command.path,
                  iteration: command.iteration,
                  kind: command.timer,
                  dueAt: command.dueAt,
                },
              ]
            : [],
        ),
  };
}

function linksOf(
  { tenantId, id: instanceId }: Snapshot,
  commands: Commit["decision"]["commands"],
  requestedAt: Date,
): ReadonlyMap<string, ChildLink> {
  return new Map(
    commands.flatMap((command): [string, ChildLink][] => {
      if (command.kind !== "startChild") return [];
      const { path, iteration, attempt, childId, workflowId, detached } = command;
      const place = { tenantId, instanceId, path, iteration, attempt };
      const link = { ...place, childId, workflowId, detached, requestedAt, status: null };
      return [[executionKey(path, iteration), link]];
    }),
  );
}
