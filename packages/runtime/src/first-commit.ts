import { createSnapshot } from "@millrace/engine";
import type { Definition, NewInstance } from "@millrace/engine";
import type { Commit, Db } from "@millrace/store";
import { decideLoading } from "./advance.ts";
import type { Services } from "./services.ts";

export interface NewStart extends Pick<Commit, "signals" | "at" | "actor" | "received"> {
  readonly instance: NewInstance;
  readonly create: NonNullable<Commit["create"]>;
}

/** The commit that creates an instance. Of what it is not stored of yet, only calendars can be read. */
export async function firstCommit(
  { limits }: Pick<Services, "limits">,
  db: Db,
  definition: Definition,
  { instance, ...start }: NewStart,
): Promise<Commit> {
  const previous = createSnapshot(definition, instance);
  const key = { tenantId: instance.tenantId, instanceId: instance.id };
  const isOld = limits.refresh(db);
  if (isOld !== undefined) await isOld;
  const noted = limits.noteFor(definition, previous, start.signals);
  const { at } = start;
  const signals = noted === undefined ? start.signals : [noted, ...start.signals];
  const { answer: decision } = await decideLoading(db, key, definition, previous, signals, at);
  return { previous, decision, holds: [], carry: [], ...start, signals };
}
