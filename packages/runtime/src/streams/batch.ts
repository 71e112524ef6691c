import { isTransient } from "@millrace/store";
import type { StreamEvent } from "./stream-event.ts";

/** What those who follow are given, one of all instances or of one alike. */

/** An event, and the place behind it. */
export interface Told<Place> {
  readonly event: StreamEvent;
  readonly place: Place;
}

/** What is told at once: nothing, at the beginning and where some time has passed without news. */
export interface Batch<Place> {
  readonly told: readonly Told<Place>[];
  /** Where to go on. */
  readonly place: Place;
}

export interface FollowOptions<Place> {
  /** Absent: an instance from its beginning, all of them from now on. */
  readonly after?: Place | undefined;
  readonly signal: AbortSignal;
}

/** Commits of all that are read at once. */
export const pageSize = 100;
/** Commits of one instance that are read at once, by each who follows it: those of a MAP have many entries. */
export const commitsAtOnce = 25;
/** Events after which what was read is handed on: text of some 50 KB, and it may lie there for a slow reader. */
export const mostTold = 100;
/** The longest that one who follows hears nothing: proxies cut what is silent. */
export const silentMs = 15_000;
/** Between looks at a database that is away. */
export const againMs = 1_000;

/** What was read; undefined while the database is away: who follows waits, as for news. */
export async function unlessAway<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading;
  } catch (error) {
    if (isTransient(error)) return undefined;
    throw error;
  }
}
