import { createSnapshot, decide, isNeeds, noReads } from "@millrace/engine";
import type { Definition, NewInstance } from "@millrace/engine";
import type { Commit } from "@millrace/store";

export interface NewStart extends Pick<Commit, "signals" | "at" | "actor" | "received"> {
  readonly instance: NewInstance;
  readonly create: NonNullable<Commit["create"]>;
}

/** The commit that creates an instance. */
export function firstCommit(definition: Definition, { instance, ...start }: NewStart): Commit {
  const previous = createSnapshot(definition, instance);
  const decision = decide(definition, previous, start.signals, noReads, start.at);
  if (isNeeds(decision)) throw new Error("a start reads no step rows");
  return { previous, decision, holds: [], carry: [], ...start };
}
