import type { StartListener, compileDefinition } from "@millrace/engine";
import { jsonText } from "./json.ts";
import { prepared, run, type Db } from "./statement.ts";
import { decodeCursor, encodeCursor, readPage } from "./cursor.ts";
import { replaceStartTriggers } from "./start-triggers.ts";
import type { JsonText } from "./tables.ts";
import { sharedTenant } from "./tenants.ts";

/**
 * Workflow definitions. A version, once it exists, never changes.
 *
 * A tenant's first own version counts on from the shared ones, so that an instance's version means the
 * same definition for as long as it runs.
 */

/** The document as registration has validated it. */
export type DefinitionDocument = Parameters<typeof compileDefinition>[0];

export interface NewDefinition {
  readonly tenantId: string;
  readonly id: string;
  readonly document: DefinitionDocument;
  readonly contentHash: string;
  readonly actor: string;
  /** What its start triggers listen to, from this version on. */
  readonly startTriggers?: readonly StartListener[];
}

export interface StoredDefinition {
  readonly tenantId: string;
  readonly id: string;
  readonly version: number;
  readonly contentHash: string;
  readonly document: DefinitionDocument;
  readonly createdAt: Date;
  readonly createdBy: string;
}

export interface RegisteredVersion {
  readonly version: number;
  readonly contentHash: string;
  /** False where the latest version had this content already. */
  readonly created: boolean;
}

/**
 * Stores the next version, unless the latest has the same content. Registrations of one id take turns
 * (an advisory lock), so that versions have no gaps and equal content comes once.
 */
export async function registerDefinition(
  db: Db,
  definition: NewDefinition,
): Promise<RegisteredVersion> {
  const { tenantId, id, document, contentHash, actor, startTriggers = [] } = definition;
  return db.transaction().execute(async (trx) => {
    await run(trx, "select pg_advisory_xact_lock(hashtextextended($1, 7))", [
      JSON.stringify(["definition", tenantId, id]),
    ]);
    const latest = await trx
      .selectFrom("workflow_definitions")
      .select(["tenant_id", "version", "content_hash"])
      .where("tenant_id", "in", [tenantId, sharedTenant])
      .where("id", "=", id)
      .orderBy((eb) => eb("tenant_id", "=", tenantId), "desc")
      .orderBy("version", "desc")
      .limit(1)
      .executeTakeFirst();
    if (latest?.tenant_id === tenantId && latest.content_hash === contentHash) {
      return { version: latest.version, contentHash, created: false };
    }
    const version = (latest?.version ?? 0) + 1;
    await trx
      .insertInto("workflow_definitions")
      .values({
        tenant_id: tenantId,
        id,
        version,
        content_hash: contentHash,
        document: jsonText(document),
        created_by: actor,
      })
      .execute();
    await replaceStartTriggers(trx, { tenantId, workflowId: id, version }, startTriggers);
    return { version, contentHash, created: true };
  });
}

/** The tenant's own, else the shared one. @param version Default: the latest. */
export async function getDefinition(
  db: Db,
  tenantId: string,
  id: string,
  version?: number,
): Promise<StoredDefinition | undefined> {
  const row = await db
    .selectFrom("workflow_definitions")
    .selectAll()
    .where("tenant_id", "in", [tenantId, sharedTenant])
    .where("id", "=", id)
    .$if(version !== undefined, (query) => query.where("version", "=", version ?? 0))
    .orderBy((eb) => eb("tenant_id", "=", tenantId), "desc")
    .orderBy("version", "desc")
    .limit(1)
    .executeTakeFirst();
  return row && definitionOf(row);
}

export async function latestVersion(
  db: Db,
  tenantId: string,
  id: string,
): Promise<number | undefined> {
  const [row] = await run<{ version: number }>(db, latest, [tenantId, id]);
  return row?.version;
}

/** The version that a start without one gets: the tenant's own before the shared one. SQL. */
export function latestVersionOf(tenantId: string, id: string): string {
  return `select version from workflow_definitions
  where tenant_id in (${tenantId}, '${sharedTenant}') and id = ${id}
  order by tenant_id = ${tenantId} desc, version desc limit 1`;
}

const latest = prepared("latest_version", latestVersionOf("$1", "$2"));

/** The version that was the latest at `at`; where there was none yet, the latest now. */
export async function versionAt(
  db: Db,
  tenantId: string,
  id: string,
  at: Date,
): Promise<number | undefined> {
  const [row] = await run<{ version: number }>(db, latestAt, [tenantId, id, at]);
  return row?.version;
}

const latestAt = prepared(
  "version_at",
  `select version from workflow_definitions
  where tenant_id in ($1, '${sharedTenant}') and id = $2
  order by created_at <= $3 desc, tenant_id = $1 desc, version desc limit 1`,
);

/** Every version of one definition, the latest first. */
export async function definitionVersions(
  db: Db,
  tenantId: string,
  id: string,
): Promise<readonly StoredDefinition[]> {
  const rows = await db
    .selectFrom("workflow_definitions")
    .selectAll()
    .where("tenant_id", "=", tenantId)
    .where("id", "=", id)
    .orderBy("version", "desc")
    .execute();
  return rows.map(definitionOf);
}

export interface DefinitionList {
  readonly items: readonly StoredDefinition[];
  readonly nextCursor: string | null;
}

/** The latest version of each definition, in order of their ids. @throws BadCursorError */
export async function listDefinitions(
  db: Db,
  tenantId: string,
  { limit, cursor }: { readonly limit: number; readonly cursor?: string | undefined },
): Promise<DefinitionList> {
  const [after = ""] = cursor === undefined ? [] : decodeCursor("definitions", cursor, 1);
  const rows = await readPage(cursor, () =>
    run<DefinitionRow>(db, list, [tenantId, after, limit + 1]),
  );
  const items = rows.slice(0, limit).map(definitionOf);
  const last = rows.length > limit ? items.at(-1) : undefined;
  return { items, nextCursor: last ? encodeCursor("definitions", [last.id]) : null };
}

const list = prepared(
  "list_definitions",
  `select distinct on (id) * from workflow_definitions
  where tenant_id = $1 and id > $2
  order by id, version desc
  limit $3`,
);

interface DefinitionRow {
  readonly tenant_id: string;
  readonly id: string;
  readonly version: number;
  readonly content_hash: string;
  readonly document: JsonText;
  readonly created_at: Date;
  readonly created_by: string;
}

function definitionOf(row: DefinitionRow): StoredDefinition {
  return {
    tenantId: row.tenant_id,
    id: row.id,
    version: row.version,
    contentHash: row.content_hash,
    document: JSON.parse(row.document) as DefinitionDocument,
    createdAt: row.created_at,
    createdBy: row.created_by,
  };
}
