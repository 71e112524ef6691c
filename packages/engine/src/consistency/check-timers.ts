import { isUnheldTimer } from "../decide/set-timers.ts";
import type { Command } from "../state/decision.ts";
import type { Snapshot, TimerKind } from "../state/snapshot.ts";
import type { Truth } from "./check-history.ts";
import type { Evidence, Finding, Repair, TimerEvidence } from "./evidence.ts";
import { lateMs, skewMs } from "./late.ts";
import { timerKey } from "./replay.ts";

type SetTimer = Extract<Command, { kind: "setTimer" }>;

interface Clock {
  readonly timer: TimerKind;
  readonly path: string;
  readonly iteration: number;
}

/** The stored timers against the clocks that the instance has running. */
export function checkTimers(
  { timers, now }: Evidence,
  { snapshot, replayed }: Truth,
): readonly Finding[] {
  if (snapshot === undefined) return [];
  const stored = new Set(
    timers.map(({ kind, path, iteration }) => timerKey(kind, path, iteration)),
  );
  const running = new Map(
    clocksOf(snapshot).map((clock) => [timerKey(clock.timer, clock.path, clock.iteration), clock]),
  );
  const missing = [...running].flatMap(([key, clock]) =>
    stored.has(key) ? [] : [missingTimer(snapshot, clock, replayed?.timers.get(key))],
  );
  const found = timers.flatMap((timer) => {
    const key = timerKey(timer.kind, timer.path, timer.iteration);
    if (!running.has(key)) return [stray(timer)];
    return checkTimer(snapshot, timer, replayed?.timers.get(key), now) ?? [];
  });
  return [...missing, ...found];
}

function clocksOf({ live, timers }: Snapshot): readonly Clock[] {
  return [
    ...timers.map((timer) => ({ timer, path: "", iteration: 0 })),
    ...Object.values(live).flatMap(({ path, iteration, timers: own }) =>
      own.map((timer) => ({ timer, path, iteration })),
    ),
  ];
}

function placeOf({ path, iteration }: { path: string; iteration: number }): Finding["where"] {
  return path === "" ? {} : { path, iteration };
}

function nameOf({ timer, path }: { timer: string; path: string }): string {
  return path === "" ? `timer ${timer} of the instance` : `timer ${timer} of step ${path}`;
}

function missingTimer(snapshot: Snapshot, clock: Clock, known: SetTimer | undefined): Finding {
  const { timer } = clock;
  const due = known === undefined ? "" : `, which was due at ${known.dueAt.toISOString()}`;
  return {
    code: "TIMER_MISSING",
    message: `${nameOf(clock)} is not stored${due}`,
    where: { ...placeOf(clock), timer },
    ...(known && { repair: setAgain(snapshot, known) }),
  };
}

function stray({ kind: timer, path, iteration }: TimerEvidence): Finding {
  return {
    code: "TIMER_STRAY",
    message: `${nameOf({ timer, path })} is stored, and the instance has none running there`,
    where: { ...placeOf({ path, iteration }), timer },
    repair: { kind: "commit", commands: [{ kind: "clearTimer", timer, path, iteration }] },
  };
}

function checkTimer(
  snapshot: Snapshot,
  timer: TimerEvidence,
  known: SetTimer | undefined,
  now: Date,
): Finding | undefined {
  const { kind, path, iteration, dueAt, attempt, held } = timer;
  const where = { ...placeOf(timer), timer: kind };
  const name = nameOf({ timer: kind, path });
  const shouldHold = isHeldIn(snapshot, kind);
  const isMoved =
    known !== undefined && (known.dueAt.getTime() !== dueAt.getTime() || known.attempt !== attempt);
  const late = lateLook(timer, now);
  if (isMoved || held !== shouldHold || late !== undefined) {
    const should =
      known === undefined ? "" : `${known.dueAt.toISOString()} at attempt ${known.attempt}, `;
    return {
      code: "TIMER_DIFFERS",
      message: `${name} is due at ${dueAt.toISOString()} at attempt ${attempt}, ${heldText(held)}${late ? `, and looked at only at ${late.toISOString()}` : ""}; it should be ${should}${heldText(shouldHold)}`,
      where,
      repair: setAgain(
        snapshot,
        known ?? { kind: "setTimer", timer: kind, path, iteration, attempt, dueAt },
      ),
    };
  }
  const lateBy = now.getTime() - dueAt.getTime();
  if (held || snapshot.status === "PAUSED" || lateBy <= lateMs) return undefined;
  return { code: "TIMER_OVERDUE", message: `${name} is due since ${dueAt.toISOString()}`, where };
}

/** A scheduler that takes a due timer has it looked at again so much later; in vain, as much as it is late. */
const takenMs = 5_000;
const longestPutOffMs = 600_000;

/** When a timer is looked at that would be overlooked until then. */
function lateLook({ dueAt, lookAt }: TimerEvidence, now: Date): Date | undefined {
  if (lookAt === null) return undefined;
  const lateBy = Math.min(now.getTime() - dueAt.getTime(), longestPutOffMs);
  const latest = Math.max(dueAt.getTime(), now.getTime() + Math.max(takenMs, lateBy)) + skewMs;
  return lookAt.getTime() > latest ? lookAt : undefined;
}

function isHeldIn({ status }: Snapshot, timer: TimerKind): boolean {
  return status === "PAUSED" && !isUnheldTimer(timer);
}

function heldText(held: boolean): string {
  return held ? "held" : "not held";
}

function setAgain(snapshot: Snapshot, timer: SetTimer): Repair {
  const { held: _asItWas, ...rest } = timer;
  const held = isHeldIn(snapshot, timer.timer) && ({ held: true } as const);
  return { kind: "commit", commands: [{ ...rest, ...held }] };
}
