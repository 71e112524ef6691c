import type { Db } from "../statement.ts";
import type { Draft } from "./draft.ts";
import { ownedSource } from "./parameters.ts";
import type { From } from "./parameters.ts";

/** In one order, since these rows are what batches of different instances have in common. */
export function insertShapes(from: From): string {
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

export const waitShapes = ownedSource<Shape>({
  shape_tenant_id: { type: "text", of: ({ tenantId }) => tenantId },
  pattern: { type: "text", of: ({ pattern }) => pattern },
  event_paths: { type: "text", of: ({ eventPaths }) => eventPaths },
});

/** Shapes that this process does not know to exist. They are never deleted, so knowing is for ever. */
export function newShapes(
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
