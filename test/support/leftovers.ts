import { eventually } from "@millrace/testkit";
import type { Redis } from "ioredis";

/** The stores behind the product's back. */
export interface Stores {
  query<Row extends object>(text: string): Promise<Row[]>;
  withRedis<T>(use: (redis: Redis) => Promise<T>): Promise<T>;
}

export interface LeftoverOptions {
  /**
   * Whether the jobs of killed workers must be gone, too. BullMQ takes them up when their locks have
   * run out and two of its checks have passed, which takes the better part of a minute; one test waits
   * for that.
   */
  readonly alsoOfTheDead?: boolean;
}

/**
 * What must be gone once instances have ended, looked for behind the product's back: rows of waits,
 * timers and deliveries, live steps, halves of protocols, and jobs in Redis. An instance that has not
 * ended counts as left over too, unless it waits for something (P12).
 *
 * Rows go in the commit that ends the instance, and jobs when their worker has answered: there is
 * little to wait for.
 */
export async function expectNothingLeft(
  stores: Stores,
  { alsoOfTheDead = false }: LeftoverOptions = {},
): Promise<void> {
  let last: readonly string[] = [];
  const look = async (tolerated: (redis: Redis) => Promise<ReadonlySet<string>>) => {
    last = await leftovers(stores, tolerated);
    return last.length === 0;
  };
  const what = "nothing to be left of ended instances";
  await eventually(what, () => look(nothing), { timeoutMs: 3_000, intervalMs: 50 })
    .catch(async () => {
      await stores.withRedis(expireLocks);
      const tolerated = alsoOfTheDead ? nothing : activeJobs;
      return eventually(what, () => look(tolerated), { timeoutMs: 60_000, intervalMs: 200 });
    })
    .catch((cause: unknown) => {
      throw new Error(`left over:\n  ${last.slice(0, 20).join("\n  ")}`, { cause });
    });
}

const nothing = async (): Promise<ReadonlySet<string>> => new Set();

/** The keys of jobs that some worker took and never answered. */
async function activeJobs(redis: Redis): Promise<ReadonlySet<string>> {
  const lists = (await keysOf(redis)).filter((key) => key.endsWith(":active"));
  const keys: string[] = [];
  for (const list of lists) {
    const queue = list.slice(0, -":active".length);
    keys.push(list, `${queue}:stalled`);
    for (const id of await redis.lrange(list, 0, -1)) {
      keys.push(`${queue}:${id}`, `${queue}:${id}:lock`);
    }
  }
  return new Set(keys);
}

/** As if half a minute had passed. */
async function expireLocks(redis: Redis): Promise<void> {
  const locks = (await keysOf(redis)).filter((key) => key.endsWith(":lock"));
  if (locks.length > 0) await redis.unlink(...locks);
}

async function leftovers(
  stores: Stores,
  tolerated: (redis: Redis) => Promise<ReadonlySet<string>>,
): Promise<readonly string[]> {
  const rows = await stores.query<{ what: string }>(leftRows);
  const jobs = await stores.withRedis(async (redis) => {
    const allowed = await tolerated(redis);
    return (await leftJobs(redis)).filter((key) => !allowed.has(key));
  });
  return [...rows.map(({ what }) => what), ...jobs.map((key) => `the key ${key}`)];
}

const ended = `
  select tenant_id, id from workflow_instances
  where status in ('COMPLETED', 'FAILED', 'CANCELLED')
    and coalesce(compensation->>'status', '') <> 'IN_PROGRESS'`;

const leftRows = `
  with ended as (${ended})
  select 'wait ' || w.path || ' of ' || w.instance_id as what
    from waits w join ended e on (e.tenant_id, e.id) = (w.tenant_id, w.instance_id)
  union all
  select 'timer ' || t.kind || ' ' || t.path || ' of ' || t.instance_id
    from timers t join ended e on (e.tenant_id, e.id) = (t.tenant_id, t.instance_id)
  union all
  select 'delivery of ' || d.event_id || ' to ' || d.instance_id
    from event_deliveries d join ended e on (e.tenant_id, e.id) = (d.tenant_id, d.instance_id)
  union all
  select s.status || ' step ' || s.path || ' of ' || s.instance_id
    from step_executions s join ended e on (e.tenant_id, e.id) = (s.tenant_id, s.instance_id)
    where s.status in ('PENDING', 'RUNNING', 'WAITING', 'RETRYING')
  union all
  select 'held step ' || s.path || ' of ' || s.instance_id
    from step_executions s join ended e on (e.tenant_id, e.id) = (s.tenant_id, s.instance_id)
    where s.look_at is not null or s.due_at is not null
  union all
  select l.status || ' slot of ' || l.instance_id
    from limit_slots l join ended e on (e.tenant_id, e.id) = (l.tenant_id, l.instance_id)
  union all
  select 'unmatched event ' || id from events where matched_at is null
  union all
  select 'event not handed on ' || event_id from event_releases
  union all
  select 'child not started ' || path || ' of ' || instance_id
    from children where started_at is null
  union all
  select k.kind || ' of child ' || k.child_id || ' not taken note of' from child_signals k
  union all
  select 'wait not looked back ' || path || ' of ' || instance_id from waits where not looked_back
  union all
  select 'match not applied ' || path || ' of ' || instance_id
    from waits where matched_event_id is not null
  union all
  select i.status || ' instance ' || i.id from workflow_instances i
    where not exists (select from ended e where (e.tenant_id, e.id) = (i.tenant_id, i.id))
      and not (i.status = 'WAITING_FOR_EVENT' and (
        exists (select from waits w where (w.tenant_id, w.instance_id) = (i.tenant_id, i.id)
                  and w.purpose = 'STEP')
        or exists (select from timers t where (t.tenant_id, t.instance_id) = (i.tenant_id, i.id))))
`;

/** Jobs in whatever state. What a queue keeps of itself (`meta`, `marker`, a page of events) stays. */
async function leftJobs(redis: Redis): Promise<readonly string[]> {
  const own = ["meta", "events", "marker", "epoch", "id", "stalled-check"];
  return (await keysOf(redis)).filter((key) => !own.includes(key.split(":").at(-1) ?? ""));
}

async function keysOf(redis: Redis): Promise<readonly string[]> {
  const found: string[] = [];
  let cursor = "0";
  do {
    const [next, keys] = await redis.scan(cursor, "COUNT", 1_000);
    cursor = next;
    found.push(...keys);
  } while (cursor !== "0");
  return found;
}
