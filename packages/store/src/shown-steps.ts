import { keySource } from "./load.ts";

/** Which executions are shown with their instance. */

/**
 * Items of one MAP that are shown with their instance of those that are live, of those that failed, and
 * of the others: the last so many in the order of their paths. `listSteps` has all of them.
 */
const mostItems = 100;

/** The outermost MAP around an item's path and its bracket; empty for the path of no item. */
const mapOf = (path: string) => `left(${path}, strpos(${path}, '['))`;

/**
 * The latest execution of each path, by hopping backwards through the primary key from path to path:
 * a loop of ten thousand passes costs as much as one. After so many items of a MAP it leaps over the
 * rest of them, since all below a MAP is one range of the key.
 */
export const latestPaths = `latest as (
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
export const liveItems = `live_items as (
    select i.tenant_id, i.id as instance_id,
      regexp_replace(k.key, '#[0-9]+$', '') collate "C" as path,
      substring(k.key, '[0-9]+$')::integer as iteration
    from ${keySource.from("x", 1)}
    join workflow_instances i on i.tenant_id = x.tenant_id and i.id = x.instance_id
    cross join lateral (
      select key from json_object_keys(i.snapshot -> 'live') key
      where strpos(key, '[') > 0 limit ${mostItems}) k)`;

/** By an index of their own. */
export const failedItems = `failed_items as (
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

/** Of each step in items the execution entered last, from step to step through an index of their own. */
export const lastEntered = `last_entered as (
    select s.*
    from ${keySource.from("x", 1)}
    cross join lateral (
      select s.tenant_id, s.instance_id, s.path, s.iteration, s.step_id from step_executions s
      where s.tenant_id = x.tenant_id and s.instance_id = x.instance_id and s.entry is not null
      order by s.step_id desc, s.entry desc limit 1) s
    union all
    select s.*
    from last_entered l
    cross join lateral (
      select s.tenant_id, s.instance_id, s.path, s.iteration, s.step_id from step_executions s
      where s.tenant_id = l.tenant_id and s.instance_id = l.instance_id and s.entry is not null
        and s.step_id < l.step_id
      order by s.step_id desc, s.entry desc limit 1) s)`;

export const shownPaths = `shown as (
    ${["latest", "live_items", "failed_items", "last_entered"]
      .map((part) => `select tenant_id, instance_id, path, iteration from ${part}`)
      .join(" union ")})`;
