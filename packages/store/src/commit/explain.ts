import type { CommitOutcome } from "../commit.ts";
import type { Draft } from "./draft.ts";
import { isPaused } from "../paused-queues.ts";
import { prepared, run, type Db } from "../statement.ts";
import { rowSource } from "../unnest.ts";
import { openParameters, own, ownedSource, samePlace } from "./parameters.ts";
import type { Owned } from "./parameters.ts";

/**
 * Why a commit was not written. It is asked in a statement of its own, after the fact, for what the
 * hot statement left out: almost always nothing.
 *
 * - It has been written: the history has this very commit at its version. Its first answer was lost.
 * - A hold is lost. That stays so: a row never comes back to a fence, since each claim raises it.
 * - The queue of a step that it carries is paused.
 * - Otherwise somebody else was first, or had a row locked.
 */
export async function explainCommits(
  db: Db,
  drafts: readonly Draft[],
): Promise<readonly CommitOutcome[]> {
  const parameters = openParameters(drafts);
  const commits = parameters.add(identities);
  const holds = parameters.addRows(heldSteps, ({ commit }) => commit.holds);
  const lost = holds
    ? `exists (select from ${holds("x")} where x.ix = c.ix and not exists (
        select from step_executions s where ${samePlace("s", holds)} and s.status = 'RUNNING'
          and s.fence = x.fence and s.worker_id = x.worker_id))`
    : "false";
  const carried = parameters.addRows(carriedSteps, ({ inserts }) =>
    inserts.filter(({ carry }) => carry !== undefined),
  );
  const paused = carried
    ? `exists (select from ${carried("x")} where x.ix = c.ix and ${isPaused("x.queue")})`
    : "false";
  const { text, values } = parameters.statement(
    "explain_commit",
    () =>
      `select ${isMine("c")} as mine, ${lost} as lost, ${paused} as paused
      from ${commits("c")} order by c.ix`,
  );
  const rows = await run<{ mine: boolean; lost: boolean; paused: boolean }>(db, text, values);
  return drafts.map(({ version }, index): CommitOutcome => {
    const row = rows[index];
    if (row?.mine === true) return { kind: "committed", version: version + 1 };
    if (row?.lost === true) return { kind: "void" };
    return { kind: row?.paused === true ? "queuePaused" : "conflict" };
  });
}

/** The same for first commits: the idempotency key may belong to another instance. */
export async function explainCreates(
  db: Db,
  drafts: readonly Draft[],
): Promise<readonly CommitOutcome[]> {
  const source = rowSource<Owned<undefined>>({
    ...identityColumns,
    key: { type: "text", of: ({ draft }) => draft.commit.create?.idempotency?.key },
  });
  const rows = await run<{ mine: boolean; instance_id: string | null; body_hash: string | null }>(
    db,
    prepared(
      "explain_create",
      `select ${isMine("c")} as mine, k.instance_id, k.body_hash
      from ${source.from("c", 1)}
      left join idempotency_keys k on k.tenant_id = c.tenant_id and k.key = c.key
      order by c.ix`,
    ),
    source.values(own(drafts)),
  );
  return drafts.map(({ version }, index): CommitOutcome => {
    const row = rows[index];
    if (row?.mine === true) return { kind: "committed", version: version + 1 };
    if (row?.instance_id == null || row.body_hash === null) return { kind: "conflict" };
    return { kind: "idempotent", instanceId: row.instance_id, bodyHash: row.body_hash };
  });
}

function isMine(alias: string): string {
  return `exists (
    select from history h
    where h.tenant_id = ${alias}.tenant_id and h.instance_id = ${alias}.instance_id
      and h.version = ${alias}.version + 1 and h.commit_id = ${alias}.commit_id)`;
}

const identityColumns = {
  ix: { type: "integer", of: ({ ix }: Owned<undefined>) => ix },
  tenant_id: { type: "text", of: ({ draft }: Owned<undefined>) => draft.tenantId },
  instance_id: { type: "uuid", of: ({ draft }: Owned<undefined>) => draft.instanceId },
  version: { type: "integer", of: ({ draft }: Owned<undefined>) => draft.version },
  commit_id: { type: "uuid", of: ({ draft }: Owned<undefined>) => draft.commitId },
} as const;

const identities = rowSource<Owned<undefined>>(identityColumns);

const carriedSteps = ownedSource<Draft["inserts"][number]>({
  queue: { type: "text", of: ({ row }) => row.queue },
});

const heldSteps = ownedSource<Draft["commit"]["holds"][number]>({
  path: { type: "text", of: ({ path }) => path },
  iteration: { type: "integer", of: ({ iteration }) => iteration },
  fence: { type: "integer", of: ({ fence }) => fence },
  worker_id: { type: "uuid", of: ({ workerId }) => workerId },
});
