import { executionOfWait } from "@millrace/engine";
import type { Snapshot, TimerKind } from "@millrace/engine";
import { childrenOf } from "./child-links.ts";
import type { Key } from "./commit.ts";
import { instanceColumnsAsText, snapshotOf } from "./instance-row.ts";
import type { InstanceRow } from "./instance-row.ts";
import { parseJson } from "./json.ts";
import type { Json } from "./json.ts";
import { keyName, keySource } from "./load.ts";
import { failedItems, lastEntered, latestPaths, liveItems, shownPaths } from "./shown-steps.ts";
import { prepared, run } from "./statement.ts";
import type { Db } from "./statement.ts";
import { childPlaceOf, stepColumnsWith, stepReadOf } from "./step-read.ts";
import type { OfInstance, StepRead, StepRow } from "./step-read.ts";
import { timeOfJson } from "./stored-time.ts";
import { textArray } from "./unnest.ts";

/** Instances as people see them. */

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

/** @param outputsOf Steps whose outputs are read, since all of them may be large; absent: those of all. */
export async function readInstance(
  db: Db,
  key: Key,
  outputsOf?: readonly string[],
): Promise<InstanceRead | undefined> {
  return (await readWithSize(db, [key], outputsOf)).instances[0];
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
  return (await readWithSize(db, keys)).instances;
}

/** @returns With how many characters of JSON they were read from. */
export async function readWithSize(
  db: Db,
  keys: readonly Key[],
  outputsOf?: readonly string[],
): Promise<{ readonly instances: readonly InstanceRead[]; readonly characters: number }> {
  if (keys.length === 0) return { instances: [], characters: 0 };
  const [found] = await run<Record<"instances" | "steps" | "waits" | "timers", string>>(
    db,
    readByKey,
    [...keySource.values(keys), outputsOf === undefined ? null : textArray(outputsOf)],
  );
  // The columns are those that each part selects.
  const rows = rowsOf(found?.instances) as readonly InstanceReadRow[];
  const steps = rowsOf(found?.steps) as readonly StepRow[];
  const waits = rowsOf(found?.waits) as readonly WaitRow[];
  const timers = rowsOf(found?.timers) as readonly TimerRow[];
  const byKey = new Map(rows.map((row) => [nameOf(row.i_tenant_id, row.i_id), row]));
  const stepsOf = grouped(steps);
  const waitsOf = grouped(waits);
  const timersOf = grouped(timers);
  const children = await childrenOf(db, steps.flatMap(childPlaceOf));
  const instances = keys.flatMap((key) => {
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
  const characters = (found?.instances.length ?? 0) + (found?.steps.length ?? 0);
  return { instances, characters };
}

/** Rows that came as a JSON array: times in their columns are texts, and become dates again. */
function rowsOf(text = "[]"): readonly unknown[] {
  const rows = JSON.parse(text) as readonly Record<string, unknown>[];
  for (const row of rows) {
    for (const [column, value] of Object.entries(row)) {
      if (typeof value === "string" && timeColumn.test(column)) row[column] = timeOfJson(value);
    }
  }
  return rows;
}

const timeColumn = /_at$|^deadline$/;

function nameOf(tenantId: string, instanceId: string): string {
  return keyName({ tenantId, instanceId });
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

const askedOutput = `case when $3::text[] is null or s.step_id = any ($3::text[])
      then s.output::text end`;

/** `offset 0`: one descent of the primary key a row, whatever the estimates say. */
const latestSteps = `select ${stepColumnsWith(askedOutput)}
  from shown l
  cross join lateral (
    select * from step_executions s
    where s.tenant_id = l.tenant_id and s.instance_id = l.instance_id
      and s.path = l.path and s.iteration = l.iteration
    offset 0) s
  order by s.created_at, s.completion, s.path`;

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

const readByKey = prepared(
  "read_instances",
  `with recursive ${[latestPaths, liveItems, failedItems, lastEntered, shownPaths].join(", ")}
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
