import type { Definition, Signal, Snapshot } from "@millrace/engine";
import { isTerminal } from "@millrace/engine";
import {
  limitSetOf,
  limitsOfSet,
  loadLimits,
  typeLimitKey,
  userLimitKey,
  userOfLimit,
  workflowOfLimit,
} from "@millrace/store";
import type { Db, LimitRef, LimitsSet, StoredLimit } from "@millrace/store";

/**
 * The limits that are set through the API, as every process has them at hand: which of them concern an instance is
 * asked at each of its commits, and must cost nothing where there are none. What is at hand is a second old at most.
 */
export interface LimitCache {
  /**
   * Sees to it that what is at hand is so young.
   *
   * @param db What the caller is at: who holds a connection waits for no other one.
   * @returns Undefined where nothing is to be waited for.
   */
  refresh(db: Db): Promise<void> | undefined;
  /** The same, whatever their age. */
  reload(db: Db): Promise<void>;
  get(limit: LimitRef): StoredLimit | undefined;
  /**
   * What is to be noted by an instance before anything else is decided about it.
   *
   * @returns Undefined where it knows its limits, as nearly always.
   */
  noteFor(
    definition: Definition,
    snapshot: Snapshot,
    signals: readonly Signal[],
  ): LimitsNoted | undefined;
  /** Whether one of its limits that were set has a `maxQueued`. */
  areBounded(snapshot: Snapshot): boolean;
  /** By whose limits there may be instances which do not know of them. */
  tenants(): readonly LimitsSet[];
  /** There is a limit of all tenants together. */
  readonly hasGlobal: boolean;
  /** Another one with each change. */
  readonly revision: string | undefined;
}

type LimitsNoted = Extract<Signal, { readonly kind: "limitsNoted" }>;

/** Whose the global limit is. */
export const globalTenant = "default";
export const globalLimit: LimitRef = { tenantId: globalTenant, limitKey: "global" };

const maxAgeMs = 1_000;

export function openLimitCache(pool: Db): LimitCache {
  let revision: string | undefined;
  let known: ReadonlyMap<string, ReadonlyMap<string, StoredLimit>> = new Map();
  let hasGlobal = false;
  let loadedAt = Number.NEGATIVE_INFINITY;
  let loading: Promise<void> | undefined;

  async function load(db: Db): Promise<void> {
    const askedAt = performance.now();
    const loaded = await loadLimits(db, revision);
    // Of two that ask at once the later answer may be the older one.
    if (loaded !== undefined && isLater(loaded.revision, revision)) {
      revision = loaded.revision;
      known = byTenant(loaded.limits);
      hasGlobal = get(globalLimit) !== undefined;
    }
    loadedAt = Math.max(loadedAt, askedAt);
  }

  function reload(db: Db): Promise<void> {
    if (db !== pool) return load(db);
    loading ??= load(db).finally(() => {
      loading = undefined;
    });
    return loading;
  }

  function get({ tenantId, limitKey }: LimitRef): StoredLimit | undefined {
    return known.get(tenantId)?.get(limitKey);
  }

  /** Keys, the widest first, joined by spaces; null: as the definition says. */
  function limitsOf({ concurrency }: Definition, instance: Snapshot): string | null {
    const { tenantId, workflowId, userId } = instance;
    const own = known.get(tenantId);
    if (own === undefined && !hasGlobal) return null;
    const typeKey = typeLimitKey(workflowId);
    const userKey = userId === null ? undefined : userLimitKey(userId);
    const keys = [
      ...(hasGlobal ? [globalLimit.limitKey] : []),
      ...(own?.has("tenant") === true ? ["tenant"] : []),
      ...(concurrency !== undefined || own?.has(typeKey) === true ? [typeKey] : []),
      ...(userKey !== undefined && own?.has(userKey) === true ? [userKey] : []),
    ];
    const isDefinitions = concurrency !== undefined && keys.length === 1;
    return keys.length === 0 || isDefinitions ? null : keys.join(" ");
  }

  return {
    refresh: (db) => (performance.now() - loadedAt < maxAgeMs ? undefined : reload(db)),
    // Whoever has changed something wants to see that, not what was being read before.
    reload: async (db) => {
      await loading?.catch(() => undefined);
      await reload(db);
    },
    get,
    noteFor(definition, snapshot, signals) {
      if (known.size === 0 && snapshot.limits === null) return undefined;
      const isOver = isTerminal(snapshot.status);
      if (isOver && !signals.some(({ kind }) => kind === "retryRequested")) return undefined;
      const limits = limitsOf(definition, snapshot);
      if (limits === snapshot.limits) return undefined;
      // It would stay limited (`noteLimits` of the engine).
      const isFreed = limits === null && definition.concurrency === undefined;
      if (isFreed && (snapshot.slot !== null || snapshot.status === "PAUSED")) return undefined;
      return { kind: "limitsNoted", limits };
    },
    areBounded: (snapshot) =>
      limitsOfSet(limitSetOf(snapshot)).some((limitKey) => {
        const { tenantId } = snapshot;
        const limit = limitKey === globalLimit.limitKey ? globalLimit : { tenantId, limitKey };
        return (get(limit)?.maxQueued ?? null) !== null;
      }),
    tenants: () =>
      [...known].map(([tenantId, limits]) => ({
        tenantId,
        isGlobal: hasGlobal,
        isTenant: limits.has("tenant"),
        workflowIds: [...limits.keys()].flatMap((key) => workflowOfLimit(key) ?? []),
        userIds: [...limits.keys()].flatMap((key) => userOfLimit(key) ?? []),
      })),
    get hasGlobal() {
      return hasGlobal;
    },
    get revision() {
      return revision;
    },
  };
}

function isLater(one: string, other: string | undefined): boolean {
  return other === undefined || BigInt(one) > BigInt(other);
}

function byTenant(
  limits: readonly StoredLimit[],
): ReadonlyMap<string, ReadonlyMap<string, StoredLimit>> {
  const tenants = new Map<string, Map<string, StoredLimit>>();
  for (const limit of limits) {
    const own = tenants.get(limit.tenantId) ?? new Map<string, StoredLimit>();
    own.set(limit.limitKey, limit);
    tenants.set(limit.tenantId, own);
  }
  return tenants;
}
