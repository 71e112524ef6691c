import type { Json } from "@millrace/expressions";
import { mergePatch } from "../decide/patch.ts";
import { engineRev } from "../rev.ts";
import type { StoredSignal } from "../state/stored-signal.ts";
import type { Truth } from "./check-history.ts";
import type { CommitEvidence, Evidence, Finding } from "./evidence.ts";
import { sameStored } from "./same.ts";

/**
 * What was asked of an instance from outside is in the signals, to the letter: by whom, and what was
 * changed beside the state that is decided upon. Where the signals do not lead to that state they may be what is
 * damaged: what differs is told, and nothing is written over.
 */

/** Who stands beside a commit is who its signal says. */
export function checkActors({ history = [] }: Evidence, { replayed }: Truth): readonly Finding[] {
  const wrong = history.flatMap((commit) => {
    const actor = actorOf(commit);
    return actor === undefined || actor === commit.actor ? [] : { ...commit, actor };
  });
  return wrong.map(({ version, actor }) => {
    const stored = history[version - 1]?.actor;
    return {
      code: "HISTORY_DIFFERS",
      message: `version ${version} is stored as made by ${JSON.stringify(stored)}, and its signal says ${JSON.stringify(actor)}`,
      where: { version },
      ...(replayed !== undefined && {
        repair: { kind: "restoreActors", commits: [{ version, actor }] },
      }),
    };
  });
}

/** Undefined where no signal says so. What a parent asks for is committed by whoever brings it. */
function actorOf(commit: CommitEvidence): string | undefined {
  if (commit.engineRev !== engineRev) return undefined;
  const said = signalsOf(commit).flatMap((signal) => {
    const isParents = "source" in signal && signal.source === "PARENT";
    return "actor" in signal && typeof signal.actor === "string" && !isParents ? signal.actor : [];
  });
  return said.at(0);
}

/** What is damaged may be no list, and hold anything. */
function signalsOf({ signals }: CommitEvidence): readonly StoredSignal[] {
  if (!Array.isArray(signals)) return [];
  return signals.filter(
    (signal): signal is StoredSignal => typeof signal === "object" && signal !== null,
  );
}

/** What operators have changed of it is as the last of them left it. */
export function checkPatched(evidence: Evidence, { replayed }: Truth): readonly Finding[] {
  const { deadline, metadata, version, identity, isAsGiven, history } = evidence;
  if (history === undefined || history.length !== version) return [];
  const patches = patchesIn(history);
  // Nobody has given it any: it was started by an event.
  const isBare = isAsGiven && identity.startEventId !== null;
  const dated = patches.findLast(({ deadline: said }) => said === null || isTime(said));
  const due = dated?.["deadline"] ?? null;
  const wrongDeadline =
    (dated !== undefined || isBare) && !isSameTime(due, deadline)
      ? { deadline: typeof due === "string" ? new Date(due) : null }
      : {};
  // What was there before the first patch nobody knows: what they leave alone stays.
  const made = patches
    .filter(({ metadata: said }) => typeof said === "object" && !Array.isArray(said))
    .reduce<Json>(
      (before, patch) => mergePatch(before, patch["metadata"] ?? null),
      isBare ? null : metadata,
    );
  const wrong = { ...wrongDeadline, ...(!sameStored(made, metadata) && { metadata: made }) };
  const names = Object.keys(wrong);
  if (names.length === 0 && deadline === undefined) return [lostDeadline];
  if (names.length === 0) return [];
  return [
    {
      code: "SNAPSHOT_DIFFERS",
      message: `${names.join(" and ")} of the instance ${names.length > 1 ? "are" : "is"} not what was last asked for, by the history`,
      where: {},
      ...(replayed !== undefined && { repair: { kind: "restorePatched", ...wrong } }),
    },
  ];
}

/** What it was given at its start stands nowhere else. */
const lostDeadline: Finding = {
  code: "SNAPSHOT_DIFFERS",
  message:
    "deadline of the instance is no time that can be asked for (infinity, or beyond the years 1 to 9999), and the one that it was started with is not in the history: PATCH it",
  where: {},
};

function patchesIn(history: readonly CommitEvidence[]): readonly Readonly<Record<string, Json>>[] {
  return history
    .flatMap(signalsOf)
    .flatMap((signal) => (signal.kind === "variablesPatched" ? [signal.others ?? {}] : []));
}

/** What is damaged may be no time. */
function isTime(said: Json | undefined): boolean {
  return typeof said === "string" && !Number.isNaN(Date.parse(said));
}

function isSameTime(one: Json, other: Date | null | undefined): boolean {
  if (typeof one !== "string" || !other) return one === other;
  return new Date(one).getTime() === other.getTime();
}
