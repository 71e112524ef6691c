import type { Snapshot } from "../state/snapshot.ts";
import type { Evidence, Finding, MadeCommit, Repair } from "./evidence.ts";
import { timesOutOfOrder } from "./late.ts";
import { applyHistory, replay } from "./replay.ts";
import type { Replay, Replayed } from "./replay.ts";
import { sameStored } from "./same.ts";

/**
 * The instance's row against its history. Three ways lead to the state: what is stored, the changes,
 * and the signals. Two that agree say which is the damaged one.
 */

/** What the other checks hold the rows against. */
export interface Truth {
  /** Undefined where nothing can be trusted to say what the instance is. */
  readonly snapshot: Snapshot | undefined;
  /** Undefined where the history does not lead to `snapshot`, or cannot be decided upon again. */
  readonly replayed: Replayed | undefined;
}

export interface CheckedHistory {
  readonly findings: readonly Finding[];
  readonly truth: Truth;
}

export function* checkHistory(evidence: Evidence): Generator<void, CheckedHistory, void> {
  const { history, version, snapshot: stored } = evidence;
  if (history === undefined) {
    const findings = stored === undefined ? [unreadable()] : [];
    return { findings, truth: { snapshot: stored, replayed: undefined } };
  }
  const gap = gapOf(evidence);
  if (gap !== undefined) {
    const findings = stored === undefined ? [gap, unreadable()] : [gap];
    return { findings, truth: { snapshot: stored, replayed: undefined } };
  }
  const identity = { ...evidence.identity, createdAt: evidence.bornAt };
  const changed = applyHistory(identity, history);
  const replayed = yield* replayOf({ ...evidence, identity });
  const signalled = replayed?.kind === "replayed" ? replayed.replayed.snapshot : undefined;
  const findings: Finding[] = [];
  const ahead = changed !== undefined && changed.version !== version;
  const current = stored && { ...stored, version: changed?.version ?? version };
  const isStored = (other: Snapshot | undefined) =>
    current !== undefined && other !== undefined && differences(current, other).length === 0;

  if (changed !== undefined && isCutOff(evidence, changed.version, isStored(changed))) {
    const cut = missingVersion(changed.version + 1, version);
    const found = stored === undefined ? [cut, unreadable()] : [cut];
    return { findings: found, truth: { snapshot: stored, replayed: undefined } };
  }
  const agree =
    changed !== undefined &&
    signalled !== undefined &&
    differences(changed, signalled).length === 0;
  if (current === undefined) {
    findings.push(unreadable(changed));
  } else if (isStored(changed)) {
    if (ahead && changed !== undefined) findings.push(versionDiffers(version, changed));
  } else if (!isStored(signalled) && changed !== undefined) {
    findings.push(snapshotDiffers(current, changed, agree));
  }
  findings.push(...replayFindings(replayed, isStored(signalled) && !isStored(changed)));
  const snapshot = agree || current === undefined ? (changed ?? current) : current;
  const trusted = replayed?.kind === "replayed" && (agree || isStored(signalled));
  return {
    findings,
    truth: { snapshot, replayed: trusted ? replayed.replayed : undefined },
  };
}

/** Not by times that cannot be right, nor by another input: deadlines, keys and the rest would follow from them. */
function* replayOf(evidence: Evidence): Generator<void, Replay | undefined, void> {
  const { definition, identity, history = [], steps, isAsGiven } = evidence;
  if (definition === undefined || !isAsGiven || timesOutOfOrder(evidence).length > 0) {
    return undefined;
  }
  const outputs = new Map(steps.map((row) => [`${row.path}#${row.iteration}`, row.output]));
  return yield* replay(definition, identity, history, (key) => outputs.get(key) ?? null);
}

/** The first version that is missing between 1 and the instance's own. */
function gapOf({ history = [], version }: Evidence): Finding | undefined {
  const missing = history.findIndex((commit, index) => commit.version !== index + 1);
  if (missing >= 0 || history.length === 0) {
    return missingVersion(Math.max(missing, 0) + 1, version);
  }
  return undefined;
}

/**
 * Whether the latest commits are missing, so that the history leads to what the instance was before them:
 * nothing may be rebuilt from it. Where only the number of the version was raised, the rest of the row is
 * as the last commit left it.
 */
function isCutOff(
  { version, updatedAt, history = [] }: Evidence,
  lastVersion: number,
  isStored: boolean,
): boolean {
  const lastAt = history.at(-1)?.at.getTime() ?? 0;
  return lastVersion < version && !(isStored && updatedAt.getTime() <= lastAt);
}

function missingVersion(first: number, version: number): Finding {
  const message = `version ${first} of ${version} is missing in the history`;
  return { code: "HISTORY_GAP", message, where: { version: first } };
}

function unreadable(rebuilt?: Snapshot): Finding {
  const repair: Repair | undefined = rebuilt && { kind: "rebuild", snapshot: rebuilt };
  return {
    code: "SNAPSHOT_UNREADABLE",
    message: "the stored state has not the form of one",
    where: {},
    ...(repair && { repair }),
  };
}

function versionDiffers(version: number, rebuilt: Snapshot): Finding {
  return {
    code: "VERSION_DIFFERS",
    message: `the instance is at version ${version}, and its last commit made version ${rebuilt.version}`,
    where: { version },
    repair: { kind: "rebuild", snapshot: rebuilt },
  };
}

function snapshotDiffers(stored: Snapshot, rebuilt: Snapshot, isCertain: boolean): Finding {
  const fields = differences(stored, rebuilt);
  const told = fields.map(
    (field) => `${field} is ${shown(stored[field])}, by the history ${shown(rebuilt[field])}`,
  );
  return {
    code: "SNAPSHOT_DIFFERS",
    message: told.join("; "),
    where: {},
    ...(isCertain && { repair: { kind: "rebuild", snapshot: rebuilt } }),
  };
}

function differences(one: Snapshot, other: Snapshot): readonly (keyof Snapshot)[] {
  const fields = Object.keys(other) as (keyof Snapshot)[];
  return fields.filter((field) => !sameStored(one[field], other[field]));
}

const mostShown = 120;

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? "nothing";
  return text.length <= mostShown ? text : `${text.slice(0, mostShown)}…`;
}

function replayFindings(
  replayed: Replay | undefined,
  changesAreWrong: boolean,
): readonly Finding[] {
  if (replayed?.kind === "failed") {
    const { version, message } = replayed;
    const said = `the signals of version ${version} cannot be decided upon again: ${message}`;
    return [{ code: "REPLAY_DIFFERS", message: said, where: { version } }];
  }
  if (replayed?.kind !== "replayed") return [];
  const { otherChanges, otherEntries } = replayed;
  const [change] = otherChanges;
  if (change !== undefined) {
    const { version } = change;
    if (changesAreWrong) return [historyDiffers("changes", otherChanges)];
    const message = `the signals of version ${version} lead to other changes than those stored with it`;
    return [{ code: "REPLAY_DIFFERS", message, where: { version } }];
  }
  return otherEntries.length === 0 ? [] : [historyDiffers("entries", otherEntries)];
}

/** The signals lead to what the instance is: they say what should stand beside them. */
function historyDiffers(what: "changes" | "entries", commits: readonly MadeCommit[]): Finding {
  const version = commits[0]?.version ?? 0;
  const more = commits.length > 1 ? `, and of ${commits.length - 1} later ones,` : "";
  return {
    code: "HISTORY_DIFFERS",
    message: `the ${what} stored with version ${version}${more} are not what its signals lead to`,
    where: { version },
    repair: { kind: "restoreHistory", commits },
  };
}
