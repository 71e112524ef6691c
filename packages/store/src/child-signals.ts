import type { Key, ReceivedSignal } from "./commit.ts";
import { parseJson } from "./json.ts";
import type { Json } from "./json.ts";
import { prepared, run } from "./statement.ts";
import type { Db } from "./statement.ts";
import { rowSource } from "./unnest.ts";
import { receivedOf, toldBodyOf } from "./told-body.ts";
import type { ChildSignalBody, ToldRow } from "./told-body.ts";
import { lookAgain } from "./unstarted-children.ts";

/** What parents and children have told each other, until the receiver has taken note of it. */

/** What a child or a parent has told an instance. */
export interface ChildSignal extends ReceivedSignal {
  readonly path: string;
  readonly iteration: number;
  readonly attempt: number;
  readonly body: ChildSignalBody;
  /** Of a child that completed. */
  readonly output: Json;
}

/** In the order in which they were sent, at most so many. What cannot be read is passed over: `mendTold`. */
export async function loadChildSignals(
  db: Db,
  key: Key,
  limit: number,
): Promise<readonly ChildSignal[]> {
  const rows = await run<ChildSignalRow>(db, signalsFor, [key.tenantId, key.instanceId, limit]);
  return rows.flatMap((row) => {
    const body = toldBodyOf(row);
    if (body === undefined) return [];
    const { path, iteration, attempt } = row;
    return {
      ...receivedOf(row),
      path,
      iteration,
      attempt,
      body,
      output: parseJson(row.output) ?? null,
    };
  });
}

interface ChildSignalRow extends ToldRow {
  readonly path: string;
  readonly iteration: number;
  readonly attempt: number;
  readonly output: string | null;
}

/** Nothing leaves COMPLETED: the output is still that of the end that is told of. */
const signalsFor = prepared(
  "child_signals_for",
  `select k.kind, k.child_id, k.sent_version, k.path, k.iteration, k.attempt, k.body,
    i.output
  from child_signals k
  left join workflow_instances i on k.kind = 'END' and i.tenant_id = k.tenant_id
    and i.id = k.child_id
  where k.tenant_id = $1 and k.instance_id = $2
  order by k.sent_at, k.kind, k.child_id
  limit $3`,
);

/** Who has been told something. */
export interface Receiver extends Key {
  readonly kind: ReceivedSignal["kind"];
  readonly childId: string;
  readonly sentAt: Date;
}

/** What nobody has seen to in time; each is asked for again after a while. */
export async function takeChildSignals(db: Db, limit: number): Promise<readonly Receiver[]> {
  const rows = await run<
    Pick<ToldRow, "kind" | "child_id"> & {
      readonly tenant_id: string;
      readonly instance_id: string;
      readonly sent_at: Date;
    }
  >(db, leftSignals, [limit]);
  return rows.map((row) => ({
    tenantId: row.tenant_id,
    instanceId: row.instance_id,
    kind: row.kind === "CANCEL" ? "CANCEL" : "END",
    childId: row.child_id,
    sentAt: row.sent_at,
  }));
}

const leftSignals = prepared(
  "left_child_signals",
  `with due as materialized (
    select k.tenant_id, k.instance_id, k.kind, k.child_id, k.sent_version from child_signals k
    where k.look_at <= statement_timestamp()
    order by k.look_at
    limit $1
    for update skip locked)
  update child_signals k set look_at = statement_timestamp() + ${lookAgain("k.sent_at")}
  from due x
  where k.tenant_id = x.tenant_id and k.instance_id = x.instance_id and k.kind = x.kind
    and k.child_id = x.child_id and k.sent_version = x.sent_version
  returning k.tenant_id, k.instance_id, k.kind, k.child_id, k.sent_at`,
);

/** Takes away what was void when it came. */
export async function deleteChildSignals(
  db: Db,
  key: Key,
  signals: readonly ReceivedSignal[],
): Promise<void> {
  await run(db, remove, [key.tenantId, key.instanceId, ...receivedSource.values(signals)]);
}

const receivedSource = rowSource<ReceivedSignal>({
  kind: { type: "text", of: ({ kind }) => kind },
  child_id: { type: "uuid", of: ({ childId }) => childId },
  sent_version: { type: "integer", of: ({ sentVersion }) => sentVersion },
});

const remove = prepared(
  "delete_child_signals",
  `delete from child_signals k using ${receivedSource.from("x", 3)}
  where k.tenant_id = $1 and k.instance_id = $2 and k.kind = x.kind and k.child_id = x.child_id
    and k.sent_version = x.sent_version`,
);
