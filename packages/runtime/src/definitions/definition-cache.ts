import { compileDefinition } from "@millrace/engine";
import { checkOfStored } from "@millrace/input-schema";
import type { Definition } from "@millrace/engine";
import { getDefinition, latestVersion, versionAt } from "@millrace/store";
import type { Db } from "@millrace/store";
import { WorkflowNotFoundError } from "../errors.ts";
import { shareCalls } from "../share-calls.ts";
import { openSpacing } from "./spaced-checks.ts";
import type { CheckInTurn } from "./spaced-checks.ts";

/** A definition version, ready for use. */
export interface KnownDefinition {
  readonly definition: Definition;
  readonly checkInput: CheckInTurn;
}

export interface DefinitionCache {
  /** @throws WorkflowNotFoundError */
  get(tenantId: string, workflowId: string, version: number): Promise<KnownDefinition>;
  /** The version that a start without one gets. @throws WorkflowNotFoundError */
  latest(tenantId: string, workflowId: string): Promise<KnownDefinition>;
  /**
   * The version that was the latest when this process last asked. Whoever goes by it has it checked
   * where it matters (`ifLatest`), and asks `latest` where it is no longer so.
   *
   * @throws WorkflowNotFoundError
   */
  assumedLatest(tenantId: string, workflowId: string): Promise<KnownDefinition>;
  /** The version that was the latest at `at`, if there was one. @throws WorkflowNotFoundError */
  latestAt(tenantId: string, workflowId: string, at: Date): Promise<KnownDefinition>;
}

/** Compiled versions that are kept; a version never changes, so nothing else ends their life. */
const keptVersions = 1_000;

export function openDefinitionCache(db: Db): DefinitionCache {
  const known = new Map<string, Promise<KnownDefinition>>();
  const shareLatest = shareCalls<number | undefined>();
  const assumed = new Map<string, number>();
  const inTurn = openSpacing();

  function keep(key: string, make: () => Promise<KnownDefinition>): Promise<KnownDefinition> {
    const kept = known.get(key);
    if (kept !== undefined) return kept;
    const loading = make();
    known.set(key, loading);
    loading.catch(() => known.delete(key));
    for (const oldest of known.keys()) {
      if (known.size <= keptVersions) break;
      known.delete(oldest);
    }
    return loading;
  }

  async function load(tenantId: string, workflowId: string, version: number) {
    const stored = await getDefinition(db, tenantId, workflowId, version);
    if (stored === undefined) throw new WorkflowNotFoundError(workflowId, version);
    const { document } = stored;
    return {
      definition: compileDefinition(document, stored.version),
      checkInput: onFirstUse(() => inTurn(checkOfStored(document))),
    };
  }

  function get(tenantId: string, workflowId: string, version: number) {
    const key = JSON.stringify([tenantId, workflowId, version]);
    return keep(key, () => load(tenantId, workflowId, version));
  }

  async function latest(tenantId: string, workflowId: string) {
    const name = JSON.stringify([tenantId, workflowId]);
    const version = await shareLatest(name, () => latestVersion(db, tenantId, workflowId));
    if (version === undefined) throw new WorkflowNotFoundError(workflowId);
    if (assumed.size >= keptVersions) assumed.clear();
    assumed.set(name, version);
    return get(tenantId, workflowId, version);
  }

  return {
    get,
    latest,
    assumedLatest(tenantId, workflowId) {
      const version = assumed.get(JSON.stringify([tenantId, workflowId]));
      return version === undefined
        ? latest(tenantId, workflowId)
        : get(tenantId, workflowId, version);
    },
    async latestAt(tenantId, workflowId, at) {
      const name = JSON.stringify([tenantId, workflowId, at]);
      const version = await shareLatest(name, () => versionAt(db, tenantId, workflowId, at));
      if (version === undefined) throw new WorkflowNotFoundError(workflowId);
      return get(tenantId, workflowId, version);
    },
  };
}

/** Who only carries instances on compiles no schema. */
function onFirstUse(make: () => CheckInTurn): CheckInTurn {
  let check: CheckInTurn | undefined;
  return (input, mostWaitMs) => (check ??= make())(input, mostWaitMs);
}
