import { lapseOf } from "./dead-letters.ts";
import type { Draft } from "./draft.ts";
import { jsonText } from "./json.ts";
import { engineRev } from "@millrace/engine";
import { prepared, type Db } from "./statement.ts";
import { rowSource, type Column, type RowSource, type Value } from "./unnest.ts";

/** What the statements that write commits have in common: everything but the instance's own row. */

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

type Columns<Row> = Readonly<
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
const atOf = "($7::timestamptz[])[x.ix + 1]";

export const isWritten = "x.ix = any ((select ixs from go)::integer[])";

/** Whether a row is the one that `x` names. */
export function samePlace(alias: string): string {
  return `${alias}.tenant_id = ${tenantOf} and ${alias}.instance_id = ${instanceOf}
      and ${alias}.path = x.path and ${alias}.iteration = x.iteration`;
}

/** Every write beside the instance's own row. Each names its rows by their whole key. */
export function childWrites(
  parameters: Parameters,
  drafts: readonly Draft[],
  db: Db | undefined,
): { readonly sections: readonly string[]; readonly remember: (() => void) | undefined } {
  const shapes = newShapes(drafts, db);
  const shaped = shapes.rows.length > 0 ? shapes.rows : [];
  const emitting = drafts.some(({ emits }) => emits.length > 0);
  const openSource = emitting ? waitInsertsAmongEvents : waitInserts;
  const from = {
    inserts: parameters.addRows(stepInserts, drafts, (draft) => draft.inserts),
    updates: parameters.addRows(stepUpdates, drafts, (draft) => draft.updates),
    opens: parameters.addRows(openSource, drafts, (draft) => draft.opens),
    rekeys: parameters.addRows(waitKeys, drafts, (draft) => draft.rekeys),
    closes: parameters.addRows(places, drafts, (draft) => draft.closes),
    handsOn: parameters.addRows(places, drafts, (draft) => draft.handsOn),
    sets: parameters.addRows(timerInserts, drafts, (draft) => draft.sets),
    clears: parameters.addRows(timerPlaces, drafts, (draft) => draft.clears),
    heldSteps: parameters.addRows(heldSteps, drafts, (draft) => draft.heldSteps),
    heldTimers: parameters.addRows(heldTimers, drafts, (draft) => draft.heldTimers),
    emits: parameters.addRows(eventInserts, drafts, (draft) => draft.emits),
    settles: parameters.addRows(settled, drafts, (draft) => (draft.settles ? [undefined] : [])),
    letters: parameters.addRows(deadLetters, drafts, letterOf),
    resolutions: parameters.addRows(resolutions, drafts, resolutionOf),
    shapes: parameters.addRows(waitShapes, drafts.slice(0, 1), () => shaped),
  };
  const sections = [
    from.inserts && insertSteps(from.inserts),
    from.updates && updateSteps(from.updates),
    from.shapes && insertShapes(from.shapes),
    from.opens && openWaits(from.opens, emitting),
    from.emits && emitEvents(from.emits),
    from.rekeys && rekeyWaits(from.rekeys),
    from.closes && closeWaits(from.closes, from.handsOn !== undefined),
    from.sets && setTimers(from.sets),
    from.clears &&
      `cleared as (delete from timers t using ${from.clears("x")}
      where ${isWritten} and ${samePlace("t")} and t.kind = x.kind)`,
    from.heldSteps && holdSteps(from.heldSteps),
    from.heldTimers && holdTimers(from.heldTimers),
    from.letters && insertDeadLetters(from.letters),
    from.resolutions && resolveDeadLetters(from.resolutions),
    ...(from.settles === undefined ? [] : settle(from.settles, from.handsOn !== undefined)),
    from.handsOn && releaseEvents(from.handsOn, from.closes, from.settles),
  ];
  return {
    sections: sections.filter((section) => section !== undefined),
    remember: shapes.remember,
  };
}

/**
 * A carried row is RUNNING from the start, held by the worker that commits it. A PENDING one is the
 * promise of a job: if none has come for it in 30 s, it is looked for.
 */
function insertSteps(from: From): string {
  return `inserted as (
    insert into step_executions (
      tenant_id, instance_id, path, iteration, step_id, type, status, attempt, task_id, queue,
      priority, compensates, input, output, error, completion, timeout_ms, heartbeat_timeout_ms,
      created_at, started_at, completed_at, fence, deliveries, worker_id, carrier, look_at,
      due_at, due_clock, timeout_at, task_retry, items, held)
    select ${tenantOf}, ${instanceOf}, x.path, x.iteration, x.step_id, x.type, x.status, x.attempt,
      x.task_id, x.queue, x.priority, x.compensates, x.input, x.output, x.error, x.completion,
      x.timeout_ms, x.heartbeat_timeout_ms, statement_timestamp(),
      case when x.worker_id is null then x.started_at else statement_timestamp() end,
      x.completed_at, x.runs, x.runs, x.worker_id, x.carrier,
      case when x.status = 'PENDING' and x.held is null
        then statement_timestamp() + interval '30 s' end,
      statement_timestamp() + x.due_ms * interval '1 ms', x.due_clock,
      statement_timestamp() + x.attempt_ms * interval '1 ms', x.task_retry, x.items,
      x.held is not null
    from ${from("x")}
    where ${isWritten})`;
}

const stepInserts = ownedSource<Draft["inserts"][number]>({
  path: { type: "text", of: ({ row }) => row.path },
  iteration: { type: "integer", of: ({ row }) => row.iteration },
  step_id: { type: "text", of: ({ row }) => row.stepId },
  type: { type: "text", of: ({ row }) => row.type },
  status: { type: "text", of: ({ row, carry }) => (carry === undefined ? row.status : "RUNNING") },
  attempt: { type: "integer", of: ({ row }) => row.attempt },
  task_id: { type: "text", of: ({ row }) => row.taskId },
  queue: { type: "text", of: ({ row }) => row.queue },
  priority: { type: "integer", of: ({ row }) => row.priority },
  compensates: { type: "text", of: ({ row }) => row.compensates },
  input: { type: "json", of: ({ input }) => input },
  output: { type: "json", of: ({ output }) => output },
  error: { type: "json", of: ({ error }) => error },
  completion: { type: "integer", of: ({ row }) => row.completion },
  timeout_ms: { type: "bigint", of: ({ row }) => row.timeoutMs },
  heartbeat_timeout_ms: { type: "bigint", of: ({ row }) => row.heartbeatTimeoutMs },
  started_at: { type: "timestamptz", of: ({ row }) => row.startedAt },
  completed_at: { type: "timestamptz", of: ({ row }) => row.completedAt },
  runs: { type: "integer", of: ({ carry }) => (carry === undefined ? 0 : 1) },
  worker_id: { type: "uuid", of: ({ carry }) => carry?.workerId },
  carrier: { type: "text", of: ({ carry }) => carry?.carrier },
  due_ms: { type: "bigint", of: ({ clock }) => clock.dueMs },
  due_clock: { type: "text", of: ({ clock }) => clock.name },
  attempt_ms: { type: "bigint", of: ({ clock }) => clock.timeoutMs },
  task_retry: { type: "json", of: ({ retry }) => retry },
  items: { type: "json", of: ({ row }) => itemsText(row) },
  held: { type: "boolean", of: ({ isHeld }) => isHeld },
});

/** A row that is not RUNNING any more is held by nobody; `worker_id` then says who ran it last. */
function updateSteps(from: From): string {
  const whileRunning = (column: string) =>
    `${column} = case when x.status = 'RUNNING' then s.${column} end`;
  return `updated as (
    update step_executions s
    set status = x.status,
      attempt = x.attempt,
      output = coalesce(x.output, s.output),
      error = x.error,
      completion = coalesce(x.completion, s.completion),
      completed_at = x.completed_at,
      items = coalesce(x.items, s.items),
      awaited = x.awaited,
      retry_at = x.retry_at,
      look_at = case
        when x.held then null
        -- No job is missing where no task is to run: a timer says when a child is tried again.
        when x.status = 'RETRYING' then case when s.queue is not null then x.retry_at end
        when x.status = 'PENDING' then statement_timestamp() + interval '30 s' end,
      held = x.held is not null,
      looks = 0,
      blocked = null,
      -- Those of one attempt: an attempt that failed was not the death of its worker.
      deliveries = case when x.status = 'RETRYING' then 0 else s.deliveries end,
      lapses = case when x.status = 'RETRYING' then 0 else s.lapses end,
      ${["carrier", "due_at", "due_clock", "timeout_at"].map(whileRunning).join(", ")}
    from ${from("x")}
    where ${isWritten} and ${samePlace("s")})`;
}

const stepUpdates = ownedSource<Draft["updates"][number]>({
  path: { type: "text", of: ({ row }) => row.path },
  iteration: { type: "integer", of: ({ row }) => row.iteration },
  status: { type: "text", of: ({ row }) => row.status },
  attempt: { type: "integer", of: ({ row }) => row.attempt },
  output: { type: "json", of: ({ output }) => output },
  error: { type: "json", of: ({ error }) => error },
  completion: { type: "integer", of: ({ row }) => row.completion },
  completed_at: { type: "timestamptz", of: ({ row }) => row.completedAt },
  awaited: { type: "boolean", of: ({ row }) => row.awaited },
  retry_at: { type: "timestamptz", of: ({ row }) => row.retryAt },
  items: { type: "json", of: ({ row }) => itemsText(row) },
  held: { type: "boolean", of: ({ isHeld }) => isHeld },
});

function itemsText({ items }: Pick<Draft["updates"][number]["row"], "items">): string | undefined {
  return items && JSON.stringify(items);
}

/**
 * `opened_at` is the time of this statement, not of its transaction: one that waited for the
 * instance's row began before events that came while it waited, and did not have this wait open then.
 */
function openWaits(from: From, emitting: boolean): string {
  const openedAt = emitting ? momentBefore("2 * x.emits_after") : "statement_timestamp()";
  return `opened as (
    insert into waits (
      tenant_id, instance_id, path, iteration, step_id, purpose, pattern, event_paths, key_hash,
      deliver, opened_at, lookback_from, looked_back)
    select ${tenantOf}, ${instanceOf}, x.path, x.iteration, x.step_id, x.purpose, x.pattern,
      x.event_paths, x.key_hash, x.deliver, ${openedAt}, x.lookback_from,
      x.lookback_from is null
    from ${from("x")}
    where ${isWritten}
    on conflict (tenant_id, instance_id, path, iteration) do update
    set step_id = excluded.step_id, purpose = excluded.purpose, pattern = excluded.pattern,
      event_paths = excluded.event_paths, key_hash = excluded.key_hash,
      deliver = excluded.deliver, opened_at = excluded.opened_at,
      lookback_from = excluded.lookback_from, looked_back = excluded.looked_back,
      matched_event_id = null, matched_at = null)`;
}

/**
 * Waits that a commit opens hear the events that it emits after them, and not those before: they are
 * set apart by microseconds, which is all that an order of time needs.
 */
function momentBefore(microseconds: string): string {
  return `statement_timestamp() - (${microseconds}) * interval '1 microsecond'`;
}

/** Its row is the promise that it is matched. */
function emitEvents(from: From): string {
  return `emitted as (
    insert into events (tenant_id, id, pattern, payload, occurred_at, received_at, actor)
    select ${tenantOf}, x.id, x.pattern, x.payload, ${atOf},
      ${momentBefore("2 * x.emits_after + 1")}, 'instance:' || ${instanceOf}
    from ${from("x")}
    where ${isWritten}
    on conflict do nothing)`;
}

const eventInserts = ownedSource<Draft["emits"][number]>({
  id: { type: "text", of: ({ event }) => event.id },
  pattern: { type: "text", of: ({ event }) => event.pattern },
  payload: { type: "jsonb", of: ({ payload }) => payload },
  emits_after: { type: "integer", of: ({ after }) => after },
});

const waitColumns: Columns<Draft["opens"][number]> = {
  path: { type: "text", of: ({ wait }) => wait.path },
  iteration: { type: "integer", of: ({ wait }) => wait.iteration },
  step_id: { type: "text", of: ({ wait }) => wait.stepId },
  purpose: { type: "text", of: ({ wait }) => wait.purpose },
  pattern: { type: "text", of: ({ wait }) => wait.pattern },
  event_paths: { type: "text", of: ({ eventPaths }) => eventPaths },
  key_hash: { type: "bigint", of: ({ keyHash }) => keyHash },
  deliver: { type: "text", of: ({ wait }) => wait.deliver },
  lookback_from: { type: "timestamptz", of: ({ wait }) => wait.lookbackFrom },
};

const waitInserts = ownedSource<Draft["opens"][number]>(waitColumns);

const waitInsertsAmongEvents = ownedSource<Draft["opens"][number]>({
  ...waitColumns,
  emits_after: { type: "integer", of: ({ emitsAfter }) => emitsAfter },
});

function rekeyWaits(from: From): string {
  return `rekeyed as (
    update waits w set key_hash = x.key_hash from ${from("x")}
    where ${isWritten} and ${samePlace("w")})`;
}

const waitKeys = ownedSource<Draft["rekeys"][number]>({
  path: { type: "text", of: ({ path }) => path },
  iteration: { type: "integer", of: ({ iteration }) => iteration },
  key_hash: { type: "bigint", of: ({ keyHash }) => keyHash },
});

const places = ownedSource<Draft["closes"][number]>({
  path: { type: "text", of: ({ path }) => path },
  iteration: { type: "integer", of: ({ iteration }) => iteration },
});

function closeWaits(from: From, isReleasing: boolean): string {
  return `closed as (
    delete from waits w using ${from("x")}
    where ${isWritten} and ${samePlace("w")}
    ${isReleasing ? `returning ${whatTook("w")}` : ""})`;
}

const whatTook = (alias: string) =>
  ["tenant_id", "instance_id", "path", "iteration", "matched_event_id", "matched_at"]
    .map((column) => `${alias}.${column}`)
    .join(", ");

/**
 * Events that were for one wait alone, and whose wait goes without having used them. As the deletion
 * finds the wait and not as it was when the statement began: it may have been taken in between. The
 * event itself is not touched here: those who take it lock it before the wait.
 */
function releaseEvents(from: From, closes: unknown, settles: unknown): string {
  const gone = [closes && "select * from closed", settles && "select * from settled_waits"];
  return `released as (
    insert into event_releases (tenant_id, instance_id, event_id, taken_at, released_at)
    select w.tenant_id, w.instance_id, w.matched_event_id, w.matched_at, statement_timestamp()
    from ${from("x")}
    join (${gone.filter(Boolean).join(" union all ")}) w on ${samePlace("w")}
    where w.matched_event_id is not null)`;
}

/** A timer that is set again starts anew, whoever was about to fire it. */
function setTimers(from: From): string {
  return `timed as (
    insert into timers (tenant_id, instance_id, path, iteration, kind, attempt, due_at, look_at)
    select ${tenantOf}, ${instanceOf}, x.path, x.iteration, x.kind, x.attempt, x.due_at,
      case when x.held then 'infinity' else x.due_at end
    from ${from("x")}
    where ${isWritten}
    on conflict (tenant_id, instance_id, path, iteration, kind) do update
    set attempt = excluded.attempt, due_at = excluded.due_at, look_at = excluded.look_at)`;
}

const timerInserts = ownedSource<Draft["sets"][number]>({
  path: { type: "text", of: ({ path }) => path },
  iteration: { type: "integer", of: ({ iteration }) => iteration },
  kind: { type: "text", of: ({ timer }) => timer },
  attempt: { type: "integer", of: ({ attempt }) => attempt },
  due_at: { type: "timestamptz", of: ({ dueAt }) => dueAt },
  held: { type: "boolean", of: ({ held }) => held },
});

const timerPlaces = ownedSource<Draft["clears"][number]>({
  path: { type: "text", of: ({ path }) => path },
  iteration: { type: "integer", of: ({ iteration }) => iteration },
  kind: { type: "text", of: ({ timer }) => timer },
});

/** What is let go is looked at when it is due, which it may be already. */
function holdSteps(from: From): string {
  return `held_steps as (
    update step_executions s
    set held = x.held, looks = 0,
      look_at = case when not x.held and s.status in ('PENDING', 'RETRYING')
        then greatest(s.retry_at, statement_timestamp()) end
    from ${from("x")}
    where ${isWritten} and ${samePlace("s")})`;
}

const heldSteps = ownedSource<Draft["heldSteps"][number]>({
  path: { type: "text", of: ({ path }) => path },
  iteration: { type: "integer", of: ({ iteration }) => iteration },
  held: { type: "boolean", of: ({ isHeld }) => isHeld },
});

function holdTimers(from: From): string {
  return `held_timers as (
    update timers t set look_at = case when x.held then 'infinity' else t.due_at end
    from ${from("x")}
    where ${isWritten} and ${samePlace("t")} and t.kind = x.kind)`;
}

const heldTimers = ownedSource<Draft["heldTimers"][number]>({
  path: { type: "text", of: ({ path }) => path },
  iteration: { type: "integer", of: ({ iteration }) => iteration },
  kind: { type: "text", of: ({ timer }) => timer },
  held: { type: "boolean", of: ({ isHeld }) => isHeld },
});

/** With what is known of the workers: of those before from the row, of the last one from its beat. */
function insertDeadLetters(from: From): string {
  return `lettered as (
    insert into dead_letters (tenant_id, instance_id, workflow_id, workflow_version, path, iteration,
      step_id, task_id, attempt, error, deliveries, status, created_at)
    select s.tenant_id, s.instance_id, x.workflow_id, x.workflow_version, s.path, s.iteration,
      s.step_id, s.task_id, x.attempt, x.error, coalesce(s.lapse_log, '[]') || ${lapseOf}, 'OPEN', x.at
    from ${from("x")}
    join step_executions s on ${samePlace("s")}
    left join workers w on w.id = s.worker_id
    where ${isWritten})`;
}

const deadLetters = ownedSource<Letter>({
  path: { type: "text", of: ({ path }) => path },
  iteration: { type: "integer", of: ({ iteration }) => iteration },
  attempt: { type: "integer", of: ({ attempt }) => attempt },
  error: { type: "json", of: ({ error }) => jsonText(error) },
  workflow_id: { type: "text", of: ({ workflowId }) => workflowId },
  workflow_version: { type: "integer", of: ({ workflowVersion }) => workflowVersion },
  at: { type: "timestamptz", of: ({ at }) => at },
});

type Letter = NonNullable<Draft["opensLetter"]> & {
  readonly workflowId: string;
  readonly workflowVersion: number;
  readonly at: Date;
};

function letterOf({ opensLetter, next, at }: Draft): readonly Letter[] {
  const { workflowId, workflowVersion } = next;
  return opensLetter === undefined ? [] : [{ ...opensLetter, workflowId, workflowVersion, at }];
}

function resolveDeadLetters(from: From): string {
  return `resolved as (
    update dead_letters d
    set status = x.outcome, resolved_at = x.at, resolved_by = x.actor, reason = x.reason
    from ${from("x")}
    where ${isWritten} and d.tenant_id = ${tenantOf} and d.instance_id = ${instanceOf}
      and d.status = 'OPEN')`;
}

const resolutions = ownedSource<Resolution>({
  outcome: { type: "text", of: ({ outcome }) => outcome },
  actor: { type: "text", of: ({ actor }) => actor },
  reason: { type: "text", of: ({ reason }) => reason },
  at: { type: "timestamptz", of: ({ at }) => at },
});

type Resolution = NonNullable<Draft["resolvesLetter"]> & { readonly at: Date };

function resolutionOf({ resolvesLetter, at }: Draft): readonly Resolution[] {
  return resolvesLetter === undefined ? [] : [{ ...resolvesLetter, at }];
}

/** Nothing waits for an instance that has settled. */
function settle(from: From, isReleasing: boolean): readonly string[] {
  const settled = (table: string, returning = "") => `settled_${table} as (
    delete from ${table} t using ${from("x")}
    where ${isWritten} and t.tenant_id = ${tenantOf} and t.instance_id = ${instanceOf}
    ${returning})`;
  return [
    settled("waits", isReleasing ? `returning ${whatTook("t")}` : ""),
    settled("timers"),
    settled("event_deliveries"),
  ];
}

const settled = ownedSource<undefined>({});

/** In one order, since these rows are what batches of different instances have in common. */
function insertShapes(from: From): string {
  return `shaped as (
    insert into wait_shapes (tenant_id, pattern, event_paths)
    select x.shape_tenant_id, x.pattern, x.event_paths from ${from("x")}
    on conflict do nothing)`;
}

interface Shape {
  readonly tenantId: string;
  readonly pattern: string;
  readonly eventPaths: string;
}

const waitShapes = ownedSource<Shape>({
  shape_tenant_id: { type: "text", of: ({ tenantId }) => tenantId },
  pattern: { type: "text", of: ({ pattern }) => pattern },
  event_paths: { type: "text", of: ({ eventPaths }) => eventPaths },
});

/** Shapes that this process does not know to exist. They are never deleted, so knowing is for ever. */
function newShapes(
  drafts: readonly Draft[],
  db: Db | undefined,
): { readonly rows: readonly Shape[]; readonly remember: (() => void) | undefined } {
  const known = db && knownShapes(db);
  const fresh = new Map<string, Shape>();
  for (const { tenantId, opens } of drafts) {
    for (const { wait, eventPaths } of opens) {
      const { pattern } = wait;
      const name = JSON.stringify([tenantId, pattern, eventPaths]);
      if (known?.has(name) !== true) fresh.set(name, { tenantId, pattern, eventPaths });
    }
  }
  const names = [...fresh.keys()].toSorted();
  return {
    rows: names.map((name) => fresh.get(name) as Shape),
    remember:
      known &&
      (() => {
        if (known.size + names.length > mostKnownShapes) known.clear();
        for (const name of names) known.add(name);
      }),
  };
}

function knownShapes(db: Db): Set<string> {
  const known = shapesByDatabase.get(db) ?? new Set();
  shapesByDatabase.set(db, known);
  return known;
}

const shapesByDatabase = new WeakMap<Db, Set<string>>();
const mostKnownShapes = 10_000;

const historyColumns = [
  "ix",
  "tenant_id",
  "instance_id",
  "version",
  "commit_id",
  "at",
  "actor",
  "signals",
  "changes",
  "entries",
];

/** One row a commit. */
export function insertHistory(commits: From): string {
  return `recorded as (
    insert into history (
      tenant_id, instance_id, version, commit_id, at, engine_rev, actor, signals, changes, entries)
    select x.tenant_id, x.instance_id, x.version + 1, x.commit_id, x.at, ${engineRev}, x.actor,
      x.signals, x.changes, x.entries
    from ${commits("x", historyColumns)}
    where ${isWritten})`;
}

/** Of the commits' columns, those that name the instance. */
export const keyColumns = ["ix", "tenant_id", "instance_id"];

/** What a commit says of its instance and of itself. */
export const commitSource = rowSource<Owned<undefined>>({
  ix: { type: "integer", of: ({ ix }) => ix },
  tenant_id: { type: "text", of: ({ draft }) => draft.tenantId },
  instance_id: { type: "uuid", of: ({ draft }) => draft.instanceId },
  version: { type: "integer", of: ({ draft }) => draft.version },
  needs: { type: "integer", of: ({ draft }) => draft.needs.length + draft.freeWaits.length },
  commit_id: { type: "uuid", of: ({ draft }) => draft.commitId },
  at: { type: "timestamptz", of: ({ draft }) => draft.at },
  actor: { type: "text", of: ({ draft }) => draft.actor },
  status: { type: "text", of: ({ draft }) => draft.next.status },
  priority: { type: "integer", of: ({ draft }) => draft.next.priority },
  variables: { type: "jsonb", of: ({ draft }) => draft.texts.variables },
  snapshot: { type: "json", of: ({ draft }) => draft.texts.frontier },
  output: { type: "json", of: ({ draft }) => draft.texts.output },
  error: { type: "json", of: ({ draft }) => draft.texts.error },
  cancellation: { type: "json", of: ({ draft }) => draft.texts.cancellation },
  compensation: { type: "json", of: ({ draft }) => draft.texts.compensation },
  started_at: { type: "timestamptz", of: ({ draft }) => draft.next.startedAt },
  completed_at: { type: "timestamptz", of: ({ draft }) => draft.next.completedAt },
  signals: { type: "json", of: ({ draft }) => draft.texts.signals },
  changes: { type: "json", of: ({ draft }) => draft.texts.changes },
  entries: { type: "json", of: ({ draft }) => draft.texts.entries },
});
