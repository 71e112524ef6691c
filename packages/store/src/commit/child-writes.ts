import type { Db } from "../statement.ts";
import {
  deadLetters,
  insertDeadLetters,
  letterOf,
  resolutionOf,
  resolutions,
  resolveDeadLetters,
} from "./dead-letter-writes.ts";
import type { Draft } from "./draft.ts";
import type { From, Parameters } from "./parameters.ts";
import {
  heldSteps,
  holdSteps,
  insertSteps,
  stepInserts,
  stepUpdates,
  updateSteps,
} from "./step-writes.ts";
import {
  clearTimers,
  heldTimers,
  holdTimers,
  setTimers,
  timerInserts,
  timerPlaces,
} from "./timer-writes.ts";
import { insertShapes, newShapes, waitShapes } from "./wait-shapes.ts";
import {
  closeWaits,
  emitEvents,
  eventInserts,
  heldWaits,
  holdWaits,
  openWaits,
  places,
  rekeyWaits,
  releaseEvents,
  releaseLate,
  settle,
  settled,
  waitInserts,
  waitInsertsAmongEvents,
  waitKeys,
} from "./wait-writes.ts";

/** Every write beside the instance's own row. Each names its rows by their whole key. */
export function childWrites(
  parameters: Parameters,
  drafts: readonly Draft[],
  db: Db | undefined,
): {
  readonly sections: () => readonly string[];
  /** Undefined where no commit inserts a step. */
  readonly inserts: From | undefined;
  readonly remember: (() => void) | undefined;
} {
  const shapes = newShapes(drafts, db);
  const shaped = shapes.rows.length > 0 ? shapes.rows : [];
  const emitting = drafts.some(({ emits }) => emits.length > 0);
  const openSource = emitting ? waitInsertsAmongEvents : waitInserts;
  const from = {
    inserts: parameters.addRows(stepInserts, (draft) => draft.inserts),
    updates: parameters.addRows(stepUpdates, (draft) => draft.updates),
    opens: parameters.addRows(openSource, (draft) => draft.opens),
    rekeys: parameters.addRows(waitKeys, (draft) => draft.rekeys),
    closes: parameters.addRows(places, (draft) => draft.closes),
    handsOn: parameters.addRows(places, (draft) => draft.handsOn),
    sets: parameters.addRows(timerInserts, (draft) => draft.sets),
    clears: parameters.addRows(timerPlaces, (draft) => draft.clears),
    heldSteps: parameters.addRows(heldSteps, (draft) => draft.heldSteps),
    heldTimers: parameters.addRows(heldTimers, (draft) => draft.heldTimers),
    heldWaits: parameters.addRows(heldWaits, (draft) => draft.heldWaits),
    emits: parameters.addRows(eventInserts, (draft) => draft.emits),
    settles: parameters.addRows(settled, (draft) => (draft.settles ? [undefined] : [])),
    closesAtEnd: parameters.addRows(settled, (draft) => (draft.closesAtEnd ? [undefined] : [])),
    letters: parameters.addRows(deadLetters, letterOf),
    resolutions: parameters.addRows(resolutions, resolutionOf),
    shapes: parameters.addRows(waitShapes, (draft) => (draft === drafts[0] ? shaped : [])),
  };
  const isReleasing = from.handsOn !== undefined || from.closesAtEnd !== undefined;
  const sections = () => [
    from.inserts && insertSteps(from.inserts),
    from.updates && updateSteps(from.updates),
    from.shapes && insertShapes(from.shapes),
    from.opens && openWaits(from.opens, emitting),
    from.emits && emitEvents(from.emits),
    from.rekeys && rekeyWaits(from.rekeys),
    from.closes && closeWaits(from.closes, from.handsOn !== undefined),
    from.sets && setTimers(from.sets),
    from.clears && clearTimers(from.clears),
    from.heldSteps && holdSteps(from.heldSteps),
    from.heldTimers && holdTimers(from.heldTimers),
    from.heldWaits && holdWaits(from.heldWaits),
    from.letters && insertDeadLetters(from.letters),
    from.resolutions && resolveDeadLetters(from.resolutions),
    ...(from.settles === undefined ? [] : settle(from.settles, isReleasing)),
    from.handsOn && releaseEvents(from.handsOn, from.closes, from.settles),
    from.closesAtEnd && releaseLate(from.closesAtEnd),
  ];
  return {
    inserts: from.inserts,
    sections: () => sections().filter((section) => section !== undefined),
    remember: shapes.remember,
  };
}
